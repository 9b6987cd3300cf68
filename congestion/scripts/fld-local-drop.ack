# A segment refused by the sender's own queue counts as one.
cc fld
open iw=40
write bulk
local-drop   => ssthresh 39, state Cwr
round x2     => state Open, ssthresh 39
