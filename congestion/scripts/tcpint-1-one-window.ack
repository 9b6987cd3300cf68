# INT-1: C is 12 for three connections: 4 each. One loss: C is 6, 2 each. A second loss of the same
# flight: still 6.
cc tcpint
open a iw=20 to=10.1.1.1         => cwnd 20, ssthresh inf
a: write 9
a: lose 1
a: round x2                      => cwnd 10, ssthresh 10, state Open
open b iw=10 to=10.1.1.1
open c iw=10 to=10.1.1.1
a: write bulk
b: write bulk
c: write bulk
round x2
a:                               => cwnd 4, flight 4
b:                               => cwnd 4, flight 4
c:                               => cwnd 4, flight 4
group 10.1.1.1/32                => members 3, cwnd_sum 12
a: lose 1
b: lose 1
a: ack 3                         => ssthresh 2, state Recovery
b: ack 3                         => ssthresh 2, state Recovery
round
a:                               => ssthresh 2
b:                               => ssthresh 2
c:                               => cwnd 2
