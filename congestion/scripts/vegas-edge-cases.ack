cc vegas

# Two samples a round trip are too few: Reno, which grows only while half a window is in flight.
open iw=2 rtt=100ms
write 2
round        => cwnd 4
write 2
ack 1        => cwnd 4
ack 1        => cwnd 5                           # between the decisions slow start asks nobody

# Where the application limits the flight, Vegas's parts grow all the same, as in Linux.
open iw=10 rtt=100ms rto=304ms
write 5
ack 1        => cwnd 10
ack 4        => cwnd 14

# Idle: baseRTT is forgotten, so the longer path is taken for the shortest.
open iw=34 rtt=100ms rto=404ms
write 34
lose 1
ack 3        => ssthresh 17
write bulk
round x2     => cwnd 18
rtt 130ms
round x6     => cwnd 16
write nothing
round
+10ms write bulk
round x4     => cwnd 19

# Loss: Reno's growth until Open, where a new round trip begins. Timeout, once per window.
open iw=40
write bulk
lose 40
rto          => cwnd 1, ssthresh 20, state Loss
lose 1
rto          => cwnd 1, ssthresh 20
round        => cwnd 2
round        => cwnd 4

# ECN echo, undo.
open iw=40
write bulk
ack 1 ece    => ssthresh 20, state Cwr
round x2     => state Open, ssthresh 20
open iw=40
write bulk
hold 3
ack 3        => ssthresh 20, state Recovery
ack 20
arrive
round x2     => state Open, ssthresh inf

# A repaired tail loss and a drop in the local queue.
open iw=40
write 40
lose 1 at 40
round        => cwnd 79
tlp          => retransmitted 1
round        => flight 0, state Open
write 10
ack 1        => state Open, lost 0
open iw=40
write bulk
local-drop   => ssthresh 20, state Cwr

# The window never falls below 2; with 2 samples it is Reno's and grows to 3 again.
open iw=2 rtt=100ms rto=1004ms
write bulk
round x2     => cwnd 8
rtt 900ms
round x12    => cwnd 3
round x2     => cwnd 2

# Chosen on a living connection: the window stays.
cc std
open iw=10
write bulk
round x3     => cwnd 80
switch vegas => cc vegas, cwnd 80
round        => cwnd 160
