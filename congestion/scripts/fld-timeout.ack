# A timeout halves, also in the middle of a Relentless episode.
cc fld
open iw=40
write bulk
lose 40
rto          => cwnd 1, ssthresh 20, state Loss, flight 1
round        => cwnd 3, state Loss               # slow start, tripling
round        => cwnd 9

open iw=40
write bulk
lose 3
ack 10       => ssthresh 37, state Recovery
lose 37                                          # the rest, retransmissions included
rto          => ssthresh 20, state Loss, cwnd 1

# fld_rto=1: the timeout marks the flight lost, which leaves two segments.
cc fld fld_rto=1
open iw=40
write bulk
lose 40
rto          => cwnd 1, ssthresh 2, state Loss
