# Two newcomers between two ACKs of the first: a third each, as if they had come one by one.
cc tcbe
open a iw=60 to=10.1.1.1
open b iw=10 to=10.1.1.1         => cwnd 30
open c iw=10 to=10.1.1.1         => cwnd 20
a: write 4
b: write 4
round
a:                               => cwnd 20
b:                               => cwnd 20
group 10.1.1.1/32                => members 3, cwnd_sum 60

# A newcomer's ssthresh is the share of the sum; members without one do not count.
cc tcbe
open d iw=40 to=10.1.2.1
d: write 9
d: lose 1
d: round x2                      => cwnd 20, ssthresh 20, state Open
open e iw=10 to=10.1.2.1         => cwnd 10, ssthresh 10
d: write 1
round
d:                               => cwnd 10, ssthresh 10
group 10.1.2.1/32                => members 2, cwnd_sum 20, ssthresh_sum 20

# One that leaves takes its window with it; the others keep theirs, and the next gets a share of what is left.
e: close
group 10.1.2.1/32                => members 1, cwnd_sum 10, ssthresh_sum 10
d:                               => cwnd 10
open f iw=10 to=10.1.2.1         => cwnd 5, ssthresh 5
d: close                         # without having given
f: write bulk
f: round                         => cwnd 6, ssthresh 5
group 10.1.2.1/32                => members 1, cwnd_sum 6, ssthresh_sum 5
f: close
group 10.1.2.1/32                => members 0, cwnd_sum 0, ssthresh_sum 0

# A loss, a timeout, an ECN echo and an undo are Reno's; the group follows.
open g iw=40 to=10.1.3.1
open h iw=10 to=10.1.3.1         => cwnd 20
g: write 9
g: hold 1
g: ack 3                         => ssthresh 10, state Recovery     # gives 20 first
group 10.1.3.1/32                => cwnd_sum 30, ssthresh_sum 10
g: ack 5
g: arrive
g: round                         => state Open
h: write 4
h: ack 1 ece                     => ssthresh 10, state Cwr
h: round
h: write 1
h: round                         => cwnd 10, state Open
h: write 4
h: lose 4
h: rto                           => cwnd 1, ssthresh 5, state Loss
group 10.1.3.1/32                => members 2, ssthresh_sum 15

# At least one segment, or what is asked for; other hosts do not matter. Who leaves gives first what a
# newcomer got; a switch to it leaves the window alone.
cc tcbe tcb_min_cwnd=0
open i iw=10 to=10.1.4.1
open j iw=10 to=10.1.4.1         => cwnd 10
open k iw=10 to=10.1.4.2         => cwnd 10
i: switch std                    => cwnd 5
group 10.1.4.1/32                => members 1, cwnd_sum 10
i: write 2
i: switch tcbe tcb_min_cwnd=0    => cwnd 5, cc tcbe
group 10.1.4.1/32                => members 2, cwnd_sum 15
