/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Door 1: all that a congestion control includes; cc_group.h in its place where
 * connections share.
 *
 * One source per algorithm, two meanings: clang -target bpf makes it a
 * tcp_congestion_ops of the running kernel (cc_kernel.h), the host's compiler
 * makes it a part of the simulator and of the acknowledgement scripts
 * (cc_native.h). The dialect is the kernel's: struct sock, tcp_sk(sk)->snd_cwnd
 * and the hooks of tcp_congestion_ops. The file's name, NAME.c, is the
 * algorithm's name. It consists of
 *
 *	CC_PARAM(NAME_x, default, min, max, "what it is, with its unit")
 *	CC_PARAM_SIMULATED(...)		the same, where the kernel can do the default only
 *	struct NAME { ... };		state of one connection, at most 104 bytes
 *	CC_STATE(struct NAME);
 *	CC_HOOK(u32, NAME_ssthresh, struct sock *sk) { ... }
 *	CC_SYSCTL("net.ipv4.x", "0")	where the algorithm needs it in its namespace
 *	CC_OWN_INITIAL_WINDOW		where init() sets the window of a new connection
 *	CC_REGISTER("one line that says what it is",
 *		.ssthresh = CC_OP(NAME_ssthresh), ...)
 *	CC_SIMULATED_OPS(.cc_room = ...,)	among them: hooks that only the simulator calls
 *
 * A parameter is read with param(sk, NAME_x); it is a u64 and constant while the
 * connection lives. State is read with inet_csk_ca(sk); the kernel clears it
 * before init(). Rules: no mutable globals, no floating point, no signed
 * division, loops with constant bounds, bitfields only through the accessors
 * below. Fields that the kernel refuses to write are const natively, so the
 * host's compiler refuses what the verifier refuses.
 *
 * Windows are in segments, times in microseconds (_us) or jiffies (_j).
 */
#pragma once

#ifdef __bpf__
#include "cc_kernel.h"
#else
#include "cc_native.h"
#endif

/* Values of the kernel's interface (include/net/tcp.h, include/linux/tcp.h). */

#define TCP_INFINITE_SSTHRESH	0x7fffffff
#define TCP_CONG_NON_RESTRICTED	1	/* unprivileged sockets may choose it */
#define TCP_INIT_CWND		10	/* RFC 6928 */
#define ICSK_CA_PRIV_SIZE	104

enum { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };

/* sk_pacing_status. With SK_PACING_NEEDED TCP paces itself by sk_pacing_rate. */
enum { SK_PACING_NONE, SK_PACING_NEEDED };

/* Flags of in_ack_event(). */
enum { CA_ACK_SLOWPATH = 1, CA_ACK_WIN_UPDATE = 2, CA_ACK_ECE = 4 };

#define CC_STATE(type)								\
	_Static_assert(sizeof(type) <= ICSK_CA_PRIV_SIZE,			\
		       "the state must fit into icsk_ca_priv")

static inline u32 cc_min(u32 a, u32 b)
{
	return a < b ? a : b;
}

static inline u32 cc_max(u32 a, u32 b)
{
	return a > b ? a : b;
}

/* True where the sequence number a lies beyond b; numbers wrap. */
static inline bool cc_after(u32 a, u32 b)
{
	return (s32)(b - a) < 0;
}

static inline u32 cc_us_to_j(u64 us)
{
	return us * CC_HZ / 1000000;
}

/* The cube root, rounded down, of an x below 2^63. Bit by bit: 21 rounds, no division. */
static inline u32 cc_cbrt(u64 x)
{
	u64 root = 0;

	for (int bit = 20; bit >= 0; bit--) {
		u64 next = root | 1ULL << bit;

		if (next * next * next <= x)
			root = next;
	}
	return root;
}

static inline void *inet_csk_ca(struct sock *sk)
{
	return (void *)inet_csk(sk)->icsk_ca_priv;
}

static inline bool tcp_in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* True where init() was called by setsockopt() on a connection that has sent data. */
static inline bool cc_is_live(const struct tcp_sock *tp)
{
	return tp->data_segs_out > 0;
}

/*
 * Primitives that the algorithms share.
 */

/* The kernel's tcp_is_cwnd_limited(), with m = 2 there: did the window, not the
 * application, limit the last flight? In slow start a flight of more than 1/m of
 * the window is enough, because the window grows up to m-fold within one flight. */
static inline bool lim_kernel(struct sock *sk, u32 m)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return cc_is_cwnd_limited(sk) ||
	       (tcp_in_slow_start(tp) && tp->snd_cwnd < m * tp->max_packets_out);
}

/* Slow start by m segments per acked segment, up to ssthresh; returns the acked
 * segments that were not used up. */
