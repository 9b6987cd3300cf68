# Counting as Linux: the number of ACKs per step is kept for HZ/32 (28 ms) unless the window changes.
# At 8 W_cubic(t + RTT) is 10 - 2, rounded towards W_max. The step of the same jiffy, 7 segments, still
# leads to 9; there the target is no higher. W_est, which grows by 8/15 per round trip of 2 ms, is
# above 9 in the fourth, yet the window follows only when Linux looks again.
cc cubic9438 cubic_linux=1
open iw=10 rtt=2ms rto=204ms
native 28 ms are another number of round trips where jiffies begin elsewhere
write 10
lose 1
ack 3        => ssthresh 7, state Recovery
write bulk
round x2     => cwnd 8, state Open
round        => cwnd 9
round x15    => cwnd 9
round x2     => cwnd 15
