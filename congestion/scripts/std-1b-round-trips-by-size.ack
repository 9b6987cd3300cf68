# Round trips that a flow needs, by its size: what FLD-2 is compared with.
cc std
open mss=1500 after_idle=0
write 50kB
finish       => rounds 3
open mss=1500 after_idle=0
write 100kB
finish       => rounds 3
open mss=1500 after_idle=0
write 195kB
finish       => rounds 4
open mss=1500 after_idle=0
write 300kB
finish       => rounds 5
open mss=1500 after_idle=0
write 500kB
finish       => rounds 6
open mss=1500 after_idle=0
write 1000kB
finish       => rounds 7
open mss=1500 after_idle=0
write 1800kB
finish       => rounds 7
