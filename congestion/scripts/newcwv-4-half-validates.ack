# NCWV-4: pipeACK of exactly 50 validates a window of 100, which grows although it is not full, but
# not one of 101.
cc newcwv
open iw=50 rtt=100ms after_idle=0
write 50
round        => cwnd 100, flight 0
write 20
round        => cwnd 101
open iw=51 rtt=100ms after_idle=0
write 49
round        => cwnd 100, flight 0
write 20
round        => cwnd 100

# pipeACK is the largest sample of one second: 30 segments are remembered so long, while 10 per
# round trip are sent.
open iw=60 rtt=100ms after_idle=0
write 60
lose 1
ack 3        => ssthresh 30
write bulk
round x2     => state Open, cwnd 31
round x2     => cwnd 33
write nothing
round        => cwnd 34
+30ms write 10
+130ms write 10 x6   => cwnd 35
+130ms write 10 x4   => cwnd 35
+130ms write 10 x20  => cwnd 35
