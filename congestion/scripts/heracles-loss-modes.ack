# Each member less 1/(2n) of its own window, 40 and 20 with n = 2: 30 and 15.
cc heracles her_loss_mode=1 her_join_self=1
open a iw=40 to=10.1.2.1
open b iw=20 to=10.1.2.2
a: write 9
b: write 9
round
a: write 9
a: lose 1
a: ack 3                         => ssthresh 30, state Recovery
b: write 1
round
a:                               => cwnd 30
b:                               => cwnd 15, ssthresh 15
group 10.1.2.0/24                => cwnd_sum 45

# The mean ssthresh, as the module, which lags behind the window. Alone: never less than Reno takes.
cc heracles her_loss_mode=2
open c iw=20 to=10.1.3.1
c: write 9
round
c: write 9
c: lose 1
c: ack 3                         => ssthresh 10, state Recovery
round
c:                               => cwnd 10
c: write bulk                    => flight 10
c: round x4                      => cwnd 14, ssthresh 10
c: lose 1
c: ack 13                        => ssthresh 7, state Recovery

# A loss raises no window (the default), or it does (the module).
cc heracles her_join_self=1 her_join_others=2
open d iw=10 to=10.1.4.1
open e iw=40 to=10.1.4.2
d: write 4
e: write 9
round
e: write 9
e: lose 1
round x2
e:                               => cwnd 15
d: write 1
round
d:                               => cwnd 10, ssthresh 15

cc heracles her_join_self=1 her_join_others=2 her_loss_down_only=0
open f iw=10 to=10.1.5.1
open g iw=40 to=10.1.5.2
f: write 4
g: write 9
round
g: write 9
g: lose 1
round x2
f: write 1
round
f:                               => cwnd 15, ssthresh 15

# The loser is the small one among large ones: it keeps its window, they fall to the mean.
cc heracles her_join_self=1
open h iw=40 to=10.1.6.1
open i iw=40 to=10.1.6.2
open j iw=12 to=10.1.6.3
h: write 9
i: write 9
j: write 5
round
j: write 5
j: lose 1
j: ack 3                         => ssthresh 12, state Recovery
h: write 1
round
h:                               => cwnd 28, ssthresh 28            # (40 + 40 + 6) / 3
