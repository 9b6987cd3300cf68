# CUB-4: ssthresh is 0.7 of the flight, or of the window as in Linux.
cc cubic9438
open iw=100
write 50
lose 1
ack 3        => ssthresh 35, state Recovery
cc cubic9438 cubic_flight=1
open iw=100
write 50
lose 1
ack 3        => ssthresh 70, state Recovery
