# BIC-1: after a loss at 100 the window is 79. The next segment takes 15 acknowledged ones at 79, 20
# at 83, 45 at 90, 485 at 97, 500 at 100, 78 at 104, 18 at 120, 9 at 150. The division by segments
# per ACK is left out.
cc bic bic_delayed_ack=0
open iw=100 rtt=20ms rto=204ms
write 100
lose 1
ack 3        => ssthresh 79, state Recovery
write bulk
round        => cwnd 79, state Open              # its last ACK is the first of the 15
ack 13       => cwnd 79
ack 1        => cwnd 80
ack 55       => cwnd 82
ack 1        => cwnd 83
ack 19       => cwnd 83
ack 1        => cwnd 84
ack 178      => cwnd 89
ack 1        => cwnd 90
ack 44       => cwnd 90
ack 1        => cwnd 91
ack 1980     => cwnd 96
ack 1        => cwnd 97
ack 484      => cwnd 97
ack 1        => cwnd 98
ack 984      => cwnd 99
ack 1        => cwnd 100
ack 499      => cwnd 100
ack 1        => cwnd 101
ack 1529     => cwnd 103
ack 1        => cwnd 104
ack 77       => cwnd 104
ack 1        => cwnd 105
ack 478      => cwnd 119
ack 1        => cwnd 120
ack 17       => cwnd 120
ack 1        => cwnd 121
ack 338      => cwnd 149
ack 1        => cwnd 150
ack 8        => cwnd 150
ack 1        => cwnd 151
