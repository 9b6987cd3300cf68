# The cache ages.
cc tcbt tcb_max_age_s=3
open iw=40 to=10.1.1.1
close
open iw=10 to=10.1.1.1           => cwnd 40
idle 1.5s
close
open iw=10 to=10.1.1.1           => cwnd 40
close
open iw=10 to=10.1.1.2
idle 3.1s
open iw=10 to=10.1.1.1           => cwnd 10, ssthresh inf

# A floor of one's own choice, and a cache entry by network.
cc tcbt tcb_min_cwnd=4 tcb_plen4=24 tcb_plen6=64
open iw=3 to=10.1.2.1
close
open iw=10 to=10.1.2.2           => cwnd 4
close
open iw=3 to=fd00:1::1
close
open iw=10 to=fd00:1::2          => cwnd 4
close

# ssthresh only from connections that have left slow start.
cc tcbt tcb_long_only_ssthresh=1
open iw=40 to=10.1.3.1
write 19
lose 19
rto                              => cwnd 1, ssthresh 20
close                            # still in slow start
open iw=10 to=10.1.3.1           => cwnd 10, ssthresh inf

cc tcbt
open iw=40 to=10.1.3.1
write 19
lose 19
rto                              => cwnd 1, ssthresh 20
close
open iw=10 to=10.1.3.1           => cwnd 10, ssthresh 20

# In between it is Reno: growth, ECN echo, undo; changing to it leaves the window alone, from it counts as
# a close.
open iw=10 to=10.1.4.1
write bulk
round                            => cwnd 20
ack 1 ece                        => ssthresh 10, state Cwr
open iw=20 to=10.1.4.2
write 9
hold 1
ack 3                            => ssthresh 10, state Recovery
ack 5
arrive
round                            => cwnd 20, state Open
switch std                       => cwnd 20
close
open iw=10 to=10.1.4.2           => cwnd 20
write 4
round
switch std
switch tcbt                      => cwnd 20
write 4
lose 1 at 4
ack 3
tlp
round
write 1
ack 1                            => cwnd 10, ssthresh 10, state Open
