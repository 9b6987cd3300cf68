# CUB-1: a loss at 100 segments: W_max 100, K 4.217 s. W_cubic(t) is 70.0, 86.7, 95.6, 99.3, 100.0,
# 100.2, 102.3 and 121.7 after 0, 1, ... 6 and 8 s; cwnd heads for its value one round trip ahead.
# The round-trip time of 200 ms keeps the Reno-friendly window below.
cc cubic9438
open iw=100 rtt=200ms rto=404ms
write 100    => flight 100
lose 1
ack 3        => ssthresh 70, state Recovery
write bulk
round        => cwnd 70
round        => cwnd 70, flight 70, state Open
round x5     => cwnd 87
round x5     => cwnd 96
round x5     => cwnd 99
round x5     => cwnd 99
round x5     => cwnd 100
round x5     => cwnd 102
round x10    => cwnd 123                         # W_cubic(8.2 s) is 125.3
