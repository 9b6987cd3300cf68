/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Offsets as C lays them out, for the tests of socket.rs and groups.rs. */
#include "cc_group.h"

struct entry {
	const char *name;
	size_t offset;
};

#define F(field) { #field, offsetof(struct tcp_sock, field) }

const struct entry cc_layout[] = {
	F(inet_conn.icsk_inet.sk.__sk_common.skc_daddr),
	F(inet_conn.icsk_inet.sk.__sk_common.skc_rcv_saddr),
	F(inet_conn.icsk_inet.sk.__sk_common.skc_dport),
	F(inet_conn.icsk_inet.sk.__sk_common.skc_family),
	F(inet_conn.icsk_inet.sk.__sk_common.cc_netns),
	F(inet_conn.icsk_inet.sk.__sk_common.skc_v6_daddr),
	F(inet_conn.icsk_inet.sk.__sk_common.skc_v6_rcv_saddr),
	F(inet_conn.icsk_inet.sk.sk_pacing_rate),
	F(inet_conn.icsk_inet.sk.sk_pacing_status),
	F(inet_conn.icsk_inet.sk.cc_jiffies),
	F(inet_conn.icsk_inet.sk.cc_clock_us),
	F(inet_conn.icsk_inet.sk.cc_parameters),
	F(inet_conn.icsk_inet.sk.cc_groups),
	F(inet_conn.icsk_inet.sk.cc_random_state),
	F(inet_conn.icsk_inet.sk.sk_max_pacing_rate),
	F(inet_conn.icsk_inet.sk.sk_pacing_shift),
	F(inet_conn.icsk_inet.inet_sport),
	F(inet_conn.icsk_rto), F(inet_conn.icsk_ca_state), F(inet_conn.icsk_ca_priv),
	F(snd_cwnd), F(snd_cwnd_cnt), F(snd_cwnd_stamp), F(snd_cwnd_clamp), F(snd_ssthresh),
	F(prior_cwnd), F(prior_ssthresh), F(high_seq), F(packets_out), F(max_packets_out),
	F(sacked_out), F(lost_out), F(retrans_out), F(lost), F(delivered), F(total_retrans),
	F(data_segs_out), F(bytes_acked), F(bytes_sent), F(bytes_retrans), F(snd_una),
	F(snd_nxt), F(write_seq), F(snd_wnd), F(mss_cache), F(srtt_us), F(tcp_mstamp),
	F(lsndtime), F(is_cwnd_limited), F(app_limited), F(delivered_mstamp), F(tcp_wstamp_ns),
	F(tcp_clock_cache), F(cc_rtt_min_us), F(cc_rttvar_us), F(cc_seed_srtt_us),
	F(cc_seed_rttvar_us), F(cc_shared),
	{ "sizeof", sizeof(struct tcp_sock) },
	{ NULL, 0 },
};

#define G(field) { #field, offsetof(struct cc_group_record, field) }
#define V(field) { #field, offsetof(struct cc_group, field) }

/* The record holds the key; both are followed by their size. */
const struct entry cc_group_layout[] = {
	G(time_ns), G(key.netns), G(key.family), G(key.plen), G(key.slot), G(key.prefix),
	G(key.server),
	G(local), G(remote), G(local_port), G(remote_port), G(note.kind), G(note.n),
	G(note.cwnd_tot), G(note.ssth_tot), G(note.cwnd), G(note.ssthresh),
	{ "record", sizeof(struct cc_group_record) },
	V(lock), V(n), V(rtt_us), V(gen), V(cwnd_tot), V(ssth_tot), V(ev), V(own),
	{ "group", sizeof(struct cc_group) },
	{ NULL, 0 },
};