static inline u32 ss_grow(struct tcp_sock *tp, u32 acked, u32 m)
{
	u32 room = tp->snd_ssthresh - tp->snd_cwnd;

	if ((u64)acked * m <= room) {
		tp->snd_cwnd = cc_min(tp->snd_cwnd + acked * m, tp->snd_cwnd_clamp);
		return 0;
	}
	tp->snd_cwnd = cc_min(tp->snd_ssthresh, tp->snd_cwnd_clamp);
	return acked - (room + m - 1) / m;
}

/* Slow start by pct hundredths of a segment per acked segment, such as 150, or 25 for
 * the conservative slow start of HyStart++ (RFC 9406 section 4.3), up to ssthresh;
 * returns the acked segments that were not used up. *rest, in the algorithm's own
 * state, keeps the hundredths that are no whole segment yet. */
static inline u32 ss_grow_pct(struct tcp_sock *tp, u32 acked, u32 pct, u32 *rest)
{
	u64 room = tp->snd_ssthresh - tp->snd_cwnd;
	u64 grown = (u64)acked * pct + *rest;
	u64 used;

	if (grown < (room + 1) * 100 || !pct) {
		tp->snd_cwnd = cc_min(tp->snd_cwnd + (u32)(grown / 100), tp->snd_cwnd_clamp);
		*rest = grown % 100;
		return 0;
	}
	used = room * 100 > *rest ? (room * 100 - *rest + pct - 1) / pct : 0;
	tp->snd_cwnd = cc_min(tp->snd_ssthresh, tp->snd_cwnd_clamp);
	*rest = 0;
	return acked - cc_min((u32)used, acked);
}

/* Congestion avoidance by one segment per w acked segments. */
static inline void ca_grow(struct tcp_sock *tp, u32 w, u32 acked)
{
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd_cnt = 0;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	if (tp->snd_cwnd_cnt >= w) {
		u32 delta = tp->snd_cwnd_cnt / w;

		tp->snd_cwnd_cnt -= delta * w;
		tp->snd_cwnd += delta;
	}
	tp->snd_cwnd = cc_min(tp->snd_cwnd, tp->snd_cwnd_clamp);
}

/* Growth of RFC 5681: slow start, then congestion avoidance. */
static inline void reno_grow(struct tcp_sock *tp, u32 acked)
{
	if (tcp_in_slow_start(tp)) {
		acked = ss_grow(tp, acked, 1);
		if (!acked)
			return;
	}
	ca_grow(tp, tp->snd_cwnd, acked);
}

/* The same while the window is in use, as Linux's reno. */
static inline void reno_cong_avoid(struct sock *sk, u32 acked)
{
	if (lim_kernel(sk, 2))
		reno_grow(tcp_sk(sk), acked);
}

/* Half the window, at least RFC 5681's two segments. */
static inline u32 reno_ssthresh(const struct tcp_sock *tp)
{
	return cc_max(tp->snd_cwnd >> 1, 2);
}

/* The kernel's and RFC 2861's memory of the window before it decays. */
static inline void raise34(struct tcp_sock *tp)
{
	tp->snd_ssthresh = cc_max(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}

/* Jiffies since the last data segment was sent, when nothing is outstanding and
 * new data waits; otherwise 0. For min_tso_segs(), the only hook that runs before
 * the first segment after an idle period. */
static inline u32 cc_idle_j(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tp->packets_out || tp->write_seq == tp->snd_nxt)
		return 0;
	return cc_now_j(sk) - tp->lsndtime;
}

/* The most that was in flight since the ACK before: for pkts_acked(), where the sent
 * segments are still those of before the ACK. */
static inline u32 cc_flight_before(const struct tcp_sock *tp, const struct ack_sample *sample)
{
	return tp->packets_out + sample->pkts_acked;
}

/* idle_now: the idle period has lasted at least one RTO. */
static inline bool idle_now(struct sock *sk)
{
	u32 rto = inet_csk(sk)->icsk_rto;

	return rto && cc_idle_j(sk) >= rto;
}

static inline u32 undo_default(const struct tcp_sock *tp)
{
	return cc_max(tp->snd_cwnd, tp->prior_cwnd);
}

/*
 * Losses of a segment's retransmission. Between in_ack_event() and the next
 * min_tso_segs() only loss detection runs. Each mark raises tp->lost; the first mark
 * of a segment raises tp->lost_out as well, that of a retransmission does not.
 */
struct cc_marks {
	u32 lost;		/* tp->lost and tp->lost_out before the marking */
	u32 lost_out;
	u32 repeats;		/* marks that hit a retransmission */
};

/* For in_ack_event() and where the count begins. */
static inline void cc_marks_before(const struct tcp_sock *tp, struct cc_marks *marks)
{
	marks->lost = tp->lost;
	marks->lost_out = tp->lost_out;
}

/* For min_tso_segs(). */
static inline void cc_marks_after(const struct tcp_sock *tp, struct cc_marks *marks)
{
	marks->repeats += (tp->lost - marks->lost) - (tp->lost_out - marks->lost_out);
	cc_marks_before(tp, marks);
}
