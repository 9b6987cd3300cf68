cc westwood

# Nothing measured yet: two segments.
open iw=40 rtt=20ms rto=204ms
write bulk
lose 1
ack 3        => state Recovery, ssthresh 20
round        => state Open, cwnd 2, ssthresh 2

# Timeout: ssthresh is the share (8), once per window; RTTmin is measured anew, on a path of 200 ms.
open iw=10 rtt=100ms rto=304ms
+300ms write 26 x40
write nothing
round
write 40
lose 40
rto          => cwnd 1, ssthresh 8, state Loss
lose 1
rto          => cwnd 1, ssthresh 8
rtt 200ms
round        => cwnd 2
round        => cwnd 4

# ECN echo: the share as well. It is not undone.
open iw=10 rtt=100ms rto=304ms
+300ms write 26 x40
ack 1 ece    => state Cwr, ssthresh 26
+300ms write 26 x3   => state Open, ssthresh 8

# Undo: the window stays what it was, the share is not applied.
open iw=10 rtt=100ms rto=304ms
+300ms write 26 x40  => cwnd 52
hold 3
ack 3        => state Recovery
ack 20
arrive
+300ms write 26 x3   => state Open, cwnd 52, ssthresh inf

# A repaired tail loss and a drop in the local queue: the share.
open iw=10 rtt=100ms rto=304ms
+300ms write 26 x40
round
write 20
lose 1 at 20
round
tlp          => retransmitted 1
round        => flight 0, state Open
write 10
ack 1        => state Open, lost 0, cwnd 9, ssthresh 9
open iw=10 rtt=100ms rto=304ms
+300ms write 26 x40
local-drop   => state Cwr, ssthresh 26
+300ms write 26 x3   => state Open, ssthresh 8

# Growth needs the window in use.
open iw=10 rtt=100ms
write 4
round        => cwnd 10

# Chosen on a living connection: the window stays.
cc std
open iw=10
write bulk
round x3     => cwnd 80
switch westwood => cc westwood, cwnd 80
round        => cwnd 160
