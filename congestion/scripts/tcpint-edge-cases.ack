# A timeout while another member has ACKs is a loss of the group; alone C is 1.
cc tcpint
open a iw=20 to=10.1.1.1
open b iw=10 to=10.1.1.1
a: write 4
b: write bulk
a: lose 4
a: rto                           => cwnd 1, state Loss
group 10.1.1.1/32                => members 2
b: close
a: close
open c iw=20 to=10.1.2.1
c: write 4
c: lose 4
c: rto                           => cwnd 1, ssthresh 10, state Loss
open d iw=10 to=10.1.2.1         => cwnd 1, ssthresh 5

# A loss that was none gives the reduction back; an ECN echo is a loss.
open e iw=20 to=10.1.3.1
e: write 9
e: hold 1
e: ack 3                         => ssthresh 10, state Recovery
e: ack 5
e: arrive
round
e:                               => cwnd 20, state Open
e: write 4
e: ack 1 ece                     => ssthresh 10, state Cwr

# Hosts have windows of their own, unless a prefix is asked for; a switch on a living connection starts
# from its window.
open f iw=10 to=10.1.4.1
open g iw=10 to=10.1.4.2         => cwnd 10
cc tcpint tcpint_plen4=24
open h iw=10 to=10.1.5.1
h: write 4
open i iw=10 to=10.1.5.2         => cwnd 5
group 10.1.5.0/24                => members 2
i: switch std                    => cwnd 5
group 10.1.5.0/24                => members 1
open j iw=30 to=10.1.6.1
j: write 4
round
j: switch std
j: write 4
j: switch tcpint tcpint_plen4=24 => cwnd 30
group 10.1.6.0/24                => members 1
