# CUB-2: the same loss on a path of 10 ms. W_est grows by 9/17 per round trip up to the window of
# the loss, which it reaches after 56.7 round trips, then by 1. W_cubic is 86.7 after a second.
cc cubic9438
open iw=100 rtt=10ms rto=204ms
write 100
lose 1
ack 3        => ssthresh 70, state Recovery
write bulk
round x2     => cwnd 70, state Open
round x10    => cwnd 75
round x46    => cwnd 100
round x10    => cwnd 110
round x33    => cwnd 143
