/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * TCP-Int: the connections to one destination share one congestion window.
 *
 * The group holds the window C and a slow-start threshold; together the connections
 * are as aggressive as one.
 *
 *	share	of n active members, those with data in flight or waiting:
 *		cwnd = C / n, and one more for the first C mod n of them; at least 1
 *	ACK	of any member: C += 1 per acked segment in slow start, otherwise
 *		per C acked segments
 *	loss	C = ssthresh = C / 2, at least 2; a loss within a round trip of the
 *		last reduction is of the same episode and changes nothing
 *	timeout	no member has had an ACK for a timeout: C = 1; else as a loss
 *	open	no slow start: takes its share of C; without others C is the
 *		initial window and ssthresh infinite
 *	close	the others' shares grow
 *
 * In the simulator tcpint_exact = 1 follows the original where a hook of the kernel
 * cannot, across sockets. Then
 *
 *	send	while all members together have fewer than C segments in flight. Members
 *		with something to send take turns of a segment each, what is lost first
 *	loss	of a segment with a duplicate ACK on its own connection, that is a SACK
 *		beyond it, and 3 later ACKs: acknowledged segments of any member that
 *		left after it. Its connection retransmits at once; C is halved if the
 *		segment left after the last reduction
 *	ACK	as above while the members fill C; in congestion avoidance not for what
 *		left before the last reduction
 *	timeout	as above; the retransmission leaves whatever C is
 *	open	no slow start: takes turns with the others
 *	cwnd	of a member: what the others leave of C, at the member's last event
 *
 * Source: Balakrishnan, Padmanabhan, Seshan, Stemm, Katz, "TCP behavior of a busy
 * Internet server: analysis and improvements", INFOCOM 1998, as retold in section
 * II.B of "Heracles and Hydra" and from the literature; the original text was not
 * at hand.
 *
 * Constants
 *	2 segments	RFC 5681's floor of ssthresh, for the shared window
 *	3 later ACKs	RFC 5681's threshold of duplicate ACKs (shared.rs of the TCP model)
 *
 * How this differs from the original; 1 to 4 and 7 not with tcpint_exact
 *	1. Not in reach of a congestion control's hooks: detecting a loss of one
 *	   connection by later ACKs of another, sending on another socket when
 *	   the window opens there, and strict round-robin among connections.
 *	2. "The packet was sent after the last reduction" becomes "a smoothed
 *	   round-trip time has passed since it".
 *	3. A member learns of a smaller C at its own next ACK, so the sum of
 *	   windows can exceed C for a round trip.
 *	4. In loss recovery PRR sets cwnd; the share is ssthresh.
 *	5. C grows only by ACKs that arrive while their connection uses its share, or
 *	   with tcpint_exact all members together use C, as in Linux's reno.
 *	6. A member whose loss turns out to be none gives the reduction back.
 *	7. The first 64 members are told apart; those beyond share evenly, rounded
 *	   down.
 *	8. With tcpint_exact each connection still finds losses by itself as Linux does:
 *	   by RACK, or with net.ipv4.tcp_recovery = 0 by RFC 6675, which the rule of
 *	   later ACKs includes. Tail-loss probes, F-RTO and timeouts stay too.
 *	9. With tcpint_exact the first lost segment of a connection's recovery leaves at
 *	   once; others that are found lost wait for room in the halved window.
 *	10. With tcpint_exact a reduction without a lost segment, for an ECN echo or a
 *	   repaired tail, still asks for a round-trip time since the last one (2).
 */
#include "cc_group.h"

CC_OWN_INITIAL_WINDOW

CC_PARAM(tcpint_plen4, 32, 0, 32, "bits of an IPv4 destination that share a window; 32 is the host")
CC_PARAM(tcpint_plen6, 128, 0, 128, "bits of an IPv6 destination that share a window; 128 is the host")
CC_PARAM_SIMULATED(tcpint_exact, 0, 0, 1,
		   "1: one window segment by segment, and losses found by ACKs of any member")

