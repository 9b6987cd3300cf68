# STD-5: the window is far larger than the flight.
cc std
open iw=100 after_idle=0
write 4      => flight 4, cwnd 100
lose 1
ack 3        => state Recovery, ssthresh 2
cc std std_flight=1
open iw=100 after_idle=0
write 4
lose 1
ack 3        => state Recovery, ssthresh 50
