# HyStart: slow start ends in a round trip whose smallest round-trip time exceeds that of the path by
# an eighth (of eight samples); without HyStart it goes on.
cc cubic9438 cubic_hystart=1
open iw=20 rtt=100ms rto=404ms
write bulk
round        => cwnd 40, ssthresh inf
rtt 130ms
round        => cwnd 80, ssthresh inf          # its samples are still of the shorter path
round        => cwnd 91, ssthresh 88           # the ninth sample ends slow start
cc cubic9438
open iw=20 rtt=100ms rto=404ms
write bulk
round        => cwnd 40
rtt 130ms
round x2     => cwnd 160, ssthresh inf
