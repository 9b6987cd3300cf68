# A loss is not told to the connections of another server, though the destination's network is the same
# and, in the kernel, the network namespace is, too.
cc heracles
open a iw=40 to=10.1.2.1
open b iw=40 to=10.1.2.2
open c iw=40 to=10.1.2.1 server=1
a: write 19
b: write 19
c: write 19
round
group 10.1.2.0/24                => members 2, cwnd_sum 80
group 10.1.2.0/24 server 1       => members 1, cwnd_sum 40
a: write 9
a: lose 1
a: ack 3                         => ssthresh 30, state Recovery
b: write 1
c: write 1
round
b:                               => cwnd 30, ssthresh 30
c:                               => cwnd 40, ssthresh inf
group 10.1.2.0/24 server 1 slot 0 => members 1, cwnd_sum 40
