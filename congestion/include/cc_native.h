/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The host's meaning of cc.h: plain structs and a table entry.
 *
 * A field is const where the kernel's verifier refuses its write. Rust mirrors
 * these structs (crates/congestion-native/src/socket.rs) and supplies what the
 * kernel would: a test compares every offset.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;

struct cc_group;

struct in6_addr {
	union {
		u32 u6_addr32[4];
	} in6_u;
};

struct sock_common {
	const u32 skc_daddr;
	const u32 skc_rcv_saddr;
	const u16 skc_dport;
	const u16 skc_family;
	/* Not in the kernel: the sending host, as its network namespace's inode. */
	const u32 cc_netns;
	const struct in6_addr skc_v6_daddr;
	const struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	const struct sock_common __sk_common;
	u64 sk_pacing_rate;
	u32 sk_pacing_status;
	/* Not in the kernel: the clock and the instance's parameters. */
	const u32 cc_jiffies;
	const u64 cc_clock_us;
	const u64 *const cc_parameters;
	const struct cc_group_store *const cc_groups;
	u64 cc_random_state;
	const u64 sk_max_pacing_rate;
	const u64 sk_pacing_shift;
};

struct inet_sock {
	struct sock sk;
	const u64 inet_sport;
};

struct inet_connection_sock {
	struct inet_sock icsk_inet;
	const u32 icsk_rto;
	const u8 icsk_ca_state;
	u64 icsk_ca_priv[13];
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_stamp;
	const u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	const u32 prior_cwnd;
	const u32 prior_ssthresh;
	const u32 high_seq;
	const u32 packets_out;
	const u32 max_packets_out;
	const u32 sacked_out;
	const u32 lost_out;
	const u32 retrans_out;
	const u32 lost;
	const u32 delivered;
	const u32 total_retrans;
	const u32 data_segs_out;
	const u64 bytes_acked;
	const u64 bytes_sent;
	const u64 bytes_retrans;
	const u32 snd_una;
	const u32 snd_nxt;
	const u32 write_seq;
	const u32 snd_wnd;
	const u32 mss_cache;
	const u32 srtt_us;
	const u64 tcp_mstamp;
	const u32 lsndtime;
	const u8 is_cwnd_limited;
	u32 app_limited;
	const u64 delivered_mstamp;
	const u64 tcp_wstamp_ns;
	const u64 tcp_clock_cache;
	const u32 cc_rtt_min_us;
	/* Not in the kernel: the variation in the scale of rttvar_us, and what cc_seed_rtt() sets. */
	const u32 cc_rttvar_us;
	u32 cc_seed_srtt_us;
	u32 cc_seed_rttvar_us;
	/* Not in the kernel: what cc_share_window() sets. */
	struct cc_group *cc_shared;
};

struct ack_sample {
	const u32 pkts_acked;
	const s32 rtt_us;
	const u32 in_flight;
};

struct rate_sample {
	const u32 prior_delivered;
	const s32 delivered;
	const s64 interval_us;
	const s64 rtt_us;
	const s32 losses;
	const u32 acked_sacked;
	const u32 prior_in_flight;
	const bool is_app_limited;
	const bool is_ack_delayed;
};

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

struct tcp_congestion_ops {
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
	/* Not in the kernel, for connections under cc_share_window(): the connection's flight has
	 * changed; how many segments may the group still send? */
	u32 (*cc_room)(struct sock *sk);
	/* A segment that left at sent_us was found lost; before ssthresh(). */
	void (*cc_lost)(struct sock *sk, u64 sent_us);
};

struct cc_parameter {
	const char *name;	/* NULL ends the list */
	u64 dflt;
	u64 min;
	u64 max;
	const char *doc;
	bool simulated;		/* another value than the default is for the simulator alone */
};

/* A sysctl of the network namespace that the algorithm needs; NULL where it needs none. */
struct cc_sysctl {
	const char *name;
	const char *value;
};

/* True where the algorithm sets the window of a new connection itself. */
struct cc_initial_window {
	bool own;
};

#define CC_PARAMETERS_MAX 32

/* What an algorithm's file is to the host: one constant, cc_algorithm_NAME. */
struct cc_algorithm {
	const char *name;
	const char *summary;
	const struct cc_sysctl *sysctl;
	const struct cc_initial_window *initial_window;
	const struct cc_parameter *parameters[CC_PARAMETERS_MAX];
	struct tcp_congestion_ops ops;
};

static inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static inline struct inet_connection_sock *inet_csk(const struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

/* In the simulator's init(): the connection goes on with a round-trip time and variation, in the
 * scales of srtt_us and rttvar_us. The kernel lets no hook write them. */
static inline void cc_seed_rtt(struct tcp_sock *tp, u32 srtt_us, u32 rttvar_us)
{
	tp->cc_seed_srtt_us = srtt_us;
	tp->cc_seed_rttvar_us = rttvar_us;
}

/* In the simulator's init(): from now on the connection shares one window with the others that name
 * the group, segment by segment. It asks cc_room() in place of snd_cwnd, members take turns, and ACKs
 * of one find losses of another. The kernel lets no hook reach another socket. */
static inline void cc_share_window(struct tcp_sock *tp, struct cc_group *group)
{
	tp->cc_shared = group;
}

/* False in the simulator and the scripts. */
static inline bool cc_in_kernel(void)
{
	return false;
}

static inline u32 cc_rttvar_us(const struct tcp_sock *tp)
{
	return tp->cc_rttvar_us;
}

static inline u32 cc_netns(const struct sock *sk)
{
	return sk->__sk_common.cc_netns;
}

static inline u8 cc_ca_state(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state;
}

static inline bool cc_is_cwnd_limited(const struct sock *sk)
{
	return tcp_sk(sk)->is_cwnd_limited;
}

/* SplitMix64 (Steele et al., OOPSLA 2014): the socket's own stream, seeded by its owner. */
static inline u32 cc_random(struct sock *sk)
{
	u64 z = sk->cc_random_state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (z ^ (z >> 31)) >> 32;
}

static inline u32 cc_min_rtt_us(const struct sock *sk)
{
	return tcp_sk(sk)->cc_rtt_min_us;
}

static inline u32 cc_now_j(const struct sock *sk)
{
	return sk->cc_jiffies;
}

static inline u64 cc_now_us(const struct sock *sk)
{
	return sk->cc_clock_us;
}

#define CC_HZ 250

static inline void cc_set_clamp(struct sock *sk, u32 clamp)
{
	*(u32 *)&tcp_sk(sk)->snd_cwnd_clamp = clamp;
}

#define CC_PASTE_(a, b) a##b
#define CC_PASTE(a, b) CC_PASTE_(a, b)
#define CC_STRING_(x) #x
#define CC_STRING(x) CC_STRING_(x)

/* The n-th parameter of a file is cc_parameter_n and has the index n. */
#define CC_PARAM(...) CC_PARAM_N(__COUNTER__, false, __VA_ARGS__)
#define CC_PARAM_SIMULATED(...) CC_PARAM_N(__COUNTER__, true, __VA_ARGS__)
#define CC_PARAM_N(n, ...) CC_PARAM_(n, __VA_ARGS__)
#define CC_PARAM_(n, psim, pname, pdflt, pmin, pmax, pdoc)			\
	_Static_assert((u64)(pdflt) >= (pmin) && (u64)(pdflt) <= (pmax),		\
		       #pname ": its default is not within its range");		\
	enum { cc_index_##pname = n };						\
	static const struct cc_parameter cc_parameter_##n = {			\
		#pname, pdflt, pmin, pmax, pdoc, psim };

#define param(sk, name) ((sk)->cc_parameters[cc_index_##name])

#define CC_SYSCTL(sname, svalue) static const struct cc_sysctl cc_sysctl = { sname, svalue };
#define CC_OWN_INITIAL_WINDOW static const struct cc_initial_window cc_initial_window = { true };

#define CC_HOOK(ret, name, ...) static ret name(__VA_ARGS__)
#define CC_OP(hook) hook
#define CC_SIMULATED_OPS(...) __VA_ARGS__
#define CC_UNROLL

/* Declares cc_parameter_0 to cc_parameter_31 once more: those that the file did
 * not define are empty by C's rule of tentative definitions and end the list. */
#define CC_P(n) static const struct cc_parameter cc_parameter_##n;
#define CC_REGISTER(csummary, ...)						\
	static const struct cc_sysctl cc_sysctl;				\
	static const struct cc_initial_window cc_initial_window;		\
	CC_P(0) CC_P(1) CC_P(2) CC_P(3) CC_P(4) CC_P(5) CC_P(6) CC_P(7)		\
	CC_P(8) CC_P(9) CC_P(10) CC_P(11) CC_P(12) CC_P(13) CC_P(14) CC_P(15)	\
	CC_P(16) CC_P(17) CC_P(18) CC_P(19) CC_P(20) CC_P(21) CC_P(22) CC_P(23)	\
	CC_P(24) CC_P(25) CC_P(26) CC_P(27) CC_P(28) CC_P(29) CC_P(30) CC_P(31)	\
	_Static_assert(__COUNTER__ <= CC_PARAMETERS_MAX, "too many parameters"); \
	const struct cc_algorithm CC_PASTE(cc_algorithm_, CC_NAME) = {		\
		.name = CC_STRING(CC_NAME),					\
		.summary = csummary,						\
		.sysctl = &cc_sysctl,						\
		.initial_window = &cc_initial_window,				\
		.parameters = {							\
			&cc_parameter_0, &cc_parameter_1, &cc_parameter_2,	\
			&cc_parameter_3, &cc_parameter_4, &cc_parameter_5,	\
			&cc_parameter_6, &cc_parameter_7, &cc_parameter_8,	\
			&cc_parameter_9, &cc_parameter_10, &cc_parameter_11,	\
			&cc_parameter_12, &cc_parameter_13, &cc_parameter_14,	\
			&cc_parameter_15, &cc_parameter_16, &cc_parameter_17,	\
			&cc_parameter_18, &cc_parameter_19, &cc_parameter_20,	\
			&cc_parameter_21, &cc_parameter_22, &cc_parameter_23,	\
			&cc_parameter_24, &cc_parameter_25, &cc_parameter_26,	\
			&cc_parameter_27, &cc_parameter_28, &cc_parameter_29,	\
			&cc_parameter_30, &cc_parameter_31 },			\
		.ops = { __VA_ARGS__ },						\
	};
