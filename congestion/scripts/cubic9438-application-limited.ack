# Time in which the application limits the flight does not count: t stands at 1.2 s for 5 s.
cc cubic9438
open iw=100 rtt=200ms rto=404ms
write 100
lose 1
ack 3
write bulk
round x7     => cwnd 87
write nothing
round        => cwnd 89, flight 0
+200ms write 10 x25  => cwnd 89
write bulk
round x5     => cwnd 97
round x5     => cwnd 99
# Idle time does not count either; without the kernel's restart the window stays.
open iw=100 rtt=200ms rto=404ms after_idle=0
write 100
lose 1
ack 3
write bulk
round x7     => cwnd 87
write nothing
round        => cwnd 89, flight 0
+5s write bulk => cwnd 89, flight 89
round x5     => cwnd 97
# In slow start half a window in flight is needed.
open iw=10
write 4
round        => cwnd 10
write 6
round        => cwnd 12
