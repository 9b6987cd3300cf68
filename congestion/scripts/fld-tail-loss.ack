# A repaired tail loss marks no segment; it counts as one.
cc fld
open iw=40
write 40     => flight 40
lose 1 at 40
round        => cwnd 118, flight 1, state Open
tlp          => retransmitted 1
round        => flight 0, state Open, lost 0, cwnd 120
write 10
ack 1        => ssthresh 119, cwnd 119, state Open, lost 0
