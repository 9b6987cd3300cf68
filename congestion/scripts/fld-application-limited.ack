# The window grows only while it is in use: a flight above a third of it.
cc fld
open iw=10
write 3
round        => cwnd 10
write 4
round        => cwnd 12              # 12 is three times the flight
cc fld fld_gate=0
open iw=10
write 3
round        => cwnd 16
# After idle the kernel's own restart applies.
cc fld
open iw=10
write bulk
round x2     => cwnd 90
write nothing
round        => cwnd 270
+700ms write 300 => cwnd 67, flight 67, ssthresh inf
