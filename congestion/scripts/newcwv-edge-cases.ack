cc newcwv

# A loss in the validated phase: half the flight; pipeACK is undefined afterwards.
open iw=40 rtt=100ms after_idle=0
write 40
lose 1
ack 3        => ssthresh 20, state Recovery
round        => retransmitted 1
round        => state Open, cwnd 20, ssthresh 20
write 20
round        => cwnd 21

# Timeout in the validated and in the non-validated phase: half the flight, once per window.
open iw=40 rtt=100ms after_idle=0
write bulk
lose 40
rto          => cwnd 1, ssthresh 20, state Loss
lose 1
rto          => cwnd 1, ssthresh 20
round        => cwnd 2
round        => cwnd 4
open iw=60 rtt=100ms after_idle=0
write 40
round        => cwnd 100
write 10
lose 10
rto          => cwnd 1, ssthresh 5, state Loss
# A timeout in the middle of a recovery that began with the window max(40, 10).
open iw=60 rtt=100ms after_idle=0
write 40
round        => cwnd 100
write 10
lose 1
ack 3        => ssthresh 20, state Recovery
lose 7
rto          => ssthresh 20, cwnd 1, state Loss
# Of a single segment a half of one remains during recovery, and a timeout makes it two.
open iw=60 rtt=100ms after_idle=0
write 2
round
write 2
round        => cwnd 62
write 2
lose 2
rto          => ssthresh 2, cwnd 1

# ECN echo in the non-validated phase: as a loss with nothing retransmitted.
open iw=60 rtt=100ms after_idle=0
write 40
round        => cwnd 100
write 30
ack 1 ece    => ssthresh 20, state Cwr
round        => flight 0
write 1
round        => state Open, cwnd 20, ssthresh 20

# Undo: the window and pipeACK return, so the window is not validated: growth needs it full.
open iw=60 rtt=100ms after_idle=0
write 40
round        => cwnd 100
write 30
hold 3
ack 3        => ssthresh 20, state Recovery
ack 20
arrive
round x2     => state Open, cwnd 100, ssthresh inf
+300ms write 30
round        => cwnd 100

# A repaired tail loss and a drop in the local queue, both non-validated with pipeACK 40.
open iw=60 rtt=100ms after_idle=0
write 40
round        => cwnd 100
write 10
lose 1 at 10
round
tlp          => retransmitted 1
round        => flight 0, state Open
write 10
ack 1        => ssthresh 20, cwnd 20, state Open, lost 0
open iw=60 rtt=100ms after_idle=0
write 40
round        => cwnd 100
write 10
local-drop   => ssthresh 20, state Cwr
write 1
round        => state Open, cwnd 20, ssthresh 20

# A pause shorter than the sampling period keeps the phase.
open iw=50 rtt=100ms after_idle=0
write 50
round        => cwnd 100
+600ms write 1       => cwnd 100
round        => cwnd 101

# Chosen on a living connection: the window stays, and the initial window is taken for 10.
cc std
open iw=40 rtt=100ms after_idle=0
write bulk
round        => cwnd 80
switch newcwv newcwv_nvp_s=3 => cc newcwv, cwnd 80
round        => cwnd 160
write nothing
round        => cwnd 320
+18s write 1         => cwnd 10
