# A newcomer takes nothing from the connections of another server.
cc tcbe
open a iw=40 to=10.1.1.1         => cwnd 40
open b iw=10 to=10.1.1.1 server=1 => cwnd 10
open c iw=10 to=10.1.1.1         => cwnd 20
group 10.1.1.1/32                => members 2, cwnd_sum 60
group 10.1.1.1/32 server 1       => members 1, cwnd_sum 10
