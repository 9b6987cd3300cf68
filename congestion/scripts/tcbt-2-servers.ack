# A host's cache holds for the server that filled it.
cc tcbt
open iw=40 to=10.1.1.1
close
open iw=10 to=10.1.1.1 server=1  => cwnd 10
close
open iw=10 to=10.1.1.1           => cwnd 40
close
