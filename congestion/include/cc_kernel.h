/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel's meaning of cc.h: BPF struct_ops.
 *
 * The structs hold only the fields that algorithms use. libbpf relocates each
 * access to the running kernel's layout and matches the members of
 * tcp_congestion_ops by name (CO-RE), so their order here is free.
 */
#pragma once

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

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

struct in6_addr {
	union {
		__be32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	unsigned short skc_family;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	unsigned long sk_pacing_rate;
	unsigned long sk_max_pacing_rate;
	u32 sk_pacing_status;
	u8 sk_pacing_shift;
};

struct inet_sock {
	struct sock sk;
	__be16 inet_sport;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	__u32 icsk_rto;
	__u8 icsk_ca_state : 5;
	u64 icsk_ca_priv[13];
};

struct minmax_sample {
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_stamp;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 prior_cwnd;
	u32 prior_ssthresh;
	u32 high_seq;
	u32 packets_out;
	u32 max_packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 lost;
	u32 delivered;
	u32 total_retrans;
	u32 data_segs_out;
	u64 bytes_acked;
	u64 bytes_sent;
	u64 bytes_retrans;
	u32 snd_una;
	u32 snd_nxt;
	u32 write_seq;
	u32 snd_wnd;
	u32 mss_cache;
	u32 srtt_us;
	u64 tcp_mstamp;
	u32 lsndtime;
	u8 is_cwnd_limited : 1;
	u32 app_limited;
	u64 delivered_mstamp;
	u64 tcp_wstamp_ns;
	u64 tcp_clock_cache;
	struct minmax rtt_min;
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct rate_sample {
	u32 prior_delivered;
	s32 delivered;
	long interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
	bool is_ack_delayed;
};

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

#pragma clang attribute pop

/* The name comes first: the loader renames an instance in the first 16 bytes. */
struct tcp_congestion_ops {
	char name[16];
	u32 flags;
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

static __always_inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct inet_connection_sock *inet_csk(const struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

/* The inode of the sender's network namespace. */
static __always_inline u32 cc_netns(const struct sock *sk)
{
	return sk->__sk_common.skc_net.net->ns.inum;
}

static __always_inline u8 cc_ca_state(const struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD(inet_csk(sk), icsk_ca_state);
}

static __always_inline bool cc_is_cwnd_limited(const struct sock *sk)
{
	return BPF_CORE_READ_BITFIELD(tcp_sk(sk), is_cwnd_limited);
}

/* 32 random bits. */
static __always_inline u32 cc_random(const struct sock *sk)
{
	(void)sk;
	return bpf_get_prandom_u32();
}

/* The smallest round-trip time of the last minutes (tcp_min_rtt), ~0 before the first sample. */
static __always_inline u32 cc_min_rtt_us(const struct sock *sk)
{
	return tcp_sk(sk)->rtt_min.s[0].v;
}

/* Jiffies as the kernel keeps them in 32 bits (tcp_jiffies32). */
static __always_inline u32 cc_now_j(const struct sock *sk)
{
	(void)sk;
	return (u32)bpf_jiffies64();
}

/* Microseconds of the kernel's TCP clock, which tcp_mstamp holds during an ACK. */
static __always_inline u64 cc_now_us(const struct sock *sk)
{
	(void)sk;
	return bpf_ktime_get_ns() / 1000;
}

extern unsigned long CONFIG_HZ __kconfig;

#define CC_HZ CONFIG_HZ

/* The upper limit of cwnd; it takes the way of setsockopt(), which sets ssthresh as well. */
static __always_inline void cc_set_clamp(struct sock *sk, u32 clamp)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 ssthresh = tp->snd_ssthresh;
	int value = clamp;

	bpf_setsockopt(sk, 6 /* SOL_TCP */, 1002 /* TCP_BPF_SNDCWND_CLAMP */, &value, sizeof(value));
	tp->snd_ssthresh = ssthresh;
}

#define CC_SYSCTL(...)	/* the evaluation sets it in the network namespace */
#define CC_OWN_INITIAL_WINDOW /* the evaluation does not expect the route's */

#define CC_PARAM(name, dflt, min, max, doc)					\
	_Static_assert((u64)(dflt) >= (min) && (u64)(dflt) <= (max), #name);	\
	const volatile u64 name = dflt;

/* Refused by `cc load` where it is not the default. */
#define CC_PARAM_SIMULATED(...) CC_PARAM(__VA_ARGS__)

static __always_inline void cc_seed_rtt(struct tcp_sock *tp, u32 srtt_us, u32 rttvar_us)
{
	(void)tp, (void)srtt_us, (void)rttvar_us;
}

struct cc_group;

static __always_inline void cc_share_window(struct tcp_sock *tp, struct cc_group *group)
{
	(void)tp, (void)group;
}

static __always_inline bool cc_in_kernel(void)
{
	return true;
}

static __always_inline u32 cc_rttvar_us(const struct tcp_sock *tp)
{
	(void)tp;
	return 0;
}

#define param(sk, name) ((void)(sk), name)

/* A kernel may skip a hook (docs/guide/congestion.md, "Unseen ACKs"). Where it skips
 * ssthresh(), TCP takes what lies on the stack, which is larger than any ssthresh,
 * and opens the window by it. The next hook that runs halves the window instead. */
static __always_inline void cc_repair(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 half = tp->prior_cwnd >> 1;

	if (tp->snd_ssthresh <= 0x7fffffff /* TCP_INFINITE_SSTHRESH */)
		return;
	tp->snd_ssthresh = half > 2 ? half : 2;
	if (tp->snd_cwnd > tp->prior_cwnd)
		tp->snd_cwnd = tp->prior_cwnd;
}

#define CC_HOOK(ret, name, args...)						\
	static __always_inline ret ____##name(unsigned long long *ctx, ##args);	\
	SEC("struct_ops") ret name(unsigned long long *ctx)			\
	{									\
		cc_repair((struct sock *)ctx[0]);				\
		_Pragma("GCC diagnostic push")					\
		_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")		\
		return ____##name(___bpf_ctx_cast(args));			\
		_Pragma("GCC diagnostic pop")					\
	}									\
	static __always_inline ret ____##name(unsigned long long *ctx, ##args)
#define CC_OP(hook) ((void *)hook)
#define CC_SIMULATED_OPS(...)	/* the kernel has no such hooks */

/* The verifier allows no variable index into the state. */
#define CC_UNROLL _Pragma("unroll")

#define CC_STRING_(x) #x
#define CC_STRING(x) CC_STRING_(x)

#define CC_REGISTER(summary, ...)						\
	SEC(".struct_ops.link")							\
	struct tcp_congestion_ops CC_NAME = {					\
		.name = CC_STRING(CC_NAME),					\
		.flags = 1 /* TCP_CONG_NON_RESTRICTED */,			\
		__VA_ARGS__							\
	};									\
	char _license[] SEC("license") = "Dual MIT/GPL";
