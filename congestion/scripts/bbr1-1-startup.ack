# Startup: until the bandwidth no longer grows the window grows by what was acknowledged. How much of
# it is in flight is the pacing's affair, so no flight is checked.
cc bbr1
open iw=10
write bulk   => cwnd 10, ssthresh inf
round        => cwnd 20
round        => cwnd 40
round        => cwnd 80
round        => cwnd 160

# An application that sends less does not stop it.
open iw=10
write 30
finish       => cwnd 40, ssthresh inf
+2s write 30 => cwnd 40
finish       => cwnd 70

# The choice of BBR on a living connection keeps the window.
cc std
open iw=10
write bulk
round x2     => cwnd 40
switch bbr1  => cwnd 40
round        => cwnd 80
