# Two losses within a round trip cut twice, as of two Renos: 40 and 40 become 20 and 20. A loss seen
# during a member's own recovery lowers its ssthresh, and PRR does the rest.
cc heracles
open a iw=40 rtt=100ms to=10.1.2.1
open b iw=40 rtt=140ms to=10.1.2.2
a: write 19
b: write 19
round
group 10.1.2.0/24                => members 2, cwnd_sum 80
b: write 19
b: lose 1
b: ack 3                         => ssthresh 30, state Recovery     # (40 + 20) / 2
a: write 19
a: lose 1
a: ack 3                         => ssthresh 20, state Recovery     # (20 + 20) / 2
b:                               => ssthresh 30, state Recovery
round x2
a:                               => cwnd 20, ssthresh 20, state Open
b:                               => cwnd 20, ssthresh 20, state Open
group 10.1.2.0/24                => members 2, cwnd_sum 40, ssthresh_sum 40

# A leave and a join pending at once: both count, the join first.
open c iw=60 to=10.1.2.3
c: write 4
round                            # est_ss (20 + 20 + 60) / 3
c: close                         # LEAVE (20 + 20 + 60) / 2
a: write 1
b: write 1
round
a:                               => cwnd 20, ssthresh 50
b:                               => cwnd 20, ssthresh 50

# The module applies the join alone.
cc heracles her_event_order=1
open d iw=40 to=10.1.3.1
open e iw=40 to=10.1.3.2
d: write 9
e: write 9
round
d: write 9
d: lose 1
round x2
e: write 1
round
e:                               => cwnd 30, ssthresh 30
open f iw=60 to=10.1.3.3
f: write 4
round
f: close
e: write 1
round
e:                               => cwnd 30, ssthresh 40

# A leaver's window taken at once.
cc heracles her_leave_mode=1
open g iw=40 to=10.1.4.1
open h iw=40 to=10.1.4.2
g: write 9
h: write 9
round
g: write 9
g: lose 1
round x2
h: write 1
round
h:                               => cwnd 30
g: close
h: write 1
round
h:                               => cwnd 60, ssthresh 60
