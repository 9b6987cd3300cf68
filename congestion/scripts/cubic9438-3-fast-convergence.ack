# CUB-3: the next loss, at 90, did not reach W_max 100: the plateau moves down to 0.85 * 90 = 76.5,
# which W_cubic reaches after cbrt(13.5 / 0.4) = 3.23 s.
cc cubic9438
open iw=100 rtt=200ms rto=404ms
write 100
lose 1
ack 3        => ssthresh 70, state Recovery
write bulk
round x8     => cwnd 89, state Open
ack 40       => cwnd 90
lose 1
ack 3        => cwnd 89, ssthresh 64, state Recovery    # 0.7 of the 92 segments in flight
round x2     => cwnd 65, state Open
round x8     => cwnd 75
round x8     => cwnd 76
round x4     => cwnd 77

# Without it the plateau is the window of that loss, 90, after 4.05 s.
cc cubic9438 cubic_fast=0
open iw=100 rtt=200ms rto=404ms
write 100
lose 1
ack 3
write bulk
round x8
ack 40       => cwnd 90
lose 1
ack 3        => ssthresh 64, state Recovery
round x2     => cwnd 66, state Open
round x8     => cwnd 85
round x8     => cwnd 89
round x4     => cwnd 90
