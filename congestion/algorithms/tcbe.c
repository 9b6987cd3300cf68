/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * TCBE: ensemble sharing of TCP control blocks (RFC 9040, section 7).
 *
 * The N connections that are open to a destination hold W = sum of cwnd and
 * S = sum of ssthresh.
 *
 *	open	N > 0:  cwnd = W / (N + 1), ssthresh = S / (N + 1); with tcb_share_rtt
 *		also the round-trip time and variation that a member found last
 *	  seen	each of the N gives its part: cwnd and ssthresh -= 1/(N + 1), so
 *		that the sums stay as they were (tcb_conserve)
 *	change	Reno, each on its own; then contribute the new cwnd and ssthresh
 *	close	take back the contribution; the others keep their windows
 *
 * The others give at their own next ACK, so the sums are too large until then by
 * what is owed. A further newcomer counts W less what is owed.
 *
 * Sources
 *	RFC 9040 (2021), section 7: which variables an ensemble shares. The functions
 *	of sum and count are left open.
 *	RFC 2140 (1997): an ensemble behaves as if its connections were multiplexed
 *	over one, from which the equal shares and the constant sum.
 *
 * Constants
 *	1 segment	the least that a newcomer gets: more would break the constant
 *			sum, which is the point
 *	2 segments	RFC 5681's floor of ssthresh
 *
 * How this differs from the RFC
 *	1. A hook of the kernel cannot write round-trip times; tcb_share_rtt is for the
 *	   simulator.
 *	2. A member that has met no loss has no ssthresh to share. S / N is the mean
 *	   of those that have one; where none has, the newcomer starts with none.
 *	3. A connection that changes to this congestion control joins with the window
 *	   that it has and asks nothing of the others.
 *	4. Several newcomers between two ACKs of a member take their parts at once:
 *	   of d newcomers among n connections (n-d)/n is left.
 */
#include "cc_group.h"

CC_OWN_INITIAL_WINDOW

CC_PARAM(tcb_plen4, 32, 0, 32, "bits of an IPv4 destination that an ensemble has in common; 32 is the host")
CC_PARAM(tcb_plen6, 128, 0, 128, "bits of an IPv6 destination that an ensemble has in common; 128 is the host")
CC_PARAM(tcb_conserve, 1, 0, 1, "1 makes the others give what a newcomer gets, 0 lets the sum grow")
CC_PARAM(tcb_min_cwnd, 1, 0, 65535, "least window in segments of a newcomer; 0 is the route's initial window")
CC_PARAM_SIMULATED(tcb_share_rtt, 0, 0, 1,
		   "1 gives a newcomer the round-trip time and its variation too; in the simulator only")

/* The group's own values: members with an ssthresh; members that have yet to give to a
 * newcomer, and what; round-trip time and variation that a member found last. */
enum { TCB_WITH_SSTHRESH, TCB_DEBTORS, TCB_OWED, TCB_SRTT_US, TCB_RTTVAR_US };

struct tcbe {
	struct cc_member member;
};
CC_STATE(struct tcbe);

static __always_inline void tcb_key(struct sock *sk, struct cc_group_key *key)
{
	cc_group_key(sk, param(sk, tcb_plen4), param(sk, tcb_plen6), 0, key);
}

/* Locked: contributes; an ssthresh of 0 says that there is none. */
static __always_inline void tcb_contribute(struct cc_group *g, struct cc_member *m, u32 cwnd, u32 ssth)
{
	g->own[TCB_WITH_SSTHRESH] += (u64)(ssth > 0) - (m->ssth > 0);
	cc_group_contribute(g, m, cwnd, ssth);
}

/* Locked: what the members hold once all have given. */
static __always_inline u64 tcb_sum(const struct cc_group *g)
{
	u64 owed = g->own[TCB_OWED];

	return g->cwnd_tot > owed ? g->cwnd_tot - owed : 0;
}

static __always_inline u32 tcb_known_ssthresh(const struct tcp_sock *tp)
{
	return tp->snd_ssthresh < TCP_INFINITE_SSTHRESH ? tp->snd_ssthresh : 0;
}

CC_HOOK(void, tcbe_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct tcbe *tcb = inet_csk_ca(sk);
	struct cc_member *m = &tcb->member;
	u32 cwnd = tp->snd_cwnd, ssthresh = tcb_known_ssthresh(tp);
	u32 floor = param(sk, tcb_min_cwnd) ? param(sk, tcb_min_cwnd) : cwnd;
	bool shares = !cc_is_live(tp);
	struct cc_group_key key;
	struct cc_group *g;
	struct cc_note note;
	u64 n, with, srtt, rttvar;

	tcb_key(sk, &key);
	g = cc_group_make(sk, &key);
	if (!g)
		return;
	cc_lock(g);
	n = g->n;
	with = g->own[TCB_WITH_SSTHRESH];
	if (!n)
		g->own[TCB_SRTT_US] = 0;	/* of members that are gone */
	srtt = g->own[TCB_SRTT_US];
	rttvar = g->own[TCB_RTTVAR_US];
	if (n && shares) {
		cwnd = cc_max(tcb_sum(g) / (n + 1), floor);
		if (with)
			ssthresh = cc_max(g->ssth_tot * n / (with * (n + 1)), 2);
		g->own[TCB_DEBTORS] = n;
		if (param(sk, tcb_conserve))
			g->own[TCB_OWED] += cwnd;
	}
	cc_group_enter(g, m, 0, 0);
	tcb_contribute(g, m, cwnd, ssthresh);
	if (shares)
		cc_group_post(g, m, CC_JOIN, cwnd, ssthresh);
	note = cc_group_note(g, CC_JOIN);
	cc_unlock(g);
	cc_group_tell(sk, &key, &note);

	if (!shares)
		return;
	tp->snd_cwnd = cc_min(cwnd, tp->snd_cwnd_clamp);
	if (ssthresh)
		tp->snd_ssthresh = ssthresh;
	if (n && param(sk, tcb_share_rtt))
		cc_seed_rtt(tp, srtt, rttvar);
}

