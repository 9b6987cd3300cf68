# INT-2: a fourth connection opens at C = 12: 3 each, without slow start. When it has nothing to send,
# and when it closes, the others share its part.
cc tcpint
open a iw=20 to=10.1.1.1
a: write 9
a: lose 1
a: round x2                      => cwnd 10, ssthresh 10, state Open
open b iw=10 to=10.1.1.1
open c iw=10 to=10.1.1.1
a: write bulk
b: write bulk
c: write bulk
round x2
group 10.1.1.1/32                => members 3, cwnd_sum 12
open d iw=10 to=10.1.1.1         => cwnd 3
d: write 2                       => flight 2
a: ack 4                         => cwnd 4                          # C is 13 by now
b: ack 1                         => cwnd 3
c: ack 1                         => cwnd 3
group 10.1.1.1/32                => members 4, cwnd_sum 13
round x2                         # d is done
group 10.1.1.1/32                => members 4, cwnd_sum 14
a:                               => cwnd 5
d: close
round
group 10.1.1.1/32                => members 3, cwnd_sum 15
b: close
c: close
a: round x2                      => cwnd 17
a: close
group 10.1.1.1/32                => members 0, cwnd_sum 0
open e iw=10 to=10.1.1.1         => cwnd 10, ssthresh inf            # nothing is remembered
