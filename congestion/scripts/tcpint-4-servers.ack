# Each server has a window of its own towards a host: the first connection of another one takes no share.
cc tcpint
open a iw=20 to=10.1.1.1
a: write 9
a: lose 1
a: round x2                      => cwnd 10, ssthresh 10, state Open
open b iw=12 to=10.1.1.1         => cwnd 10, ssthresh 10
open c iw=12 to=10.1.1.1 server=1 => cwnd 12, ssthresh inf
group 10.1.1.1/32                => members 2
group 10.1.1.1/32 server 1       => members 1