/* The group's own values: C and ssthresh in segments, acked segments counted towards C's
 * next step, the time of the last reduction, the jiffies of the last ACK; a bit for each
 * seat that is taken, and for each whose member is active; active members without a seat. */
enum { INT_C, INT_SSTHRESH, INT_CNT, INT_CUT_US, INT_ACK_J, INT_SEATS, INT_ACTIVE, INT_STANDING };

#define INT_NO_SEAT 64

struct tcpint {
	struct cc_member member;
	u32 before;		/* C before this member's last reduction, or 0 */
	u32 ssthresh_before;
	u8 seat;
	bool active;
	bool told;		/* exact: int_lost() knows the loss that ssthresh() is called for */
	bool stale;		/* exact: the ACK at hand is for what left before the last reduction */
};
CC_STATE(struct tcpint);

/* The compiler drops what depends on it from the kernel's program. */
static __always_inline bool int_exact(struct sock *sk)
{
	return !cc_in_kernel() && param(sk, tcpint_exact);
}

static __always_inline void int_key(struct sock *sk, struct cc_group_key *key)
{
	cc_group_key(sk, param(sk, tcpint_plen4), param(sk, tcpint_plen6), 0, key);
}

static __always_inline struct cc_group *int_group(struct sock *sk)
{
	const struct tcpint *ti = inet_csk_ca(sk);
	struct cc_group_key key;

	if (!ti->member.in_group)
		return NULL;
	int_key(sk, &key);
	return cc_group_find(sk, &key);
}

/* Ones in a word. */
static __always_inline u32 int_ones(u64 word)
{
	word -= word >> 1 & 0x5555555555555555;
	word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return word * 0x0101010101010101 >> 56;
}

/* Locked: takes the lowest free seat. */
static __always_inline void int_sit(struct cc_group *g, struct tcpint *ti)
{
	u64 free = ~g->own[INT_SEATS];

	free &= ~free + 1;
	g->own[INT_SEATS] |= free;
	ti->seat = free ? int_ones(free - 1) : INT_NO_SEAT;
}

static __always_inline u64 int_seat_bit(const struct tcpint *ti)
{
	return ti->seat < INT_NO_SEAT ? 1ULL << (ti->seat & 63) : 0;
}

/* Locked. */
static __always_inline void int_set_active(struct cc_group *g, struct tcpint *ti, bool active)
{
	if (ti->active == active)
		return;
	ti->active = active;
	g->own[INT_ACTIVE] ^= int_seat_bit(ti);
	if (ti->seat == INT_NO_SEAT)
		g->own[INT_STANDING] += active ? 1 : ~0ULL;
}

/* Locked: an active member's part of a window of the group. */
static __always_inline u32 int_part(const struct cc_group *g, const struct tcpint *ti, u64 window)
{
	u64 seat = int_seat_bit(ti), active = g->own[INT_ACTIVE] | seat;
	u64 n = int_ones(active) + g->own[INT_STANDING];
	u64 part, rest;

	if (window >= TCP_INFINITE_SSTHRESH)
		return TCP_INFINITE_SSTHRESH;
	if (!n)
		n = 1;
	part = window / n;
	rest = window - part * n;
	if (seat && int_ones(active & (seat - 1)) < rest)
		part++;
	return cc_max(part, 1);
}

/* Locked: contributes the member's window, which is none while it has nothing to send. */
static __always_inline void int_contribute(struct cc_group *g, struct tcpint *ti, u32 cwnd)
{
	cc_group_contribute(g, &ti->member, ti->active ? cwnd : 0, 0);
}

/* Locked. */
static __always_inline void int_grow(struct cc_group *g, u32 acked)
{
	if (g->own[INT_C] < g->own[INT_SSTHRESH]) {
		g->own[INT_C] = cc_min(g->own[INT_C] + acked, g->own[INT_SSTHRESH]);
		return;
	}
	g->own[INT_CNT] += acked;
	if (g->own[INT_CNT] >= g->own[INT_C]) {
		g->own[INT_CNT] -= g->own[INT_C];
		g->own[INT_C]++;
	}
}

