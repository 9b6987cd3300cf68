# INT-3: three connections in congestion avoidance: the sum of their windows grows by 1 per round trip.
cc tcpint
open a iw=24 to=10.1.1.1
a: write 11
a: lose 1
a: round x2                      => cwnd 12, ssthresh 12, state Open
open b iw=10 to=10.1.1.1         => cwnd 12
open c iw=10 to=10.1.1.1         => cwnd 12
a: write bulk
b: write bulk
c: write bulk
round x2
group 10.1.1.1/32                => members 3, cwnd_sum 14
round
group 10.1.1.1/32                => members 3, cwnd_sum 15
round
group 10.1.1.1/32                => members 3, cwnd_sum 16
round
group 10.1.1.1/32                => members 3, cwnd_sum 17
a:                               => cwnd 6
b:                               => cwnd 6
c:                               => cwnd 5
