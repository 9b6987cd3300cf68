cc bic

# Segments per ACK: 2 is assumed, and one ACK per segment leaves it just below (31/16), so growth is
# nearly twice as fast: 7 acknowledged segments at 79.
open iw=100 rtt=20ms rto=204ms
write 100
lose 1
ack 3        => ssthresh 79, state Recovery
write bulk
round        => cwnd 79, state Open
ack 5        => cwnd 79
ack 1        => cwnd 80

# A timeout forgets W_max. Without one a segment takes 3 acknowledged ones up to 48 segments, then
# cwnd / 16 and at most 20.
cc bic bic_delayed_ack=0
open iw=30 rtt=100ms rto=204ms
write bulk
lose 30
rto          => cwnd 1, ssthresh 23, state Loss
round x4     => cwnd 16
round        => cwnd 26, state Open
round        => cwnd 34
round x10    => cwnd 189
round        => cwnd 205

# Far from W_max 16 segments per round trip.
cc bic bic_delayed_ack=0
open iw=1000 rtt=100ms rto=304ms
write 1000
lose 1
ack 3        => ssthresh 799, state Recovery
write bulk
round        => cwnd 799
round        => cwnd 815
round        => cwnd 831

# Up to 14 segments the window is halved.
open iw=14
write 14
lose 1
ack 3        => ssthresh 7, state Recovery

# Timeout: 0.8 of the window, once per window.
open iw=100
write bulk
lose 100
rto          => cwnd 1, ssthresh 79, state Loss
lose 1
rto          => cwnd 1, ssthresh 79
round        => cwnd 2

# ECN echo, undo.
open iw=100
write bulk
ack 1 ece    => ssthresh 79, state Cwr
round x2     => state Open, ssthresh 79
open iw=100
write bulk
hold 3
ack 3        => ssthresh 79, state Recovery
ack 20
arrive
round x2     => state Open, ssthresh inf

# A repaired tail loss and a drop in the local queue.
open iw=100
write 60
lose 1 at 60
round        => cwnd 120
tlp          => retransmitted 1
round        => flight 0, state Open
write 10
ack 1        => ssthresh 95, cwnd 95, state Open, lost 0
open iw=100
write bulk
local-drop   => ssthresh 79, state Cwr

# Growth needs the window in use; after idle the kernel restarts it.
open iw=10 rtt=100ms rto=304ms
write 4
round        => cwnd 10
write bulk
round x3     => cwnd 80
write nothing
round        => cwnd 160
+700ms write 100 => cwnd 40, flight 40, ssthresh inf

# Chosen on a living connection: the window stays.
cc std
open iw=10
write bulk
round x3     => cwnd 80
switch bic   => cc bic, cwnd 80
round        => cwnd 160
lose 1
round x2     => state Open, ssthresh 127
