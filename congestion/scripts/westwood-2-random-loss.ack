# WW-2: losses on a path that is not full leave the window at what arrives per round trip, which the
# filters show as it was some round trips ago, instead of half.
cc std
open iw=86 rtt=100ms rto=304ms
write 86
lose 1
ack 3        => state Recovery, ssthresh 43
write bulk
round x3     => state Open, cwnd 45
switch westwood => cwnd 45
round x60    => cwnd 105
lose 1
ack 3        => state Recovery, ssthresh 52
round        => state Open, cwnd 91, ssthresh 91
round x20    => cwnd 111
