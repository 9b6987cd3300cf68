# NCWV-1: an idle period leaves the window alone.
cc newcwv
open iw=100 rtt=100ms after_idle=0
write bulk
round        => cwnd 200
write nothing
round        => cwnd 400, flight 0
+5s write 100    => cwnd 400, flight 100, ssthresh inf
# The path was not seen to carry 400: growth needs a full window now.
round        => cwnd 400
write 400
ack 1        => cwnd 401