/* Locked, exact: C may grow as one connection's window would in Linux. The members filled it before
 * this ACK, and it is not the recovery from the last reduction that goes on. */
static __always_inline bool int_may_grow(struct sock *sk, const struct cc_group *g)
{
	const struct tcpint *ti = inet_csk_ca(sk);
	u64 out = g->cwnd_tot;

	if (g->own[INT_C] < g->own[INT_SSTHRESH])
		out *= 2;
	else if (ti->stale)
		return false;
	return cc_is_cwnd_limited(sk) || out >= g->own[INT_C];
}

/* Locked: the window is halved, and remembered for an undo. */
static __always_inline void int_cut(struct cc_group *g, struct tcpint *ti, u64 now)
{
	ti->before = g->own[INT_C];
	ti->ssthresh_before = g->own[INT_SSTHRESH];
	g->own[INT_C] = cc_max(g->own[INT_C] / 2, 2);
	g->own[INT_SSTHRESH] = g->own[INT_C];
	g->own[INT_CNT] = 0;
	g->own[INT_CUT_US] = now;
	cc_group_post(g, &ti->member, CC_LOSS, g->own[INT_C], g->own[INT_SSTHRESH]);
}

/* Exact: nothing that the ACK is for left after the last reduction. */
static __always_inline bool int_is_stale(struct sock *sk, const struct ack_sample *sample)
{
	const struct cc_group *g = int_group(sk);

	return g && (sample->rtt_us < 0 || cc_now_us(sk) - sample->rtt_us <= g->own[INT_CUT_US]);
}

CC_HOOK(void, int_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct tcpint *ti = inet_csk_ca(sk);
	u32 now = cc_now_j(sk), cwnd, ssthresh;
	struct cc_group_key key;
	struct cc_group *g;
	struct cc_note note;

	int_key(sk, &key);
	g = cc_group_make(sk, &key);
	if (!g)
		return;
	cc_lock(g);
	if (!g->n) {
		g->own[INT_C] = tp->snd_cwnd;
		g->own[INT_SSTHRESH] = tp->snd_ssthresh;
		g->own[INT_CNT] = 0;
		g->own[INT_CUT_US] = 0;
		g->own[INT_ACK_J] = now;
	}
	cc_group_enter(g, &ti->member, 0, 0);
	int_sit(g, ti);
	cwnd = int_part(g, ti, g->own[INT_C]);
	ssthresh = int_part(g, ti, g->own[INT_SSTHRESH]);
	cc_group_post(g, &ti->member, CC_JOIN, g->own[INT_C], g->own[INT_SSTHRESH]);
	note = cc_group_note(g, CC_JOIN);
	cc_unlock(g);
	cc_group_tell(sk, &key, &note);

	if (int_exact(sk)) {
		cc_share_window(tp, g);
		return;
	}
	if (cc_is_live(tp))
		return;
	tp->snd_cwnd = cc_min(cwnd, tp->snd_cwnd_clamp);
	tp->snd_ssthresh = ssthresh;
}

/* Runs before each round of sending: a member that has something to send again takes its share. */
CC_HOOK(u32, int_min_tso_segs, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct tcpint *ti = inet_csk_ca(sk);
	struct cc_group *g;
	u32 cwnd;

	if (int_exact(sk) || ti->active || tp->write_seq == tp->snd_nxt)
		return 2;	/* the kernel's default */
	g = int_group(sk);
	if (!g)
		return 2;
	cc_lock(g);
	int_set_active(g, ti, true);
	cwnd = int_part(g, ti, g->own[INT_C]);
	int_contribute(g, ti, cwnd);
	cc_unlock(g);
	if (cc_ca_state(sk) < TCP_CA_CWR)
		tp->snd_cwnd = cc_min(cwnd, tp->snd_cwnd_clamp);
	return 2;
}

