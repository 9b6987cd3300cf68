# Chosen on a living connection the window stays; a first epoch without a loss has K = 0.
cc std
open iw=10
write bulk
round x3     => cwnd 80
switch cubic9438 => cc cubic9438, cwnd 80
round        => cwnd 160
lose 1
round x2     => state Open, ssthresh 113
switch std   => cwnd 113
round        => cwnd 114
