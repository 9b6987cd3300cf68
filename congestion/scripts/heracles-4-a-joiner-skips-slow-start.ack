# HER-4: a member at ssthresh 40 in congestion avoidance, a joiner at 10: est_ss is 25. The joiner's
# window is 25, the other keeps its window and has ssthresh 25.
cc heracles
open a iw=80 to=10.1.2.1
a: write 17
round
a: write 17
a: lose 1
round x2
a:                               => cwnd 40, ssthresh 40, state Open
open b iw=10 to=10.1.2.2
b: write 2
round
b:                               => cwnd 10, ssthresh inf     # her_min_acks is 3
b: write 2
b: ack 1                         => cwnd 25, ssthresh 25
a: write 1
round
a:                               => cwnd 40, ssthresh 25
group 10.1.2.0/24                => members 2, cwnd_sum 65, ssthresh_sum 50

# The module's way: slow start up to est_ss.
cc heracles her_join_self=1 her_join_others=1
open c iw=80 to=10.1.2.1
c: write 17
round
c: write 17
c: lose 1
round x2
open d iw=10 to=10.1.2.2
d: write 4
round
d:                               => cwnd 10, ssthresh 25
c: write 1
round
c:                               => cwnd 25, ssthresh 25

cc heracles her_join_others=2
open e iw=80 to=10.1.2.1
e: write 17
round
e: write 17
e: lose 1
round x2
open f iw=10 to=10.1.2.2
f: write 4
round
e: write 1
round
e:                               => cwnd 40, ssthresh 40
