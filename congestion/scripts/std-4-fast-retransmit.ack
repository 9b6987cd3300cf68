# STD-4: a loss from a flight of 40.
cc std
open iw=40 after_idle=0
write bulk   => flight 40
lose 1
ack 1        => state Disorder, cwnd 40
ack 2        => state Recovery, ssthresh 21      # limited transmit has sent two more
round x2     => state Open, ssthresh 21
# The same with the flight held at 40.
open iw=40 after_idle=0
write 40     => flight 40
lose 1
ack 3        => state Recovery, ssthresh 20
round        => retransmitted 1
round        => state Open, cwnd 20, ssthresh 20
write bulk   => flight 20
round        => cwnd 21
round        => cwnd 22
