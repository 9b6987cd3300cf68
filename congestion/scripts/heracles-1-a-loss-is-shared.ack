# HER-1: a loss among n windows W leaves W(1 - 1/(2n)) to each member. The flights are less than
# half of the window, so that no window grows meanwhile.
cc heracles

# 1 x 20
open a iw=20 to=10.1.20.1
a: write 9
round
group 10.1.20.0/24               => members 1, cwnd_sum 20, ssthresh_sum 20
a: write 9
a: lose 1
a: ack 3                         => ssthresh 10, state Recovery
round                           
a:                               => cwnd 10, ssthresh 10
group 10.1.20.0/24               => members 1, cwnd_sum 10, ssthresh_sum 10
a: close
group 10.1.20.0/24               => members 0, cwnd_sum 0, ssthresh_sum 0

# 2 x 20
open a iw=20 to=10.2.20.1
open b iw=20 to=10.2.20.2
a: write 9
b: write 9
round
group 10.2.20.0/24               => members 2, cwnd_sum 40, ssthresh_sum 40
a: write 9
a: lose 1
a: ack 3                         => ssthresh 15, state Recovery
b: write 1
round                           
a:                               => cwnd 15, ssthresh 15
b:                               => cwnd 15, ssthresh 15
group 10.2.20.0/24               => members 2, cwnd_sum 30, ssthresh_sum 30
a: close
b: close
group 10.2.20.0/24               => members 0, cwnd_sum 0, ssthresh_sum 0

# 4 x 20
open a iw=20 to=10.4.20.1
open b iw=20 to=10.4.20.2
open c iw=20 to=10.4.20.3
open d iw=20 to=10.4.20.4
a: write 9
b: write 9
c: write 9
d: write 9
round
group 10.4.20.0/24               => members 4, cwnd_sum 80, ssthresh_sum 80
a: write 9
a: lose 1
a: ack 3                         => ssthresh 17, state Recovery
b: write 1
c: write 1
d: write 1
round                           
a:                               => cwnd 17, ssthresh 17
b:                               => cwnd 17, ssthresh 17
c:                               => cwnd 17, ssthresh 17
d:                               => cwnd 17, ssthresh 17
group 10.4.20.0/24               => members 4, cwnd_sum 68, ssthresh_sum 68
a: close
b: close
c: close
d: close
group 10.4.20.0/24               => members 0, cwnd_sum 0, ssthresh_sum 0

# 4 x 32
open a iw=32 to=10.4.32.1
open b iw=32 to=10.4.32.2
open c iw=32 to=10.4.32.3
open d iw=32 to=10.4.32.4
a: write 15
b: write 15
c: write 15
d: write 15
round
group 10.4.32.0/24               => members 4, cwnd_sum 128, ssthresh_sum 128
a: write 15
a: lose 1
a: ack 3                         => ssthresh 28, state Recovery
b: write 1
c: write 1
d: write 1
round                           
a:                               => cwnd 28, ssthresh 28
b:                               => cwnd 28, ssthresh 28
c:                               => cwnd 28, ssthresh 28
d:                               => cwnd 28, ssthresh 28
group 10.4.32.0/24               => members 4, cwnd_sum 112, ssthresh_sum 112
a: close
b: close
c: close
d: close
group 10.4.32.0/24               => members 0, cwnd_sum 0, ssthresh_sum 0

# 8 x 40
open a iw=40 to=10.8.40.1
open b iw=40 to=10.8.40.2
open c iw=40 to=10.8.40.3
open d iw=40 to=10.8.40.4
open e iw=40 to=10.8.40.5
open f iw=40 to=10.8.40.6
open g iw=40 to=10.8.40.7
open h iw=40 to=10.8.40.8
a: write 19
b: write 19
c: write 19
d: write 19
e: write 19
f: write 19
g: write 19
h: write 19
round
group 10.8.40.0/24               => members 8, cwnd_sum 320, ssthresh_sum 320
a: write 19
a: lose 1
a: ack 3                         => ssthresh 37, state Recovery
b: write 1
c: write 1
d: write 1
e: write 1
f: write 1
g: write 1
h: write 1
round                           
a:                               => cwnd 37, ssthresh 37
b:                               => cwnd 37, ssthresh 37
c:                               => cwnd 37, ssthresh 37
d:                               => cwnd 37, ssthresh 37
e:                               => cwnd 37, ssthresh 37
f:                               => cwnd 37, ssthresh 37
g:                               => cwnd 37, ssthresh 37
h:                               => cwnd 37, ssthresh 37
group 10.8.40.0/24               => members 8, cwnd_sum 296, ssthresh_sum 296
a: close
b: close
c: close
d: close
e: close
f: close
g: close
h: close
group 10.8.40.0/24               => members 0, cwnd_sum 0, ssthresh_sum 0
