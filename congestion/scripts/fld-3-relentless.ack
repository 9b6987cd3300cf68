# FLD-3: three segments of a flight of 100 are lost; the window shrinks by three.
cc fld
open iw=100
write bulk   => cwnd 100, flight 100
lose 3
ack 2        => cwnd 100, flight 100, state Disorder   # limited transmit sends two
ack 1        => ssthresh 97, state Recovery, lost 3, retransmitted 1
ack 94       => ssthresh 97, cwnd 97, retransmitted 3
ack 4        => ssthresh 97, state Recovery
ack 1        => ssthresh 97, cwnd 97, flight 97, state Open
round        => cwnd 98
round        => cwnd 99
round        => cwnd 100
round        => cwnd 101, ssthresh 97