/* cong_avoid() does not run in CWR and Recovery: there the share steers PRR. */
CC_HOOK(void, int_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct tcpint *ti = inet_csk_ca(sk);
	u8 state = cc_ca_state(sk);
	u32 now = cc_now_j(sk), part;
	struct cc_group *g;

	if (int_exact(sk))
		ti->stale = int_is_stale(sk, sample);
	if (state != TCP_CA_CWR && state != TCP_CA_Recovery)
		return;
	g = int_group(sk);
	if (!g)
		return;
	cc_lock(g);
	g->own[INT_ACK_J] = now;
	part = int_part(g, ti, g->own[INT_C]);
	cc_unlock(g);
	if (!int_exact(sk))
		tp->snd_ssthresh = cc_min(tp->snd_ssthresh, part);
}

CC_HOOK(void, int_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct tcpint *ti = inet_csk_ca(sk);
	bool limited = lim_kernel(sk, 2);
	bool idle = !tp->packets_out && tp->write_seq == tp->snd_nxt;
	u32 now = cc_now_j(sk), cwnd, ssthresh;
	struct cc_group *g = int_group(sk);

	if (!g) {
		reno_cong_avoid(sk, acked);
		return;
	}
	cc_lock(g);
	g->own[INT_ACK_J] = now;
	if (int_exact(sk)) {
		if (int_may_grow(sk, g))
			int_grow(g, acked);
		cc_unlock(g);
		return;
	}
	if (limited)
		int_grow(g, acked);
	int_set_active(g, ti, !idle);
	cwnd = int_part(g, ti, g->own[INT_C]);
	ssthresh = int_part(g, ti, g->own[INT_SSTHRESH]);
	int_contribute(g, ti, cwnd);
	cc_unlock(g);
	tp->snd_cwnd = cc_min(cwnd, tp->snd_cwnd_clamp);
	tp->snd_ssthresh = ssthresh;
}

CC_HOOK(u32, int_ssthresh, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct tcpint *ti = inet_csk_ca(sk);
	struct cc_group *g = int_group(sk);
	u64 now = cc_now_us(sk);
	struct cc_group_key key;
	struct cc_note note;
	bool cut;
	u32 part;

	if (!g)
		return reno_ssthresh(tp);
	if (int_exact(sk) && ti->told) {
		ti->told = false;
		return g->own[INT_SSTHRESH];
	}
	ti->before = 0;
	cc_lock(g);
	cut = now - g->own[INT_CUT_US] >= tp->srtt_us >> 3;
	if (cut)
		int_cut(g, ti, now);
	part = int_part(g, ti, g->own[INT_C]);
	if (!int_exact(sk))
		int_contribute(g, ti, part);
	note = cc_group_note(g, CC_LOSS);
	cc_unlock(g);
	if (cut) {
		int_key(sk, &key);
		cc_group_tell(sk, &key, &note);
	}
	return part;
}

CC_HOOK(void, int_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	u32 now = cc_now_j(sk);
	struct cc_group *g;

	if (event != CA_EVENT_LOSS)
		return;
	g = int_group(sk);
	if (!g)
		return;
	cc_lock(g);
	if (now - (u32)g->own[INT_ACK_J] >= inet_csk(sk)->icsk_rto)
		g->own[INT_C] = 1;
	cc_unlock(g);
}

CC_HOOK(u32, int_undo_cwnd, struct sock *sk)
{
	struct tcpint *ti = inet_csk_ca(sk);
	struct cc_group *g = int_group(sk);
	struct cc_group_key key;
	struct cc_note note;
	u32 part;

	if (!g)
		return undo_default(tcp_sk(sk));
	cc_lock(g);
	if (ti->before) {
		g->own[INT_C] = cc_max(g->own[INT_C], ti->before);
		g->own[INT_SSTHRESH] = cc_max(g->own[INT_SSTHRESH], ti->ssthresh_before);
	}
	part = int_part(g, ti, g->own[INT_C]);
	if (!int_exact(sk))
		int_contribute(g, ti, part);
	cc_group_post(g, &ti->member, CC_UNDO, g->own[INT_C], g->own[INT_SSTHRESH]);
	note = cc_group_note(g, CC_UNDO);
	cc_unlock(g);
	ti->before = 0;
	int_key(sk, &key);
	cc_group_tell(sk, &key, &note);
	return part;
}

