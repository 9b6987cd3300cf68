# Below the least range a cut is noise; at it, it is not.
cc dcac
open a iw=40 to=10.1.1.1
a: write 9
a: lose 1
round x2                         => cwnd 20, ssthresh 20, state Open
rtt 103ms
write 1
round                            => cwnd 20
rtt 105ms
write 1
round                            => cwnd 17, ssthresh 17            # 20 - 20/8 is 17.5
close

# Without lowering ssthresh slow start resumes. A larger alpha. The threshold at the largest round-trip
# time.
cc dcac dca_ssthresh=0 dca_alpha_permille=500
open iw=40 to=10.1.2.1
write 9
lose 1
round x2
rtt 150ms
write 1
round                            => cwnd 10, ssthresh 20
cc dcac dca_lambda_pct=100
open iw=40 to=10.1.3.1
write 9
lose 1
round x2
rtt 150ms
write 1
round                            => cwnd 20                         # the largest so far is not beyond itself

# Once in so many round trips.
cc dcac dca_period=3
open iw=40 to=10.1.4.1
write 9
lose 1
round x2
rtt 150ms
write 1
round                            => cwnd 17
write 1
round                            => cwnd 17
write 1 
round                            => cwnd 17
idle 200ms
write 1
round                            => cwnd 15                         # 17.5 - 17.5/8 is 15.3

# Old round-trip times are forgotten: 200 ms of 3 s ago no longer lift the threshold above 140 ms.
cc dcac dca_rttmax_window_s=1
open iw=40 to=10.1.5.1
write 1
round
rtt 200ms
write 1
round
rtt 100ms
write 9
lose 1
round x2                         => cwnd 20
rtt 140ms
write 1
round                            => cwnd 20
+1.1s rtt 100ms
write 1
round
+1.1s write 1
round
rtt 140ms
write 1
round                            => cwnd 17

# Loss, timeout, ECN echo and undo are Reno's.
cc dcac
open iw=40 to=10.1.6.1
write 9
hold 1
ack 3                            => ssthresh 20, state Recovery
ack 5
arrive
round                            => cwnd 40, state Open
write 4
ack 1 ece                        => ssthresh 20, state Cwr
round
write 1
round                            => cwnd 20
write 4
lose 4
rto                              => cwnd 1, ssthresh 10, state Loss
switch std                       => cc std
group 10.1.6.1/32                => members 0, cwnd_sum 0, ssthresh_sum 0
