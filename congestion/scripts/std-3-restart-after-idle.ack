# STD-3: after 1.2 s without sending only the restart window leaves.
cc std
open iw=10 rtt=100ms rto=304ms after_idle=0
write bulk
round x4            => cwnd 160
write nothing
round               => cwnd 320, flight 0
+1.2s write 150     => cwnd 10, flight 10, ssthresh inf
# The path is known to be fine after less than one RTO.
write bulk
round x4
write nothing
round               => cwnd 320, flight 0
+200ms write 150    => cwnd 320, flight 150
# std_rw=1 is the restart window of the study of application-limited flows.
cc std std_rw=1
open iw=10 rtt=100ms rto=304ms after_idle=0
write 100
finish
+1.2s write 150     => cwnd 1, flight 1
# A window below the restart window stays.
cc std
open iw=4 after_idle=0
write 1
+1.2s write 150     => cwnd 4, flight 4
