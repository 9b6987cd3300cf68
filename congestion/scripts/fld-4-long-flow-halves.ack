# FLD-4: the same loss after the threshold halves the window, and slow start doubles.
cc fld
open iw=1382
write 1382   => sent_kb 2001         # one segment beyond the threshold of 2 MB
lose 3
ack 3        => ssthresh 691, state Recovery
open iw=1381
write 1381   => sent_kb 1999         # one segment below it
lose 3
ack 3        => ssthresh 1378, state Recovery
cc fld fld_threshold=100000
open iw=100
write bulk   => cwnd 100, flight 100, sent_kb 144
lose 3
ack 3        => ssthresh 50, state Recovery
ack 94       => ssthresh 50
ack 4        => state Recovery
ack 1        => ssthresh 50, cwnd 50, state Open
round        => cwnd 51
# Slow start of a long flow doubles.
open iw=100
write bulk
round        => cwnd 200
# Crossing the threshold leaves the window alone; an episode keeps the rule it began with.
cc fld fld_threshold=150000
open iw=100
write bulk   => sent_kb 144
lose 3
ack 3        => ssthresh 97, state Recovery
ack 99       => ssthresh 97, cwnd 97, state Open
lose 3
round        => ssthresh 48, state Recovery
