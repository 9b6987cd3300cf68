/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * TCBT: temporal sharing of TCP control blocks (RFC 9040, section 6).
 *
 *	open	a cached window of the destination not older than tcb_max_age_s:
 *		cwnd = max(cached cwnd, tcb_min_cwnd), ssthresh = cached ssthresh;
 *		with tcb_share_rtt also the round-trip time and its variation
 *	close	nothing cached:  cache cwnd and ssthresh
 *		otherwise:       cached += (current - cached) / 2^tcb_merge_shift
 *	between	Reno
 *
 * The cache is the group of the destination (struct cc_group, own); its members
 * are the connections now open, which do not influence each other.
 *
 * Sources
 *	RFC 9040 (2021), section 6: what is cached and when. The merge is left open.
 *	RFC 2140 (1997): the predecessor, with the merge used here.
 *
 * Constants
 *	1/4		weight of the connection that closes, as in RFC 2140
 *	initial window	the least that a new connection gets: a small cached window
 *			can hurt (RFC 9040, section 8)
 *	3600 s		Linux forgets its own TCP metrics after an hour
 *
 * How this differs from the RFC
 *	1. A hook of the kernel cannot write the round-trip time, its variation and the
 *	   timeout of a new connection; tcb_share_rtt is for the simulator. MSS and
 *	   options are no matter of a congestion control.
 *	2. An infinite ssthresh, of a connection that never met a loss, is no
 *	   estimate and is not cached.
 *	3. A cache entry is not removed when it is too old, it is not used.
 *	4. Changing the congestion control of a connection counts as its close; a
 *	   connection that changes to this one keeps its window.
 */
#include "cc_group.h"

CC_OWN_INITIAL_WINDOW

CC_PARAM(tcb_plen4, 32, 0, 32, "bits of an IPv4 destination that share a cache entry; 32 is the host")
CC_PARAM(tcb_plen6, 128, 0, 128, "bits of an IPv6 destination that share a cache entry; 128 is the host")
CC_PARAM(tcb_merge_shift, 2, 0, 16, "a closing connection moves the cache by 1/2^N of the difference")
CC_PARAM(tcb_min_cwnd, 0, 0, 65535, "least initial window in segments; 0 is the route's initial window")
CC_PARAM(tcb_max_age_s, 3600, 0, 1 << 30, "seconds after which the cache is not used")
CC_PARAM(tcb_long_only_ssthresh, 0, 0, 1, "1 caches ssthresh only of connections that have left slow start")
CC_PARAM_SIMULATED(tcb_share_rtt, 0, 0, 1,
		   "1 caches the round-trip time and its variation too; in the simulator only")

/* The cache, the group's own values; 0 where nothing is cached. */
enum { TCB_CWND, TCB_SSTHRESH, TCB_TIME_US, TCB_SRTT_US, TCB_RTTVAR_US };

struct tcbt {
	struct cc_member member;
};
CC_STATE(struct tcbt);

static __always_inline void tcb_key(struct sock *sk, struct cc_group_key *key)
{
	cc_group_key(sk, param(sk, tcb_plen4), param(sk, tcb_plen6), 0, key);
}

static __always_inline u64 tcb_merge(struct sock *sk, u64 cached, u64 current)
{
	u64 shift = param(sk, tcb_merge_shift) & 31;

	if (!cached)
		return current;
	return current > cached ? cached + ((current - cached) >> shift) :
				  cached - ((cached - current) >> shift);
}

CC_HOOK(void, tcbt_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct tcbt *tcb = inet_csk_ca(sk);
	u64 now = cc_now_us(sk);
	u64 floor = param(sk, tcb_min_cwnd);
	u64 cwnd, ssthresh, age, srtt, rttvar;
	struct cc_group_key key;
	struct cc_group *g;
	struct cc_note note;

	tcb_key(sk, &key);
	g = cc_group_make(sk, &key);
	if (!g)
		return;
	cc_lock(g);
	cwnd = g->own[TCB_CWND];
	ssthresh = g->own[TCB_SSTHRESH];
	age = now - g->own[TCB_TIME_US];
	srtt = g->own[TCB_SRTT_US];
	rttvar = g->own[TCB_RTTVAR_US];
	cc_group_enter(g, &tcb->member, 0, 0);
	cc_group_post(g, &tcb->member, CC_JOIN, cwnd, ssthresh);
	note = cc_group_note(g, CC_JOIN);
	cc_unlock(g);
	cc_group_tell(sk, &key, &note);

	if (!cwnd || age > param(sk, tcb_max_age_s) * 1000000 || cc_is_live(tp))
		return;
	tp->snd_cwnd = cc_min(cc_max(cwnd, floor ? floor : tp->snd_cwnd), tp->snd_cwnd_clamp);
	if (ssthresh)
		tp->snd_ssthresh = ssthresh;
	if (param(sk, tcb_share_rtt))
		cc_seed_rtt(tp, srtt, rttvar);
}

CC_HOOK(void, tcbt_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	reno_cong_avoid(sk, acked);
}

CC_HOOK(u32, tcbt_ssthresh, struct sock *sk)
{
	return reno_ssthresh(tcp_sk(sk));
}

CC_HOOK(u32, tcbt_undo_cwnd, struct sock *sk)
{
	return undo_default(tcp_sk(sk));
}

CC_HOOK(void, tcbt_release, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct tcbt *tcb = inet_csk_ca(sk);
	bool slow_start = tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH ||
			  (param(sk, tcb_long_only_ssthresh) && tcp_in_slow_start(tp));
	u64 now = cc_now_us(sk);
	u32 rttvar = cc_rttvar_us(tp);
	struct cc_group_key key;
	struct cc_group *g;
	struct cc_note note;

	if (!tcb->member.in_group)
		return;
	tcb_key(sk, &key);
	g = cc_group_find(sk, &key);
	if (!g)
		return;
	cc_lock(g);
	g->own[TCB_CWND] = tcb_merge(sk, g->own[TCB_CWND], tp->snd_cwnd);
	if (!slow_start)
		g->own[TCB_SSTHRESH] = tcb_merge(sk, g->own[TCB_SSTHRESH], tp->snd_ssthresh);
	g->own[TCB_TIME_US] = now;
	g->own[TCB_SRTT_US] = tcb_merge(sk, g->own[TCB_SRTT_US], tp->srtt_us);
	g->own[TCB_RTTVAR_US] = tcb_merge(sk, g->own[TCB_RTTVAR_US], rttvar);
	cc_group_exit(g, &tcb->member);
	cc_group_post(g, &tcb->member, CC_LEAVE, g->own[TCB_CWND], g->own[TCB_SSTHRESH]);
	note = cc_group_note(g, CC_LEAVE);
	cc_unlock(g);
	cc_group_tell(sk, &key, &note);
}

CC_REGISTER("temporal sharing of TCP control blocks (RFC 9040): a connection starts where those before it ended",
	.init = CC_OP(tcbt_init),
	.cong_avoid = CC_OP(tcbt_cong_avoid),
	.ssthresh = CC_OP(tcbt_ssthresh),
	.undo_cwnd = CC_OP(tcbt_undo_cwnd),
	.release = CC_OP(tcbt_release))
