# STD-2: the application sends one segment each 120 ms; the window grows all the same.
cc std
open iw=10 rtt=100ms after_idle=0
+120ms write 1      => cwnd 10, flight 1
+120ms write 1      => cwnd 11
+120ms write 1      => cwnd 12
+120ms write 1 x28  => cwnd 40

# With std_applim_growth=0 it stands still, as in Linux.
cc std std_applim_growth=0
open iw=10 rtt=100ms after_idle=0
+120ms write 1 x30  => cwnd 10
