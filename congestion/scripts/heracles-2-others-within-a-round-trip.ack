# HER-2: four flows at 29, 29, 29 and 28 and one drop: ssthresh 25 for all. The loser ends at 25, the
# others are there at their next ACK; then each grows by one per round trip.
cc heracles
open a iw=29 to=10.1.2.1
open b iw=29 to=10.1.2.2
open c iw=29 to=10.1.2.3
open d iw=28 to=10.1.2.4
a: write 13
b: write 13
c: write 13
d: write 13
round
group 10.1.2.0/24                => members 4, cwnd_sum 115
a: write 13
a: lose 1
b: +1ms write 1
c: write 1
d: write 1
a: ack 3                         => ssthresh 25, state Recovery
group 10.1.2.0/24                => cwnd_sum 100
b: ack 1                         => cwnd 25, ssthresh 25, state Open
c: ack 1                         => cwnd 25, ssthresh 25
d: ack 1                         => cwnd 25, ssthresh 25
round x2
a:                               => cwnd 25, ssthresh 25, state Open
group 10.1.2.0/24                => members 4, cwnd_sum 100, ssthresh_sum 100
b: write bulk                    => flight 25
b: round                         => cwnd 26
b: round                         => cwnd 27
b: round                         => cwnd 28
