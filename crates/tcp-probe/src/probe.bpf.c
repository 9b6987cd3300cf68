/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Samples of TCP senders: one record per segment received, change of the congestion
 * state and retransmission of the IPv4 sockets of one network namespace.
 *
 * Records are read by polling, so none wakes the reader: the measured machine is
 * disturbed as little as possible.
 */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#define AF_INET			2
#define TCP_INFINITE_SSTHRESH	0x7fffffff
#define BPF_MAP_TYPE_RINGBUF	27
#define BPF_RB_NO_WAKEUP	1

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	possible_net_t skc_net;
};

struct sock {
	struct sock_common __sk_common;
	struct {
		int len;
	} sk_backlog;
	unsigned long sk_pacing_rate;
	__u32 sk_pacing_status;
};

struct inet_connection_sock {
	__u8 icsk_ca_state : 5;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	__u32 snd_cwnd;
	__u32 snd_ssthresh;
	__u32 prior_cwnd;
	__u32 srtt_us;
	__u32 packets_out;
	__u32 sacked_out;
	__u32 lost_out;
	__u32 retrans_out;
	__u32 delivered;
	__u32 lost;
	__u32 total_retrans;
	__u32 segs_in;
};

struct skb_shared_info {
	unsigned short gso_segs;
};

struct sk_buff {
	unsigned char *head;
	unsigned int end;
};

#pragma clang attribute pop

enum event { EVENT_ACK, EVENT_STATE, EVENT_RETRANSMIT, EVENT_END };

/* Of the connection, from the kernel's tcp_states.h. */
enum { TCP_ESTABLISHED = 1, TCP_CLOSE_WAIT = 8 };

/* Mirrored in record.rs. */
struct record {
	__u64 time_ns;		/* CLOCK_MONOTONIC */
	__u64 pacing_rate;	/* bytes per second, 0 when not paced */
	__u32 local_address;	/* network order, as the remote one */
	__u32 remote_address;
	__u16 local_port;	/* host order, as the remote one */
	__u16 remote_port;
	__u8 event;
	__u8 state;
	__u16 segments;		/* arrived as one; 0 if the event is no arrival */
	__u32 cwnd;
	__u32 ssthresh;
	__u32 srtt_us;		/* in eighths of a microsecond */
	__u32 in_flight;
	__u32 delivered;
	__u32 lost;
	__u32 retransmitted;
	__u32 segments_in;	/* arrived so far; 0 while some wait for the socket's owner */
};

const volatile __u32 namespace_inode = 0;

/* Records that found the buffer full. */
__u64 overruns = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} records SEC(".maps");

static __always_inline void sample(const struct sock *sk, enum event event, int new_state,
				   __u16 segments)
{
	const struct sock_common *common = &sk->__sk_common;
	const struct tcp_sock *tp;
	struct record *record;

	if (common->skc_family != AF_INET || common->skc_net.net->ns.inum != namespace_inode)
		return;
	/* A socket that is reset forgets its peer before its last change of state (tcp_disconnect). */
	if (!common->skc_dport)
		return;
	tp = bpf_skc_to_tcp_sock((void *)sk);
	if (!tp)
		return;
	record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);
	if (!record) {
		__sync_fetch_and_add(&overruns, 1);
		return;
	}
	record->time_ns = bpf_ktime_get_ns();
	record->pacing_rate = sk->sk_pacing_status ? sk->sk_pacing_rate : 0;
	record->local_address = common->skc_rcv_saddr;
	record->remote_address = common->skc_daddr;
	record->local_port = common->skc_num;
	record->remote_port = bpf_ntohs(common->skc_dport);
	record->event = event;
	record->state = new_state >= 0 ? new_state
				       : BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	record->segments = segments;
	record->ssthresh = tp->snd_ssthresh;
	/* No ssthresh is larger: ssthresh() was skipped. cc_repair() takes this window. */
	record->cwnd = record->ssthresh > TCP_INFINITE_SSTHRESH ? tp->prior_cwnd : tp->snd_cwnd;
	record->srtt_us = tp->srtt_us;
	record->in_flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	record->delivered = tp->delivered;
	record->lost = tp->lost;
	record->retransmitted = tp->total_retrans;
	record->segments_in = sk->sk_backlog.len ? 0 : tp->segs_in;
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

/* As tcp_segs_in() counts: a segment in the backlog absorbs later ones. */
static __always_inline __u16 segments_of(struct sk_buff *skb)
{
	struct skb_shared_info *info = (void *)(skb->head + skb->end);
	__u16 segments = BPF_CORE_READ(info, gso_segs);

	return segments ? segments : 1;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(segment_received, struct sock *sk, struct sk_buff *skb)
{
	sample(sk, EVENT_ACK, -1, segments_of(skb));
	return 0;
}

SEC("tp_btf/tcp_cong_state_set")
int BPF_PROG(state_set, struct sock *sk, __u8 state)
{
	sample(sk, EVENT_STATE, state, 0);
	return 0;
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(retransmit, struct sock *sk)
{
	sample(sk, EVENT_RETRANSMIT, -1, 0);
	return 0;
}

/* The last reading of the counters: later segments pass no tracepoint. */
SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(connection_ends, struct sock *sk, int old_state)
{
	if (old_state == TCP_ESTABLISHED || old_state == TCP_CLOSE_WAIT)
		sample(sk, EVENT_END, -1, 0);
	return 0;
}

char _license[] SEC("license") = "Dual MIT/GPL";
