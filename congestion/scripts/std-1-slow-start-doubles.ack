# STD-1: 10, 20, 40, ... segments per round trip; 15, 45, 105, 225, 465, 945, 1905 kB.
cc std
open iw=10 mss=1500 after_idle=0
write bulk   => cwnd 10, flight 10, sent_kb 15, ssthresh inf
round        => cwnd 20, flight 20, sent_kb 45
round        => cwnd 40, flight 40, sent_kb 105
round        => cwnd 80, flight 80, sent_kb 225
round        => cwnd 160, flight 160, sent_kb 465
round        => cwnd 320, flight 320, sent_kb 945
round        => cwnd 640, flight 640, sent_kb 1905
