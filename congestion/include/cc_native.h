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

struct sock_common {
	const u32 skc_daddr;
};

struct sock {
	const struct sock_common __sk_common;
	u64 sk_pacing_rate;
	u32 sk_pacing_status;
	/* Not in the kernel: the clock and the instance's parameters. */
	const u32 cc_jiffies;
	const u64 cc_clock_us;
	const u64 *const cc_parameters;
};

struct inet_sock {
	struct sock sk;
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
};

struct ack_sample {
	const u32 pkts_acked;
	const s32 rtt_us;
	const u32 in_flight;
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
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

struct cc_parameter {
	const char *name;	/* NULL ends the list */
	u64 dflt;
	u64 min;
	u64 max;
	const char *doc;
};

#define CC_PARAMETERS_MAX 16

/* What an algorithm's file is to the host: one constant, cc_algorithm_NAME. */
struct cc_algorithm {
	const char *name;
	const char *summary;
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

static inline u8 cc_ca_state(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state;
}

static inline bool cc_is_cwnd_limited(const struct sock *sk)
{
	return tcp_sk(sk)->is_cwnd_limited;
}

static inline u32 cc_now_j(const struct sock *sk)
{
	return sk->cc_jiffies;
}

static inline u64 cc_now_us(const struct sock *sk)
{
	return sk->cc_clock_us;
}

#define CC_PASTE_(a, b) a##b
#define CC_PASTE(a, b) CC_PASTE_(a, b)
#define CC_STRING_(x) #x
#define CC_STRING(x) CC_STRING_(x)

/* The n-th parameter of a file is cc_parameter_n and has the index n. */
#define CC_PARAM(...) CC_PARAM_N(__COUNTER__, __VA_ARGS__)
#define CC_PARAM_N(n, ...) CC_PARAM_(n, __VA_ARGS__)
#define CC_PARAM_(n, pname, pdflt, pmin, pmax, pdoc)				\
	_Static_assert((u64)(pdflt) >= (pmin) && (u64)(pdflt) <= (pmax), #pname); \
	enum { cc_index_##pname = n };						\
	static const struct cc_parameter cc_parameter_##n = {			\
		#pname, pdflt, pmin, pmax, pdoc };

#define param(sk, name) ((sk)->cc_parameters[cc_index_##name])

#define CC_HOOK(ret, name, ...) static ret name(__VA_ARGS__)
#define CC_OP(hook) hook

/* Declares cc_parameter_0 to cc_parameter_15 once more: those that the file did
 * not define are empty by C's rule of tentative definitions and end the list. */
#define CC_P(n) static const struct cc_parameter cc_parameter_##n;
#define CC_REGISTER(csummary, ...)						\
	CC_P(0) CC_P(1) CC_P(2) CC_P(3) CC_P(4) CC_P(5) CC_P(6) CC_P(7)		\
	CC_P(8) CC_P(9) CC_P(10) CC_P(11) CC_P(12) CC_P(13) CC_P(14) CC_P(15)	\
	_Static_assert(__COUNTER__ <= CC_PARAMETERS_MAX, "too many parameters"); \
	const struct cc_algorithm CC_PASTE(cc_algorithm_, CC_NAME) = {		\
		.name = CC_STRING(CC_NAME),					\
		.summary = csummary,						\
		.parameters = {							\
			&cc_parameter_0, &cc_parameter_1, &cc_parameter_2,	\
			&cc_parameter_3, &cc_parameter_4, &cc_parameter_5,	\
			&cc_parameter_6, &cc_parameter_7, &cc_parameter_8,	\
			&cc_parameter_9, &cc_parameter_10, &cc_parameter_11,	\
			&cc_parameter_12, &cc_parameter_13, &cc_parameter_14,	\
			&cc_parameter_15 },					\
		.ops = { __VA_ARGS__ },						\
	};
