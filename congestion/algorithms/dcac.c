/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * TCP/DCA-C: delay-based congestion avoidance, in collaboration.
 *
 *	T = rttmin + lambda (rttmax - rttmin)
 *
 *	sample > T	in congestion avoidance, once per round trip:
 *			tell the group cwnd as DELAY, then cwnd -= alpha cwnd
 *	DELAY seen	in congestion avoidance, where DELAY.cwnd < cwnd:
 *			cwnd -= alpha cwnd / N, of N connections to the destination
 *	growth, loss	Reno
 *
 * Sources
 *	Cho and Bettati, "Collaborative congestion control in parallel TCP flows",
 *	ICC 2005, as retold in section II.B of "Heracles and Hydra"; the original
 *	text was not at hand.
 *	Wang and Crowcroft, "Eliminating periodic packet losses in the 4.3-Tahoe BSD
 *	TCP congestion control algorithm" (TCP-DUAL), CCR 1992: the same rule with
 *	lambda = 1/2 and alpha = 1/8, for one connection, every other round trip.
 *
 * Constants
 *	alpha 1/8	as in both papers
 *	lambda 50 %	not given; DUAL's
 *	4 ms		below this range of round-trip times there is noise, no queue
 *	2 segments	floor of the window
 *
 * How this differs from the original
 *	1. DELAY is seen at a connection's own next ACK, at most a round trip later.
 *	   Of several since the last ACK the last one counts.
 *	2. rttmin and rttmax are the connection's own, over its life or a sliding
 *	   window (dca_rttmax_window_s); the retelling says "older" round-trip times.
 *	3. A cut lowers ssthresh to cwnd, or slow start would undo it (dca_ssthresh).
 *	4. Windows have a fraction of 1/1024 segment, so that alpha / N counts.
 */
#include "cc_group.h"

enum { DCA_LATEST, DCA_SRTT };

CC_PARAM(dca_lambda_pct, 50, 0, 100, "threshold in percent of the way from the least to the largest round-trip time")
CC_PARAM(dca_alpha_permille, 125, 0, 900, "cut of the window in 1/1000; what others do is divided by their number")
CC_PARAM(dca_rtt, DCA_LATEST, 0, 1, "compared with the threshold: 0 latest sample, 1 smoothed round-trip time")
CC_PARAM(dca_period, 1, 1, 1000, "round trips in which a connection cuts its own window at most once")
CC_PARAM(dca_rttmax_window_s, 0, 0, 86400, "seconds that round-trip times are remembered, up to twice; 0 for ever")
CC_PARAM(dca_min_range_us, 4000, 0, 1 << 30, "no cut while the range of round-trip times is smaller, in microseconds")
CC_PARAM(dca_plen4, 32, 0, 32, "bits of an IPv4 destination that a group has in common; 32 is the host")
CC_PARAM(dca_plen6, 128, 0, 128, "bits of an IPv6 destination that a group has in common; 128 is the host")
CC_PARAM(dca_ssthresh, 1, 0, 1, "1 lowers ssthresh to the window at a cut, 0 lets slow start resume")

#define DCA_UNIT 1024

struct dcac {
	struct cc_member member;
	u64 last_cut_us;	/* 0 before the first */
	u64 window_us;		/* begin of the present window of round-trip times */
	u32 min_us, max_us;	/* in it; 0 where there is none */
	u32 old_min_us, old_max_us; /* in the one before */
	u32 rtt_us;		/* the sample that counts, 0 once it is used */
	u16 fraction;		/* of cwnd, in 1/1024 segment */
};
CC_STATE(struct dcac);

static __always_inline void dca_key(struct sock *sk, struct cc_group_key *key)
{
	cc_group_key(sk, param(sk, dca_plen4), param(sk, dca_plen6), 0, key);
}

static __always_inline void dca_remember(struct sock *sk, u32 rtt_us, u64 now)
{
	struct dcac *dca = inet_csk_ca(sk);
	u64 window_us = param(sk, dca_rttmax_window_s) * 1000000;

	if (window_us && now - dca->window_us >= window_us) {
		dca->old_min_us = dca->min_us;
		dca->old_max_us = dca->max_us;
		dca->min_us = 0;
		dca->max_us = 0;
		dca->window_us = now;
	}
	dca->min_us = dca->min_us ? cc_min(dca->min_us, rtt_us) : rtt_us;
	dca->max_us = cc_max(dca->max_us, rtt_us);
}

/* True where the latest round-trip time announces congestion. */
static __always_inline bool dca_delayed(struct sock *sk)
{
	const struct dcac *dca = inet_csk_ca(sk);
	u32 min = dca->min_us, max = cc_max(dca->max_us, dca->old_max_us), range;

	if (dca->old_min_us)
		min = cc_min(min, dca->old_min_us);
	range = max - min;
	return range >= param(sk, dca_min_range_us) &&
	       dca->rtt_us > min + range * param(sk, dca_lambda_pct) / 100;
}

