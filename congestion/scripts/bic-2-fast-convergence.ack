# BIC-2: the next loss, at 90, did not reach W_max 100: W_max becomes 80. Its last segments are near:
# 35 acknowledged ones at 71, 36 at 72, 365 at 73.
cc bic bic_delayed_ack=0
open iw=100 rtt=20ms rto=204ms
write 100
lose 1
ack 3        => ssthresh 79
write bulk
round        => state Open
ack 270      => cwnd 90
lose 1
ack 3        => cwnd 89, ssthresh 71, state Recovery
round x2     => cwnd 73, state Open
round x4     => cwnd 73
round        => cwnd 74

# Without it W_max is 90: 17 at 71, 18 at 72.
cc bic bic_delayed_ack=0 bic_fast_convergence=0
open iw=100 rtt=20ms rto=204ms
write 100
lose 1
ack 3        => ssthresh 79
write bulk
round
ack 270      => cwnd 90
lose 1
ack 3        => ssthresh 71, state Recovery
round x2     => cwnd 75, state Open
round x4     => cwnd 83
