# HER-6: 10.1.2.3 and 10.1.2.200 share a group, 10.1.3.3 does not. IPv6 groups by 64 bits; an IPv4
# address in an IPv6 socket is IPv4.
cc heracles
open a to=10.1.2.3
open b to=10.1.2.200
open c to=10.1.3.3
open d to=fd00:1:2:3::1
open e to=fd00:1:2:3:ffff::1
open f to=fd00:1:2:4::1
open g to=::ffff:10.1.2.77
a: write 4
b: write 4
c: write 4
d: write 4
e: write 4
f: write 4
g: write 4
round
group 10.1.2.0/24                => members 3
group 10.1.3.0/24                => members 1
group fd00:1:2:3::/64            => members 2
group fd00:1:2:4::/64            => members 1

cc heracles her_plen4=32 her_plen6=48
open h to=10.1.2.3
open i to=10.1.2.200
open j to=fd00:1:2:3::1
open k to=fd00:1:2:4::1
h: write 4
i: write 4
j: write 4
k: write 4
round
group 10.1.2.3/32                => members 1
group fd00:1:2::/48              => members 2

cc heracles her_plen4=0 her_plen6=128
open l to=10.1.2.3
open m to=192.168.0.1
open n to=fd00:1:2:3::1
l: write 4
m: write 4
n: write 4
round
group 0.0.0.0/0                  => members 2
group fd00:1:2:3::1/128          => members 1
