# TCB-2: one connection at 40, a newcomer gets 20; conserving the sum, the first goes to 20.
cc tcbe
open a iw=40 to=10.1.1.1         => cwnd 40
open b iw=10 to=10.1.1.1         => cwnd 20, ssthresh inf
group 10.1.1.1/32                => members 2, cwnd_sum 60          # until the first gives
a: write 4
round
a:                               => cwnd 20
group 10.1.1.1/32                => members 2, cwnd_sum 40

# TCB-3: two at 30: the newcomer 20, the others 20.
open c iw=30 to=10.1.2.1
open d iw=10 to=10.1.2.1         => cwnd 15
c: write 4
round
c:                               => cwnd 15
c: close
d: close
cc tcbe tcb_conserve=0
open e iw=60 to=10.1.2.2
open f iw=10 to=10.1.2.2         => cwnd 30
open g iw=10 to=10.1.2.2         => cwnd 30                         # (60 + 30) / 3: the sum grows
e: write 4
round
e:                               => cwnd 60
group 10.1.2.2/32                => members 3, cwnd_sum 120

cc tcbe
open h iw=60 to=10.1.3.1
open i iw=10 to=10.1.3.1         => cwnd 30
h: write 4
round
h:                               => cwnd 30
open j iw=10 to=10.1.3.1         => cwnd 20
h: write 4
i: write 4
round
h:                               => cwnd 20
i:                               => cwnd 20
group 10.1.3.1/32                => members 3, cwnd_sum 60
