# NCWV-3: ssthresh 30, cwnd 101. Each period (300 s, here 3 s) in the non-validated phase halve the window, down to the
# initial one; ssthresh remembers three quarters of the largest. The phase begins one second (the
# sampling period) after the last sample.
cc newcwv newcwv_nvp_s=3
open iw=10 rtt=100ms after_idle=0
write bulk
round x2     => cwnd 40
stretch 20   => cwnd 60
lose 1
ack 3        => ssthresh 31, state Recovery
round x2     => state Open, ssthresh 30      # (62 - 1) / 2: slow start is ahead of pipeACK
round x69    => cwnd 100
write nothing
round        => cwnd 101, flight 0
+3s write 1    => cwnd 101, ssthresh 30
+2s write 1      => cwnd 50, ssthresh 75
+3s write 1    => cwnd 25, ssthresh 75
+3s write 1    => cwnd 12, ssthresh 75
+3s write 1    => cwnd 10, ssthresh 75
+3s write 1    => cwnd 10, ssthresh 75
# Two periods at once; in use again, the window is validated and slow-starts up to ssthresh.
open iw=10 rtt=100ms after_idle=0
write bulk
round x4     => cwnd 160
write nothing
round        => cwnd 320
+7s write bulk => cwnd 80, ssthresh inf
round        => cwnd 160
# Five minutes where nothing else is asked for.
cc newcwv
open iw=50 rtt=100ms after_idle=0
native ten minutes are not waited for
write 50
round        => cwnd 100
+300s write 1    => cwnd 100
+2s write 1      => cwnd 50
