# WW-1: 260 segments of 1448 bytes each 300 ms are 10 Mbit/s; at 100 ms that is a share of 86. The
# window is far larger when the loss comes.
cc westwood
open iw=10 rtt=100ms rto=304ms
native a path that spreads these bursts lowers their rate by 5 %
+300ms write 260 x60
lose 1
ack 3        => state Recovery, ssthresh 395     # Reno's half during recovery
+300ms write 260 x2  => state Open, ssthresh 86

# By jiffies of 4 ms, as Linux's module.
cc westwood ww_clock=1
open iw=10 rtt=100ms rto=304ms
native a path that spreads these bursts lowers their rate by 5 %
+300ms write 260 x60
lose 1
+300ms write 260 x2  => state Open, ssthresh 86

# 26 segments are 1 Mbit/s, a share of 8.67.
cc westwood
open iw=10 rtt=100ms rto=304ms
+300ms write 26 x40
lose 1
ack 3        => state Recovery
+300ms write 26 x3   => state Open, ssthresh 8
cc westwood ww_clock=1
open iw=10 rtt=100ms rto=304ms
+300ms write 26 x40
lose 1
ack 3        => state Recovery
+300ms write 26 x3   => state Open, ssthresh 8
