# HYB-1: growth per ACK by the path's round-trip time in units of 25 ms.
cc hybla

# 25 ms: rho 1, as Reno. The initial window is rho.
open rtt=25ms rto=204ms
write bulk   => cwnd 1, flight 1
round        => cwnd 2
round        => cwnd 4
round        => cwnd 8
round x3     => cwnd 64
lose 1
ack 3        => ssthresh 32, state Recovery
round x2     => cwnd 33, state Open
round        => cwnd 34
round x10    => cwnd 44

# 50 ms: rho 2: +3 per ACK, then +4 per round trip.
open rtt=50ms rto=204ms
write bulk   => cwnd 2
ack 1        => cwnd 5
ack 1        => cwnd 8
round        => cwnd 32
lose 1
ack 3        => ssthresh 16, state Recovery
round x2     => state Open, ssthresh 16
round x3     => cwnd 30
round        => cwnd 34
round        => cwnd 38

# 100 ms: rho 4: +15 per ACK, then +16 per round trip.
open rtt=100ms rto=304ms
write bulk   => cwnd 4
ack 1        => cwnd 19
ack 1        => cwnd 34
ack 6        => cwnd 124
lose 1
ack 3        => ssthresh 62, state Recovery
round x2     => state Open, ssthresh 62
round x10    => cwnd 228
round        => cwnd 243
round        => cwnd 259

# 600 ms: rho 24: initial window 24, and the first ACK opens it to its limit.
open rtt=600ms rto=1204ms
write 24     => cwnd 24, flight 24, ssthresh inf
ack 1        => cwnd 65535, ssthresh inf
ack 1        => cwnd 65535

# 40 ms: rho 1.5 (eighths: 12): 2^1.5 - 1 = 1.828 per ACK; the fractions add up.
open rtt=40ms rto=204ms
write bulk   => cwnd 1
ack 1        => cwnd 2
ack 1        => cwnd 4
ack 1        => cwnd 6
ack 1        => cwnd 8
ack 1        => cwnd 10
