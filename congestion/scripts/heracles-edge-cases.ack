# A timeout is a loss: the kernel sets cwnd, the group learns of it.
cc heracles
open a iw=20 to=10.1.1.1
open b iw=20 to=10.1.1.2
a: write 9
b: write 9
round
a: write 3
a: lose 3
a: rto                           => cwnd 1, ssthresh 15, state Loss
b: write 1
round
b:                               => cwnd 15, ssthresh 15
group 10.1.1.0/24                => members 2, ssthresh_sum 30

# So are an ECN echo, a repaired tail loss and a drop in the local queue.
open c iw=20 to=10.1.2.1
open d iw=20 to=10.1.2.2
c: write 9
d: write 9
round
c: write 4
c: ack 1 ece                     => ssthresh 15, state Cwr
round
c: write 1
round
c:                               => cwnd 15, state Open
d: write 1
round
d:                               => cwnd 15, ssthresh 15
d: local-drop                    => ssthresh 11, state Cwr           # (15 + 7) / 2
open e iw=20 to=10.1.3.1
e: write 9
round
e: write 9
e: lose 1 at 9
e: ack 8
e: tlp
e: round
e: write 1
e: ack 1                         => cwnd 10, ssthresh 10, state Open

# A loss that was none: the member has its window back, the others keep theirs.
open f iw=20 to=10.1.4.1
open g iw=20 to=10.1.4.2
f: write 9
g: write 9
round
f: write 9
f: hold 1
f: ack 3                         => ssthresh 15, state Recovery
g: write 1
f: ack 5
f: arrive
round
f:                               => cwnd 20, state Open
g:                               => cwnd 15, ssthresh 15
group 10.1.4.0/24                => members 2, cwnd_sum 35

# Unless they are told.
cc heracles her_undo_event=1
open h iw=20 to=10.1.5.1
open i iw=20 to=10.1.5.2
h: write 9
i: write 9
round
h: write 9
h: hold 1
h: ack 3                         => ssthresh 15, state Recovery
i: write 1
h: ack 5
h: arrive
round
h:                               => cwnd 20, state Open
i:                               => cwnd 15, ssthresh 20            # the loss, then the undo

# A member that changes its congestion control leaves; one that comes joins with its window.
cc heracles
open j iw=20 to=10.1.6.1
open k iw=20 to=10.1.6.2
j: write 9
k: write 9
round
group 10.1.6.0/24                => members 2, cwnd_sum 40
j: switch std                    => cwnd 20, cc std
group 10.1.6.0/24                => members 1, cwnd_sum 20
j: write 9
j: switch heracles               => cwnd 20, cc heracles
k: close
group 10.1.6.0/24                => members 0, cwnd_sum 0, ssthresh_sum 0

# Nothing grows while the window is not in use; the sums follow what does.
open l iw=20 to=10.1.7.1
l: write 9
round                            => cwnd 20
l: write 20                      => flight 20
l: round                         => cwnd 40
group 10.1.7.0/24                => members 1, cwnd_sum 40, ssthresh_sum 40

# An idle member leaves where it is asked to: it is told on return, and joins anew.
cc heracles her_leave_on=1
open m iw=20 to=10.1.8.1
open n iw=20 to=10.1.8.2
m: write 9
n: write 9
round
group 10.1.8.0/24                => members 2
n: +1s write 1
group 10.1.8.0/24                => members 1
