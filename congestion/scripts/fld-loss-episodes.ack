# What one Relentless episode counts.
cc fld

# A single loss.
open iw=40
write bulk
lose 1 at 5
ack 4        => cwnd 48
round
round        => state Open, ssthresh 47, lost 1

# A lost retransmission counts again ...
open iw=40
write bulk
lose 1
ack 3        => ssthresh 39, retransmitted 1, state Recovery
lose 1 at 39
round        => ssthresh 39
round        => state Recovery, lost 2, retransmitted 2
round        => state Open, ssthresh 38

# ... unless fld_lost_rtx=0.
cc fld fld_lost_rtx=0
open iw=40
write bulk
lose 1
ack 3        => ssthresh 39, retransmitted 1, state Recovery
lose 1 at 39
round
round        => state Recovery, lost 2, retransmitted 2
round        => state Open, ssthresh 39

# Mathis' count of retransmissions sees both transmissions too.
cc fld fld_loss_count=1
open iw=40
write bulk
lose 4
ack 3        => state Recovery, ssthresh 39      # nothing retransmitted yet: at least one
round        => ssthresh 36
round        => state Open, ssthresh 36

# Slow start may be told to halve; congestion avoidance then stays Relentless.
cc fld fld_ss_loss=1
open iw=40
write bulk
lose 4
ack 3        => ssthresh 20
round x3     => state Open
lose 2
round x2     => state Open, lost 6

# A recovery that begins on the ACK that ends another counts anew only what is newly lost.
cc fld
open iw=40
write bulk
lose 1
ack 3        => ssthresh 39, retransmitted 1, state Recovery
lose 1 at 39                                     # the retransmission
ack 36
lose 1 at 10                                     # of what was sent since
round x2     => lost 3
round x2     => state Open, ssthresh 37

# Never below two segments.
cc fld
open iw=4
write bulk
lose 3
round x8     => ssthresh 2
