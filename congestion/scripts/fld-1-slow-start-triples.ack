# FLD-1: a short flow triples its window each round trip; the paper's figure 1 in segments of
# 1500 bytes: 15, 60, 195, 600, 1815 kB after 1 to 5 round trips.
cc fld
open iw=10 mss=1500
write bulk   => cwnd 10, flight 10, sent_kb 15, ssthresh inf
round        => cwnd 30, flight 30, sent_kb 60
round        => cwnd 90, flight 90, sent_kb 195
round        => cwnd 270, flight 270, sent_kb 600
round        => cwnd 810, flight 810, sent_kb 1815
