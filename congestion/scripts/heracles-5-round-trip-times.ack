# HER-5: a group at 100 ms: samples of 51 and 149 ms stay, 49 and 151 ms leave, and join a group of
# their own at once, with the window as it was. A path is some 0.1 ms slower than asked: the limits
# themselves are played natively alone.
cc heracles
open a rtt=49ms to=10.1.2.1
open b rtt=49ms to=10.1.2.2
a: rtt 100ms
b: rtt 100ms
a: +200ms write 1 x3
b: +200ms write 1 x3             # one at a time: the samples are 100 ms exactly
round
group 10.1.2.0/24                => members 2
a: rtt 51ms
a: write 1
round
group 10.1.2.0/24                => members 2, cwnd_sum 20
a: rtt 149ms
a: write 1
round
group 10.1.2.0/24                => members 2
a: rtt 151ms
a: write 1
round
a:                               => cwnd 10, ssthresh inf
group 10.1.2.0/24                => members 1, cwnd_sum 10
group 10.1.2.0/24 slot 1         => members 1, cwnd_sum 10
b: rtt 49ms                      # the last of its group: the slot is free for it again
b: write 1
round
group 10.1.2.0/24                => members 1
b: rtt 151ms                     # away again, to a's group
b: write 1
round
group 10.1.2.0/24                => members 0, cwnd_sum 0, ssthresh_sum 0
group 10.1.2.0/24 slot 1         => members 2, cwnd_sum 20

# Three strikes: one delayed sample does not split the group.
cc heracles her_rtt_strikes=3
open c rtt=49ms to=10.1.3.1
open d rtt=49ms to=10.1.3.2
c: rtt 100ms
d: rtt 100ms
c: +200ms write 1 x3
d: +200ms write 1 x3
round
c: rtt 200ms
c: write 1
round
c: write 1
round
group 10.1.3.0/24                => members 2
c: write 1
round
group 10.1.3.0/24                => members 1
group 10.1.3.0/24 slot 1         => members 1