/* cwnd -= alpha cwnd / n. */
static __always_inline void dca_cut(struct sock *sk, u64 n)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dcac *dca = inet_csk_ca(sk);
	u64 window = (u64)tp->snd_cwnd * DCA_UNIT + dca->fraction;

	window -= window * param(sk, dca_alpha_permille) / (1000 * n);
	if (window < 2 * DCA_UNIT)
		window = 2 * DCA_UNIT;
	tp->snd_cwnd = window / DCA_UNIT;
	dca->fraction = window % DCA_UNIT;
	if (param(sk, dca_ssthresh))
		tp->snd_ssthresh = cc_min(tp->snd_ssthresh, tp->snd_cwnd);
}

CC_HOOK(void, dca_init, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct dcac *dca = inet_csk_ca(sk);
	struct cc_group_key key;
	struct cc_group *g;
	struct cc_note note;

	dca_key(sk, &key);
	g = cc_group_make(sk, &key);
	if (!g)
		return;
	cc_lock(g);
	cc_group_enter(g, &dca->member, tp->snd_cwnd, 0);
	cc_group_post(g, &dca->member, CC_JOIN, tp->snd_cwnd, 0);
	note = cc_group_note(g, CC_JOIN);
	cc_unlock(g);
	cc_group_tell(sk, &key, &note);
}

CC_HOOK(void, dca_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct dcac *dca = inet_csk_ca(sk);

	if (sample->rtt_us <= 0)
		return;
	dca->rtt_us = param(sk, dca_rtt) == DCA_SRTT ? tcp_sk(sk)->srtt_us >> 3 : (u32)sample->rtt_us;
	dca_remember(sk, sample->rtt_us, cc_now_us(sk));
}

/* Cuts where the connection sees congestion itself or has been told of it. */
static __always_inline void dca_avoid(struct sock *sk, struct cc_group *g, const struct cc_group_key *key)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dcac *dca = inet_csk_ca(sk);
	struct cc_member *m = &dca->member;
	bool own = dca->rtt_us && dca_delayed(sk);
	struct cc_group_event told;
	struct cc_note note;
	u64 now, n;

	dca->rtt_us = 0;
	if (cc_group_news(g, m, CC_DELAY)) {
		cc_lock(g);
		told = g->ev[CC_DELAY];
		n = g->n;
		cc_unlock(g);
		m->seen[CC_DELAY] = told.count;
		if (!tcp_in_slow_start(tp) && told.cwnd < tp->snd_cwnd)
			dca_cut(sk, n);
	}
	if (!own || tcp_in_slow_start(tp))
		return;
	now = cc_now_us(sk);
	if (dca->last_cut_us && now - dca->last_cut_us < param(sk, dca_period) * (tp->srtt_us >> 3))
		return;
	dca->last_cut_us = now;
	cc_lock(g);
	cc_group_post(g, m, CC_DELAY, tp->snd_cwnd, 0);
	note = cc_group_note(g, CC_DELAY);
	cc_unlock(g);
	cc_group_tell(sk, key, &note);
	dca_cut(sk, 1);
}

static __always_inline void dca_contribute(struct sock *sk, struct cc_group *g, u32 cwnd)
{
	struct dcac *dca = inet_csk_ca(sk);
	u32 ssthresh = tcp_sk(sk)->snd_ssthresh;

	if (ssthresh >= TCP_INFINITE_SSTHRESH)
		ssthresh = 0;
	if (dca->member.cwnd == cwnd && dca->member.ssth == ssthresh)
		return;
	cc_lock(g);
	cc_group_contribute(g, &dca->member, cwnd, ssthresh);
	cc_unlock(g);
}

CC_HOOK(void, dca_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct dcac *dca = inet_csk_ca(sk);
	struct cc_group_key key;
	struct cc_group *g = NULL;

	if (dca->member.in_group) {
		dca_key(sk, &key);
		g = cc_group_find(sk, &key);
	}
	if (g)
		dca_avoid(sk, g, &key);
	reno_cong_avoid(sk, acked);
	if (g)
		dca_contribute(sk, g, tcp_sk(sk)->snd_cwnd);
}

CC_HOOK(u32, dca_after_loss, struct sock *sk)
{
	struct dcac *dca = inet_csk_ca(sk);

	dca->fraction = 0;
	return reno_ssthresh(tcp_sk(sk));
}

CC_HOOK(u32, dca_undo_cwnd, struct sock *sk)
{
	return undo_default(tcp_sk(sk));
}

CC_HOOK(void, dca_release, struct sock *sk)
{
	struct dcac *dca = inet_csk_ca(sk);
	struct cc_group_key key;
	struct cc_group *g;
	struct cc_note note;

	if (!dca->member.in_group)
		return;
	dca_key(sk, &key);
	g = cc_group_find(sk, &key);
	if (!g)
		return;
	cc_lock(g);
	cc_group_post(g, &dca->member, CC_LEAVE, dca->member.cwnd, dca->member.ssth);
	cc_group_exit(g, &dca->member);
	note = cc_group_note(g, CC_LEAVE);
	cc_unlock(g);
	cc_group_tell(sk, &key, &note);
}

CC_REGISTER("TCP/DCA-C: Reno that yields to growing delay and tells the other connections to the host",
	.init = CC_OP(dca_init),
	.pkts_acked = CC_OP(dca_pkts_acked),
	.cong_avoid = CC_OP(dca_cong_avoid),
	.ssthresh = CC_OP(dca_after_loss),
	.undo_cwnd = CC_OP(dca_undo_cwnd),
	.release = CC_OP(dca_release))
