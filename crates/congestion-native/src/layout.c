/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Offsets of the socket's fields as C lays them out, for the test of socket.rs. */
#include "cc.h"

#define F(field) { #field, offsetof(struct tcp_sock, field) }

const struct {
	const char *name;
	size_t offset;
} cc_layout[] = {
	F(inet_conn.icsk_inet.sk.__sk_common.skc_daddr),
	F(inet_conn.icsk_inet.sk.sk_pacing_rate),
	F(inet_conn.icsk_inet.sk.sk_pacing_status),
	F(inet_conn.icsk_inet.sk.cc_jiffies),
	F(inet_conn.icsk_inet.sk.cc_clock_us),
	F(inet_conn.icsk_inet.sk.cc_parameters),
	F(inet_conn.icsk_rto), F(inet_conn.icsk_ca_state), F(inet_conn.icsk_ca_priv),
	F(snd_cwnd), F(snd_cwnd_cnt), F(snd_cwnd_stamp), F(snd_cwnd_clamp), F(snd_ssthresh),
	F(prior_cwnd), F(prior_ssthresh), F(high_seq), F(packets_out), F(max_packets_out),
	F(sacked_out), F(lost_out), F(retrans_out), F(lost), F(delivered), F(total_retrans),
	F(data_segs_out), F(bytes_acked), F(bytes_sent), F(bytes_retrans), F(snd_una),
	F(snd_nxt), F(write_seq), F(snd_wnd), F(mss_cache), F(srtt_us), F(tcp_mstamp),
	F(lsndtime), F(is_cwnd_limited),
	{ "sizeof", sizeof(struct tcp_sock) },
	{ NULL, 0 },
};
