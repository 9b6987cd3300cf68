cc cubic9438

# Timeout: slow start up to 0.7 of the flight, then a cubic without a plateau above: K is 0.
open iw=100
write bulk
lose 100
rto          => cwnd 1, ssthresh 70, state Loss
round x6     => cwnd 64
round        => cwnd 70, state Open
round x10    => cwnd 75                          # Reno-friendly at first
round x40    => cwnd 121

# A second timeout within the window leaves ssthresh.
open iw=100
write bulk
lose 100
rto          => ssthresh 70
lose 1
rto          => cwnd 1, ssthresh 70

# A timeout during recovery: the next epoch has K = 0 as well.
open iw=100
write 100
lose 1
ack 3        => ssthresh 70, state Recovery
lose 96
lose 1
rto          => cwnd 1, ssthresh 70, state Loss

# ECN echo: as a loss, not undone.
open iw=100
write 100
ack 1 ece    => ssthresh 69, state Cwr
write bulk
round x2     => state Open, cwnd 69, ssthresh 69

# Undo: the epoch goes on towards the plateau of 100; the window of the spurious loss is forgotten.
open iw=100 rtt=200ms rto=404ms
native after so many round trips the kernel may have sent a segment more, and others are held
write 100
lose 1
ack 3
write bulk
round x12    => cwnd 96, state Open
hold 3
ack 3        => state Recovery, ssthresh 68
ack 20
arrive
round x2     => state Open, cwnd 97, ssthresh 72
round x12    => cwnd 100

# A repaired tail loss and a drop in the local queue: 0.7 of the flight.
open iw=40
write 40
lose 1 at 40
round        => cwnd 79
tlp          => retransmitted 1
round        => flight 0, state Open
write 10
ack 1        => ssthresh 6, state Open, cwnd 6
open iw=40
write bulk
local-drop   => ssthresh 28, state Cwr
round x2     => state Open, cwnd 28

# After the kernel's restart the window climbs back by slow start and a new epoch begins.
open iw=10 rtt=200ms rto=404ms
write 100
finish
write 50
lose 1
ack 3        => ssthresh 35
finish       => cwnd 35, state Open
+1.3s write bulk => cwnd 10, ssthresh 35
round x2     => cwnd 35

# Never below two segments.
open iw=2
write 2
lose 2
rto          => ssthresh 2, cwnd 1
