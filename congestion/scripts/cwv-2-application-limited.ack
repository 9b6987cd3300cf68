# CWV-2: two segments each 90 ms, at most four in flight: once per RTO the window becomes the mean of
# itself and what was used.
cc cwv
open iw=80 rtt=105ms rto=305ms after_idle=0
write 80
round                => cwnd 81                  # full when the first ACK arrived, not after it
+90ms write 2 x4     => cwnd 81, flight 4
+90ms write 2        => cwnd 80                  # 80 segments were in use since then
+90ms write 2 x4     => cwnd 42
+90ms write 2 x4     => cwnd 23
+90ms write 2 x4     => cwnd 13
+90ms write 2 x4     => cwnd 8
+90ms write 2 x4     => cwnd 6
+90ms write 2 x4     => cwnd 5, ssthresh inf

# Half a window of slow start is no full window; for cwv_gate=1 it suffices.
open iw=10 rtt=100ms rto=304ms after_idle=0
write 8
round        => cwnd 10
write 10
ack 1        => cwnd 11                          # it was full when this ACK arrived,
ack 9        => cwnd 11                          # but not when these did
cc cwv cwv_gate=1
open iw=10 rtt=100ms rto=304ms after_idle=0
write 8
round        => cwnd 16

# Data that waits for the receiver is no lack of data: the window stays.
cc cwv
open iw=40 rtt=100ms rto=304ms after_idle=0
rwnd 10
write bulk   => flight 10
round x10    => cwnd 40, flight 10
# The decay starts from what the receiver allows: (10 + 10) / 2, then half of it.
write nothing
round        => cwnd 10, flight 0
+300ms write 1       => cwnd 5
