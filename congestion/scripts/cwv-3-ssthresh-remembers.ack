# CWV-3: ssthresh 20, cwnd 64, three RTO idle: ssthresh 48, cwnd 8, then slow start up to 48.
cc cwv
open iw=40 rtt=100ms rto=304ms after_idle=0
write 40
lose 1
ack 3        => ssthresh 20, state Recovery
write bulk
round x2     => cwnd 21, ssthresh 20, state Open
round x43    => cwnd 64, ssthresh 20
write nothing
round        => cwnd 64, flight 0
+900ms write bulk    => cwnd 8, flight 8, ssthresh 48     # 1 s after the last segment
round        => cwnd 16
round        => cwnd 32
round        => cwnd 48
round        => cwnd 49, ssthresh 48

# cwv_ssthresh=1 remembers all of it.
cc cwv cwv_ssthresh=1
open iw=40 rtt=100ms rto=304ms after_idle=0
write 40
lose 1
ack 3        => ssthresh 20
write bulk
round x45    => cwnd 64
write nothing
round
+900ms write bulk    => cwnd 8, ssthresh 64
# The memory is also made where the application limits: 8 segments were used.
write nothing
round        => flight 0
+100ms write 2 x8    => ssthresh 64
