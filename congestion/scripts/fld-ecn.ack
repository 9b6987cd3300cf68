# An ECN echo halves: nothing is lost, so Relentless would ignore it.
cc fld
open iw=40
write bulk
ack 1 ece    => ssthresh 20, state Cwr
ack 39       => state Cwr
ack 1        => state Open, cwnd 20, ssthresh 20

# One flagged ACK colours only the reduction that it causes.
lose 2
round x3     => state Open, lost 2

cc fld fld_ecn=1
open iw=40
write bulk
ack 1 ece    => ssthresh 39, state Cwr
round x2     => state Open, ssthresh 39
