# HER-3: windows 36, 36, 36 and 35 (sum 143) when one of 36 closes: the others' ssthresh is
# 143 / 3 = 47, and so is cwnd within one round trip.
cc heracles
open d iw=35 to=10.1.2.4
d: write 17
round
open a iw=44 to=10.1.2.1
open b iw=44 to=10.1.2.2
open c iw=44 to=10.1.2.3
a: write 17
b: write 17
c: write 17
round
a: write 17
b: write 17
c: write 17
d: write 17
a: lose 1
round x2
a:                               => cwnd 36, ssthresh 36, state Open
b:                               => cwnd 36, ssthresh 36
c:                               => cwnd 36, ssthresh 36
d:                               => cwnd 35, ssthresh 36      # a loss raises no window
group 10.1.2.0/24                => members 4, cwnd_sum 143
b: write bulk
c: write bulk
d: write bulk
a: close
group 10.1.2.0/24                => members 3, cwnd_sum 107
round
b:                               => cwnd 47, ssthresh 47
c:                               => cwnd 47, ssthresh 47
d:                               => cwnd 47, ssthresh 47

# Those in their first slow start are let alone.
open e iw=20 to=10.1.3.1
open f iw=30 to=10.1.3.2
e: write 9
f: write 9
round
f: close
e: write 9
round
e:                               => cwnd 20, ssthresh inf
