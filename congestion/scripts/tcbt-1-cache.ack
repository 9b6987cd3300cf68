# TCB-1: cached 40, closes at 20: 35 cached. Cached 20, closes at 40: 25.
cc tcbt
open iw=40 to=10.1.1.1
close
open iw=20 to=10.1.1.1           => cwnd 40, ssthresh inf           # the cache is larger than the initial window
write 19
lose 1
round x2                         => cwnd 20, ssthresh 20, state Open
close
open iw=10 to=10.1.1.1           => cwnd 35, ssthresh 20            # 40 - 20/4; ssthresh is new in the cache
group 10.1.1.1/32                => members 1, cwnd_sum 0
close
open iw=20 to=10.1.1.2
close
open iw=40 to=10.1.1.2           => cwnd 40                         # never below the initial window
close
open iw=10 to=10.1.1.2           => cwnd 25                         # 20 + 20/4
close

# Hosts have caches of their own, and so have connections beside each other: none.
open a iw=12 to=10.1.2.1
open b iw=10 to=10.1.2.2         => cwnd 10
open c iw=10 to=10.1.2.1         => cwnd 10
group 10.1.2.1/32                => members 2
a: close
c: close
open d iw=5 to=10.1.2.1          => cwnd 12                         # 12 + (10 - 12)/4 is 12 in whole segments
d: close
group 10.1.2.1/32                => members 0
