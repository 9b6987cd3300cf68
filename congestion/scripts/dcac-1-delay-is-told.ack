# DCA-1: rttmin 100 ms, rttmax 200 ms: the threshold is 150 ms. A sample of 160 ms at a window of 40
# leaves 35; of four connections one at 48 goes to 46.5, one at 30 stays (30 < 40).
# DCA-2: a second sample of 170 ms in the same round trip cuts nothing.
cc dcac
open a iw=80 to=10.1.1.1
open b iw=96 to=10.1.1.1
open c iw=60 to=10.1.1.1
open d iw=60 to=10.1.1.1
a: write 1
round
a: rtt 200ms
a: write 1
round
a:                               => cwnd 80                         # slow start: nothing is cut
a: rtt 100ms
a: write 9
b: write 9
c: write 9
a: lose 1
b: lose 1
c: lose 1
round x2
a:                               => cwnd 40, ssthresh 40, state Open
b:                               => cwnd 48, ssthresh 48, state Open
c:                               => cwnd 30, ssthresh 30, state Open
group 10.1.1.1/32                => members 4
a: rtt 160ms
a: write 1
a: +5ms rtt 170ms
a: write 1
a: round                         => cwnd 35, ssthresh 35
b: write 1
c: write 1
d: write 1
round
b:                               => cwnd 46, ssthresh 46
c:                               => cwnd 30, ssthresh 30
d:                               => cwnd 60, ssthresh inf           # in slow start
group 10.1.1.1/32                => members 4, cwnd_sum 171

# The half segment is not lost: a second event of three members, 46.5 - 46.5/32 = 45.05.
b: rtt 100ms
a: rtt 160ms
a: write 1
round
a:                               => cwnd 30
b: write 1
round
b:                               => cwnd 45
