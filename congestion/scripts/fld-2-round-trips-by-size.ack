# FLD-2: round trips that a flow needs, by its size (standard TCP: std-1b).
cc fld
open mss=1500
write 50kB
finish       => rounds 2
open mss=1500
write 100kB
finish       => rounds 3
open mss=1500
write 195kB
finish       => rounds 3
open mss=1500
write 300kB
finish       => rounds 4
open mss=1500
write 500kB
finish       => rounds 4
open mss=1500
write 1000kB
finish       => rounds 5
open mss=1500
write 1800kB
finish       => rounds 5
