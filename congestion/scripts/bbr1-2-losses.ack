# A loss: in the first round trip of the recovery as much is sent as arrives, then the window is what
# it was. ssthresh is never lowered.
cc bbr1
open iw=10
write bulk
round x3     => cwnd 80
lose 1
ack 3        => cwnd 81, state Recovery, lost 1, ssthresh inf
ack 70       => cwnd 81, state Recovery
round x2     => state Open, ssthresh inf

# A timeout: one segment, then at least four; slow start as in Startup.
open iw=10
write bulk
round x3     => cwnd 80
lose 80
rto          => cwnd 1, state Loss, ssthresh inf
round        => cwnd 4, state Loss
round        => cwnd 8, state Loss

# BBR version 1 does not react to an ECN echo, nor to a drop in the sender's own queue.
open iw=10
write bulk
round x3     => cwnd 80
ack 1 ece    => cwnd 81, state Cwr
ack 79       => cwnd 160
open iw=10
write bulk
round x3     => cwnd 80
local-drop   => cwnd 80, state Cwr
ack 80       => cwnd 160