/* Tells the group the member's round-trip time. */
static __always_inline void tcb_tell_rtt(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct tcbe *tcb = inet_csk_ca(sk);
	u32 rttvar = cc_rttvar_us(tp);
	struct cc_group_key key;
	struct cc_group *g;

	if (!tcb->member.in_group || !param(sk, tcb_share_rtt))
		return;
	tcb_key(sk, &key);
	g = cc_group_find(sk, &key);
	if (!g)
		return;
	cc_lock(g);
	g->own[TCB_SRTT_US] = tp->srtt_us;
	g->own[TCB_RTTVAR_US] = rttvar;
	cc_unlock(g);
}

/* Gives to the newcomers since the last call what is theirs. */
static __always_inline void tcb_give(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct tcbe *tcb = inet_csk_ca(sk);
	struct cc_member *m = &tcb->member;
	u32 cwnd, joined, n;
	struct cc_group_key key;
	struct cc_group *g;

	if (!m->in_group)
		return;
	tcb_key(sk, &key);
	g = cc_group_find(sk, &key);
	if (!g || !cc_group_news(g, m, CC_JOIN))
		return;
	cc_lock(g);
	n = g->n;
	joined = cc_min(cc_group_news(g, m, CC_JOIN), n - 1);
	m->seen[CC_JOIN] = g->ev[CC_JOIN].count;
	cwnd = cc_max((u64)tp->snd_cwnd * (n - joined) / n, 1);
	g->own[TCB_DEBTORS]--;
	if (g->own[TCB_DEBTORS])
		g->own[TCB_OWED] -= cc_min(tp->snd_cwnd - cwnd, g->own[TCB_OWED]);
	else
		g->own[TCB_OWED] = 0;
	cc_unlock(g);

	if (!param(sk, tcb_conserve))
		return;
	tp->snd_cwnd = cwnd;
	if (tp->snd_ssthresh < TCP_INFINITE_SSTHRESH)
		tp->snd_ssthresh = cc_max((u64)tp->snd_ssthresh * (n - joined) / n, 2);
}

/* Tells the group the member's window. */
static __always_inline void tcb_update(struct sock *sk, u32 cwnd, u32 ssthresh)
{
	struct tcbe *tcb = inet_csk_ca(sk);
	struct cc_member *m = &tcb->member;
	struct cc_group_key key;
	struct cc_group *g;

	if (!m->in_group || (m->cwnd == cwnd && m->ssth == ssthresh))
		return;
	tcb_key(sk, &key);
	g = cc_group_find(sk, &key);
	if (!g)
		return;
	cc_lock(g);
	tcb_contribute(g, m, cwnd, ssthresh);
	cc_unlock(g);
}

CC_HOOK(void, tcbe_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	tcb_give(sk);
	reno_cong_avoid(sk, acked);
	tcb_update(sk, tp->snd_cwnd, tcb_known_ssthresh(tp));
	tcb_tell_rtt(sk);
}

CC_HOOK(u32, tcbe_ssthresh, struct sock *sk)
{
	u32 ssthresh;

	tcb_give(sk);
	ssthresh = reno_ssthresh(tcp_sk(sk));
	/* The window will be this at the end of the recovery. */
	tcb_update(sk, ssthresh, ssthresh);
	return ssthresh;
}

CC_HOOK(u32, tcbe_undo_cwnd, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = undo_default(tp);

	tcb_update(sk, cwnd, tcb_known_ssthresh(tp));
	return cwnd;
}

CC_HOOK(void, tcbe_release, struct sock *sk)
{
	struct tcbe *tcb = inet_csk_ca(sk);
	struct cc_member *m = &tcb->member;
	struct cc_group_key key;
	struct cc_group *g;
	struct cc_note note;

	if (!m->in_group)
		return;
	tcb_give(sk);
	tcb_key(sk, &key);
	g = cc_group_find(sk, &key);
	if (!g)
		return;
	cc_lock(g);
	cc_group_post(g, m, CC_LEAVE, m->cwnd, m->ssth);
	tcb_contribute(g, m, 0, 0);
	cc_group_exit(g, m);
	note = cc_group_note(g, CC_LEAVE);
	cc_unlock(g);
	cc_group_tell(sk, &key, &note);
}

CC_REGISTER("ensemble sharing of TCP control blocks (RFC 9040): open connections share their windows with a new one",
	.init = CC_OP(tcbe_init),
	.cong_avoid = CC_OP(tcbe_cong_avoid),
	.ssthresh = CC_OP(tcbe_ssthresh),
	.undo_cwnd = CC_OP(tcbe_undo_cwnd),
	.release = CC_OP(tcbe_release))
