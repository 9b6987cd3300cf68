# VEG-1: baseRTT is 100 ms. With 20 segments and 111 ms 2 of them wait: avoidance holds. At 105 ms
# fewer than 2 wait: it grows. At 130 ms more than 4: it shrinks. A decision looks at the round trip
# that has ended, so a change of the path shows two round trips later.
cc vegas
open iw=34 rtt=100ms rto=404ms
write 34
lose 1
ack 3        => ssthresh 17, state Recovery
write bulk
round x2     => state Open, cwnd 18, ssthresh 17
rtt 111ms
round x2     => cwnd 20
round        => cwnd 20
round x5     => cwnd 20
rtt 105ms
round        => cwnd 20
round        => cwnd 21
round        => cwnd 22
round        => cwnd 23
rtt 130ms
round x2     => cwnd 25
round        => cwnd 24                          # 7 wait
round        => cwnd 23
round x5     => cwnd 18                          # 5 wait,
round x5     => cwnd 16                          # 4 do at 16, so it holds

# Slow start with more than 1 waiting: 80 * 100 / 111 + 1 = 73 segments, and avoidance follows.
open iw=20 rtt=100ms rto=404ms
write bulk
rtt 111ms
round        => cwnd 40
round        => cwnd 80, ssthresh inf
round        => cwnd 73, ssthresh 73
round        => cwnd 72, ssthresh 72
