cc hybla

# rho follows the smallest smoothed round-trip time; a longer one changes nothing.
open rtt=50ms rto=304ms
rtt 100ms
write bulk   => cwnd 2
round        => cwnd 8                           # rho stays 2: +3 for each of two ACKs

# hybla_rtt0: twice the path's round-trip time is Reno.
cc hybla hybla_rtt0=100
open rtt=100ms
write bulk   => cwnd 1
round x3     => cwnd 8

# Growth needs the window in use.
cc hybla
open rtt=50ms
write 2
round        => cwnd 8
write 2
round        => cwnd 8

# Timeout: half the window; in state Loss Reno's growth.
open rtt=50ms
write bulk
round x3     => cwnd 128
lose 128
rto          => cwnd 1, ssthresh 64, state Loss
round        => cwnd 2
round        => cwnd 4

# ECN echo, undo.
open rtt=50ms
write bulk
round x2     => cwnd 32
ack 1 ece    => ssthresh 16, state Cwr
round x2     => state Open, ssthresh 16
open rtt=50ms
write bulk
round x2     => cwnd 32
hold 3
ack 3        => ssthresh 16, state Recovery
ack 20
arrive
round x2     => state Open, ssthresh inf

# A repaired tail loss and a drop in the local queue: half the window.
open rtt=50ms
write bulk
round x2     => cwnd 32
write nothing
round
write 40
lose 1 at 40
round
tlp          => retransmitted 1
round        => flight 0, state Open
write 10
ack 1        => state Open, lost 0
open rtt=50ms
write bulk
round x2     => cwnd 32
local-drop   => ssthresh 16, state Cwr

# Chosen on a living connection the window stays, and ssthresh, although the limit of 65535 is set.
cc std
open iw=40 rtt=600ms rto=1204ms
write 40
lose 1
ack 3        => ssthresh 20
write bulk
round x2     => state Open, cwnd 21, ssthresh 20
switch hybla => cc hybla, cwnd 21, ssthresh 20
round x2     => cwnd 460
