# Growing delay is told to the connections of the own server only.
cc dcac
open a iw=80 to=10.1.1.1
open b iw=96 to=10.1.1.1 server=1
a: write 1
b: write 1
round
a: rtt 200ms
a: write 1
round
a: rtt 100ms
a: write 9
b: write 9
a: lose 1
b: lose 1
round x2
a:                               => cwnd 40, ssthresh 40, state Open
b:                               => cwnd 48, ssthresh 48, state Open
a: rtt 160ms
a: write 1
a: round                         => cwnd 35, ssthresh 35
b: write 1
round
b:                               => cwnd 48, ssthresh 48
group 10.1.1.1/32                => members 1
group 10.1.1.1/32 server 1       => members 1
