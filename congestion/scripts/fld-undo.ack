# Three segments come late, not never: the duplicates that the receiver reports undo the episode.
cc fld
open iw=40
write bulk
hold 3
ack 3        => ssthresh 37, state Recovery
ack 20       => retransmitted 3
arrive       => state Recovery
round x2     => state Open, ssthresh inf
