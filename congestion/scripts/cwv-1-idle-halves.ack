# CWV-1: after idle the window is halved for each RTO of 304 ms that passed, down to one segment.
cc cwv
open iw=81 rtt=100ms rto=304ms after_idle=0
write 20
finish       => cwnd 81
+100ms write 1   => cwnd 81, flight 1            # 200 ms after the last segment was sent
open iw=81 rtt=100ms rto=304ms after_idle=0
write 20
finish
+250ms write 81  => cwnd 40, flight 40           # 350 ms
open iw=81 rtt=100ms rto=304ms after_idle=0
write 20
finish
+600ms write 81  => cwnd 20, flight 20
open iw=81 rtt=100ms rto=304ms after_idle=0
write 20
finish
+900ms write 81  => cwnd 10, flight 10
open iw=81 rtt=100ms rto=304ms after_idle=0
write 20
finish
+1.2s write 81   => cwnd 5, flight 5
open iw=81 rtt=100ms rto=304ms after_idle=0
write 20
finish
+1.9s write 81   => cwnd 1, flight 1, ssthresh inf
# The window was full: it grows.
round        => cwnd 2, flight 2

# cwv_floor=0 leaves the initial window, as Linux.
cc cwv cwv_floor=0
open iw=10 rtt=100ms rto=304ms after_idle=0
write bulk
round x3     => cwnd 80
write nothing
round        => cwnd 81, flight 0
+1.9s write 81   => cwnd 10, flight 10
# A smaller window stays as it is.
open iw=4 rtt=100ms rto=304ms after_idle=0
write 1
finish
+1.9s write 81   => cwnd 4

# One RTT of 100 ms as the unit; less than an RTO of silence is not idle.
cc cwv cwv_unit=1
open iw=80 rtt=100ms rto=304ms after_idle=0
write 80
round        => cwnd 81, flight 0
+150ms write 1   => cwnd 81                      # 250 ms
round
+250ms write 81  => cwnd 10, flight 10           # 350 ms
# A window of one segment leaves a round trip between segments, and grows.
open iw=1 rtt=100ms rto=304ms after_idle=0
write bulk
round        => cwnd 2
round        => cwnd 4
