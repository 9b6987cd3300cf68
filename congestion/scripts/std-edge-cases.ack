cc std

# Timeout: half the flight, once per window, then slow start from one segment.
open iw=40 after_idle=0
write bulk
lose 40
rto          => cwnd 1, ssthresh 20, state Loss
lose 1
rto          => cwnd 1, ssthresh 20
round        => cwnd 2
round        => cwnd 4

# ECN echo: as a loss, and not undone.
open iw=40 after_idle=0
write bulk
ack 1 ece    => ssthresh 19, state Cwr
round x2     => state Open, ssthresh 19

# Undo: the late originals and the reported duplicates restore the window.
open iw=40 after_idle=0
write bulk
hold 3
ack 3        => ssthresh 21, state Recovery
ack 20
arrive
round x2     => state Open, ssthresh inf

# A repaired tail loss and a local drop: half the flight.
open iw=40 after_idle=0
write 40
lose 1 at 40
round        => cwnd 79
tlp          => retransmitted 1
round        => flight 0, state Open
write 10
ack 1        => ssthresh 4, state Open
open iw=40 after_idle=0
write bulk
local-drop   => ssthresh 20, state Cwr

# One ACK for many segments grows the window as far as many ACKs, unless told otherwise.
open iw=10 after_idle=0
write bulk
stretch 10   => cwnd 20
cc std std_ss_mode=1
open iw=10 after_idle=0
write bulk
stretch 10   => cwnd 11
