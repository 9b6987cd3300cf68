# NCWV-2: cwnd 100, pipeACK 20, loss with 30 in flight: ssthresh is 15 during recovery; five
# segments are retransmitted, so it ends at (30 - 5) / 2 = 12.
cc newcwv
open iw=80 rtt=100ms after_idle=0
write 20
round        => cwnd 100, flight 0               # pipeACK is undefined: growth as RFC 5681
write 20
round        => cwnd 100, flight 0               # pipeACK is 20: no growth without a full window
write 30     => flight 30
lose 5
ack 3        => ssthresh 15, state Recovery
round        => retransmitted 5
round        => state Open, cwnd 12, ssthresh 12, flight 0
# pipeACK is undefined again: growth as RFC 5681.
write 12
round        => cwnd 13

# A retransmission that is lost too counts once.
open iw=80 rtt=100ms after_idle=0
write 20
round
write 20
round
write 30
lose 5
ack 25       => retransmitted 5, state Recovery
lose 1
round        => state Recovery
round        => retransmitted 6, state Open, cwnd 12, ssthresh 12

# A larger pipeACK than the flight: cwnd 100, pipeACK 40, 10 in flight.
open iw=60 rtt=100ms after_idle=0
write 40
round        => cwnd 100
write 10
lose 1
ack 3        => ssthresh 20, state Recovery
round        => retransmitted 1
round        => state Open, cwnd 19, ssthresh 19