CC_HOOK(void, int_release, struct sock *sk)
{
	struct tcpint *ti = inet_csk_ca(sk);
	struct cc_group *g = int_group(sk);
	struct cc_group_key key;
	struct cc_note note;

	if (!g)
		return;
	cc_lock(g);
	int_set_active(g, ti, false);
	g->own[INT_SEATS] &= ~int_seat_bit(ti);
	cc_group_post(g, &ti->member, CC_LEAVE, g->own[INT_C], g->own[INT_SSTHRESH]);
	cc_group_exit(g, &ti->member);
	note = cc_group_note(g, CC_LEAVE);
	cc_unlock(g);
	cc_share_window(tcp_sk(sk), NULL);
	int_key(sk, &key);
	cc_group_tell(sk, &key, &note);
}

#ifndef __bpf__
/* Exact: the member's flight replaces what it last reported, so cwnd_tot is all that is
 * outstanding. The member's window is what the others leave of C. */
CC_HOOK(u32, int_room, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cc_group *g = tp->cc_shared;
	struct tcpint *ti = inet_csk_ca(sk);
	u32 flight = tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
	u64 others, window;

	cc_lock(g);
	cc_group_contribute(g, &ti->member, flight, 0);
	others = g->cwnd_tot - flight;
	window = g->own[INT_C] > others ? g->own[INT_C] - others : 0;
	tp->snd_ssthresh = g->own[INT_SSTHRESH];
	cc_unlock(g);
	window = cc_min(window, tp->snd_cwnd_clamp);
	tp->snd_cwnd = cc_max(window, 1);
	return window > flight ? window - flight : 0;
}

/* Exact: the rule of the original, where ssthresh() only knows the time. A window of one
 * segment, after a timeout, is not cut: half of it would be more. */
CC_HOOK(void, int_lost, struct sock *sk, u64 sent_us)
{
	struct cc_group *g = tcp_sk(sk)->cc_shared;
	struct tcpint *ti = inet_csk_ca(sk);
	bool begins = cc_ca_state(sk) < TCP_CA_CWR && !ti->told;
	u32 before = ti->before, ssthresh_before = ti->ssthresh_before;
	struct cc_group_key key;
	struct cc_note note;

	if (begins) {
		ti->told = true;
		ti->before = 0;
	}
	if (sent_us <= g->own[INT_CUT_US] || g->own[INT_C] == 1)
		return;
	cc_lock(g);
	int_cut(g, ti, cc_now_us(sk));
	note = cc_group_note(g, CC_LOSS);
	cc_unlock(g);
	if (!begins && before) {
		ti->before = before;
		ti->ssthresh_before = ssthresh_before;
	}
	int_key(sk, &key);
	cc_group_tell(sk, &key, &note);
}
#endif

CC_REGISTER("TCP-Int: the connections to a host share one window, as aggressive as a single connection",
	.init = CC_OP(int_init),
	.min_tso_segs = CC_OP(int_min_tso_segs),
	.pkts_acked = CC_OP(int_pkts_acked),
	.cong_avoid = CC_OP(int_cong_avoid),
	.ssthresh = CC_OP(int_ssthresh),
	.cwnd_event = CC_OP(int_cwnd_event),
	.undo_cwnd = CC_OP(int_undo_cwnd),
	CC_SIMULATED_OPS(.cc_room = CC_OP(int_room), .cc_lost = CC_OP(int_lost),)
	.release = CC_OP(int_release))
