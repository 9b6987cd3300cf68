cc cwv

# A loss halves the window, not the flight; recovery is not taken for an unused window.
open iw=40 rto=304ms after_idle=0
write 30
lose 1
ack 3        => state Recovery, ssthresh 20
round        => retransmitted 1
round        => state Open, cwnd 20, ssthresh 20, flight 0

# Timeout: half the window, once per window, then slow start.
open iw=40 after_idle=0
write bulk
lose 40
rto          => cwnd 1, ssthresh 20, state Loss
lose 1
rto          => cwnd 1, ssthresh 20
round        => cwnd 2
round        => cwnd 4

# ECN echo, undo.
open iw=40 after_idle=0
write bulk
ack 1 ece    => ssthresh 20, state Cwr
round x2     => state Open, ssthresh 20
open iw=40 after_idle=0
write bulk
hold 3
ack 3        => ssthresh 20, state Recovery
ack 20
arrive
round x2     => state Open, ssthresh inf

# A repaired tail loss and a drop in the local queue.
open iw=40 after_idle=0
write 40
lose 1 at 40
round        => cwnd 41
tlp          => retransmitted 1
round        => flight 0, state Open
write 10
ack 1        => ssthresh 20, cwnd 20, state Open, lost 0
open iw=40 after_idle=0
write bulk
local-drop   => ssthresh 20, state Cwr

# Chosen on a living connection: the window stays.
cc std
open iw=10 after_idle=0
write bulk
round x3     => cwnd 80
switch cwv   => cc cwv, cwnd 80
round        => cwnd 160
write nothing
round        => cwnd 161
+600ms write 40  => cwnd 40                      # 700 ms idle
