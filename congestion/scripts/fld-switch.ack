# Chosen on a living connection: the window stays, the rules change.
cc std
open iw=10
write bulk
round x3     => cwnd 80
switch fld   => cc fld, cwnd 80, flight 80
round        => cwnd 240
switch std   => cc std, cwnd 240
round        => cwnd 480
