/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Heracles: connections to neighbouring hosts share what they learn of the path.
 *
 * Hydra groups connections whose destinations have a prefix in common and whose
 * round-trip times are alike. A group holds (Table I of the paper; struct cc_group):
 *
 *	group size	n
 *	subnet		the key's prefix, and a slot for each range of round-trip times
 *	group rtt	rtt_us
 *	total ssthresh	ssth_tot; a member in its first slow start contributes cwnd
 *	total cwnd	cwnd_tot
 *	events		JOIN, LOSS, LEAVE: counters with the values of the last one
 *
 *	est_cwnd = cwnd_tot / n		est_ss = ssth_tot / n
 *
 * Heracles is Reno whose members act on the events of their group:
 *
 *	join	once her_min_acks segments are acknowledged: contribute min(cwnd,
 *		ssthresh) to both sums, post JOIN{est_cwnd, est_ss}; where
 *		est_ss > cwnd: ssthresh = cwnd = est_ss, slow start is skipped
 *	  seen	not in the first slow start: ssthresh = est_ss
 *	growth	Reno, each on its own; then contribute the new cwnd and ssthresh
 *	loss	contribute half the window; target = cwnd_tot / n, post LOSS{target};
 *		ssthresh = target. Of n equal windows each falls by 1/(2n); alone
 *		this is Reno
 *	  seen	ssthresh = target, cwnd = min(cwnd, target)
 *	leave	at the close: post LEAVE{cwnd_tot / (n - 1)}, take back the
 *		contribution; a round-trip time outside the group's range: the same,
 *		keep the window and join the group that fits
 *	  seen	not in the first slow start: ssthresh = max(ssthresh, LEAVE.cwnd),
 *		so that the member slow-starts into what was set free
 *
 * Source: "Heracles and Hydra: grouping parallel TCP connections", sections III.A
 * (grouping) and III.B (events). The authors' module, github.com/PeBraz/TCP.Heracles
 * at 8e105e5 (2016), differs from the text in places: the default is the text, the
 * module's way an option.
 *
 * Constants
 *	24 bits		the paper's mask for IPv4; 64 for IPv6 is the usual size of
 *			one network (RFC 7421)
 *	50 % to 150 %	the range of round-trip times is the module's; the paper
 *			gives no numbers
 *	3 segments	before the join, as in the module
 *	2 segments	RFC 5681's floor of ssthresh
 *
 * How this differs from the paper
 *	1. Events are seen at the member's own next ACK, at most a round trip later:
 *	   a hook can change its own socket only.
 *	2. IPv6, with a prefix of its own.
 *	3. Samples without a round-trip time are ignored. (In the module they are -1
 *	   and expel the member.)
 *	4. All pending events are applied, LOSS before JOIN before LEAVE. (The module
 *	   drops all but the highest of JOIN, LOSS, LEAVE; a join would hide a loss.)
 *	   A member's own loss outdates what is pending.
 *	5. During loss recovery a seen LOSS lowers ssthresh only, since PRR sets cwnd;
 *	   JOIN and LEAVE wait for its end.
 *	6. A loss never raises the loser's own window: a small member among large ones
 *	   keeps its window (her_loss_down_only).
 *	7. Timeouts, ECN echoes and repaired tail losses are losses. An undone loss
 *	   gives the member its window back; the others keep theirs
 *	   (her_undo_event).
 *	8. The "excess" of a leaver: the paper splits it among the others; here, as in
 *	   the module, the others may slow-start up to the mean with it.
 *	9. A "group score" appears only in the paper's future work: among several
 *	   groups that fit, the nearest round-trip time is taken (her_score).
 *	10. At most 16 groups per prefix; connections that fit in none are Reno.
 *	11. her_loss_mode 2, the module's mean of ssthresh, is at most a Reno loss's
 *	    share of the window, or a lone member in its first slow start would not
 *	    reduce at all.
 */
#include "cc_group.h"

enum { HER_LATEST, HER_SRTT, HER_MIN };
enum { HER_LAST_JOIN, HER_FIRST, HER_EWMA8 };
enum { HER_SEGMENTS, HER_ACKS };
enum { HER_JUMP, HER_BOUND };
enum { HER_JOIN_SSTHRESH, HER_JOIN_SET_CWND, HER_JOIN_NONE };
enum { HER_MEAN_CWND, HER_PROPORTIONAL, HER_MEAN_SSTHRESH };
enum { HER_LEAVE_SSTHRESH, HER_LEAVE_CWND };
enum { HER_CLOSE, HER_IDLE };
enum { HER_NEAREST_RTT, HER_FIRST_SLOT, HER_LARGEST };
enum { HER_ALL, HER_HIGHEST };

CC_PARAM(her_plen4, 24, 0, 32, "bits of an IPv4 destination that a group has in common")
CC_PARAM(her_plen6, 64, 0, 128, "bits of an IPv6 destination that a group has in common")
CC_PARAM(her_rtt_lo_pct, 50, 0, 100, "percent of the group's round-trip time, below it a member leaves")
CC_PARAM(her_rtt_hi_pct, 150, 100, 100000, "percent of the group's round-trip time, above it a member leaves")
CC_PARAM(her_rtt_src, HER_LATEST, 0, 2,
	 "a member's round-trip time: 0 latest sample, 1 smoothed, 2 recent minimum")
CC_PARAM(her_group_rtt, HER_LAST_JOIN, 0, 2,
	 "the group's round-trip time: 0 of the last to join, 1 of the first, 2 average of samples (weight 1/8)")
CC_PARAM(her_rtt_strikes, 1, 1, 255, "samples in a row outside the range before a member leaves")
CC_PARAM(her_min_acks, 3, 1, 1 << 20, "acknowledged segments or ACKs (her_ack_unit) before a connection joins")
CC_PARAM(her_ack_unit, HER_SEGMENTS, 0, 1, "her_min_acks counts: 0 segments, 1 ACKs")
CC_PARAM(her_join_self, HER_JUMP, 0, 1,
	 "who joins a group of larger ssthresh: 0 skips slow start, 1 slow-starts up to it")
CC_PARAM(her_join_others, HER_JOIN_SSTHRESH, 0, 2,
	 "a join makes the others: 0 set ssthresh, 1 set ssthresh and cwnd, 2 do nothing")
CC_PARAM(her_loss_mode, HER_MEAN_CWND, 0, 2,
	 "a loss makes the members fall to: 0 mean window, 1 own window less 1/(2n), 2 mean ssthresh")
CC_PARAM(her_loss_down_only, 1, 0, 1, "0 lets a loss raise the windows below its target")
CC_PARAM(her_leave_mode, HER_LEAVE_SSTHRESH, 0, 1,
	 "a leave lets the others: 0 slow-start to the new mean, 1 take it at once")
CC_PARAM(her_leave_on, HER_CLOSE, 0, 1, "a member leaves: 0 when it closes, 1 also after an idle timeout")
CC_PARAM(her_score, HER_NEAREST_RTT, 0, 2,
	 "of several groups that fit: 0 nearest round-trip time, 1 first, 2 most members")
CC_PARAM(her_event_order, HER_ALL, 0, 1,
	 "pending events: 0 all, losses first; 1 only the highest of join, loss, leave")
CC_PARAM(her_undo_event, 0, 0, 1, "1 lets the others slow-start back after a loss that was none")
CC_PARAM(her_slots, 8, 1, 16, "groups per prefix")

#define HER_SLOTS_MAX 16
#define HER_NO_SLOT HER_SLOTS_MAX

/* The group's own values: at its last loss. */
enum { HER_LOSS_N, HER_CWND_BEFORE };

struct heracles {
	struct cc_member member;
	u32 rtt_us;		/* 0 before the first sample */
	u32 acks;		/* her_ack_unit, while outside of groups */
	u8 strikes;
	bool sampled;		/* rtt_us has not been compared with the group's */
};
CC_STATE(struct heracles);

static __always_inline bool her_in_first_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH;
}

static __always_inline void her_key(struct sock *sk, struct cc_group_key *key)
{
	const struct heracles *her = inet_csk_ca(sk);

	cc_group_key(sk, param(sk, her_plen4), param(sk, her_plen6), her->member.slot, key);
}

static __always_inline bool her_fits(struct sock *sk, u32 group_rtt_us)
{
	const struct heracles *her = inet_csk_ca(sk);
	u64 rtt = (u64)her->rtt_us * 100;

	return rtt >= group_rtt_us * param(sk, her_rtt_lo_pct) &&
	       rtt <= group_rtt_us * param(sk, her_rtt_hi_pct);
}

/* The slot of the group to join, an unused one where none fits, HER_NO_SLOT where
 * none is left. What it looks at may change before the lock is taken. */
static __always_inline u32 her_find_slot(struct sock *sk, struct cc_group_key *key)
{
	const struct heracles *her = inet_csk_ca(sk);
	u32 best = HER_NO_SLOT, unused = HER_NO_SLOT, best_gap = 0, best_n = 0;
	u64 score = param(sk, her_score);

	for (u32 slot = 0; slot < HER_SLOTS_MAX && slot < param(sk, her_slots); slot++) {
		const struct cc_group *g;
		u32 n, rtt, gap;
		bool better;

		key->slot = slot;
		g = cc_group_find(sk, key);
		n = g ? g->n : 0;
		rtt = g ? g->rtt_us : 0;
		if (!n) {
			unused = cc_min(unused, slot);
			continue;
		}
		if (!her_fits(sk, rtt))
			continue;
		gap = rtt > her->rtt_us ? rtt - her->rtt_us : her->rtt_us - rtt;
		if (score == HER_FIRST_SLOT)
			better = false;
		else if (score == HER_LARGEST)
			better = n > best_n;
		else
			better = gap < best_gap || (gap == best_gap && n > best_n);
		if (best == HER_NO_SLOT || better) {
			best = slot;
			best_gap = gap;
			best_n = n;
		}
	}
	return best == HER_NO_SLOT ? unused : best;
}

/* Joins the group that fits. A member that changes its group keeps its window. */
static __always_inline void her_join(struct sock *sk, bool changes_group)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct heracles *her = inet_csk_ca(sk);
	struct cc_member *m = &her->member;
	u32 contribution = cc_min(tp->snd_cwnd, tp->snd_ssthresh);
	struct cc_group_key key;
	struct cc_group *g;
	struct cc_note note;
	u32 slot;

	her->acks = 0;	/* counts anew where this fails */
	her->strikes = 0;
	her_key(sk, &key);
	slot = her_find_slot(sk, &key);
	if (slot == HER_NO_SLOT)
		return;
	m->slot = slot;
	key.slot = slot;
	g = cc_group_make(sk, &key);
	if (!g)
		return;

	cc_lock(g);
	if (g->n && !her_fits(sk, g->rtt_us)) {
		cc_unlock(g);
		return;
	}
	if (!g->n || param(sk, her_group_rtt) == HER_LAST_JOIN)
		g->rtt_us = her->rtt_us;
	cc_group_enter(g, m, contribution, contribution);
	cc_group_post(g, m, CC_JOIN, g->cwnd_tot / g->n, g->ssth_tot / g->n);
	note = cc_group_note(g, CC_JOIN);
	cc_unlock(g);

	cc_group_tell(sk, &key, &note);
	if (changes_group || note.ssthresh <= tp->snd_cwnd)
		return;
	tp->snd_ssthresh = cc_max(note.ssthresh, 2);
	if (param(sk, her_join_self) == HER_JUMP)
		tp->snd_cwnd = tp->snd_ssthresh;
}

static __always_inline void her_leave(struct sock *sk)
{
	struct heracles *her = inet_csk_ca(sk);
	struct cc_member *m = &her->member;
	struct cc_group_key key;
	struct cc_group *g;
	struct cc_note note;

	if (!m->in_group)
		return;
	her_key(sk, &key);
	g = cc_group_find(sk, &key);
	if (!g)
		return;
	cc_lock(g);
	cc_group_post(g, m, CC_LEAVE, g->n > 1 ? g->cwnd_tot / (g->n - 1) : 0, 0);
	cc_group_exit(g, m);
	note = cc_group_note(g, CC_LEAVE);
	cc_unlock(g);
	cc_group_tell(sk, &key, &note);
}

static __always_inline void her_contribute(struct sock *sk, struct cc_group *g)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct heracles *her = inet_csk_ca(sk);
	u32 ssth = her_in_first_slow_start(tp) ? tp->snd_cwnd : tp->snd_ssthresh;

	if (her->member.cwnd == tp->snd_cwnd && her->member.ssth == ssth)
		return;
	cc_lock(g);
	cc_group_contribute(g, &her->member, tp->snd_cwnd, ssth);
	cc_unlock(g);
}

/* The window that a loss leaves to a member: n members, mean target. */
static __always_inline u32 her_after_loss(struct sock *sk, u32 target, u64 n)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	if (param(sk, her_loss_mode) == HER_PROPORTIONAL)
		target = cwnd * (2 * n - 1) / (2 * n);
	return cc_max(target, 2);
}

static __always_inline void her_apply_loss(struct sock *sk, u32 target)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_ssthresh = target;
	if (tp->snd_cwnd > target || !param(sk, her_loss_down_only))
		tp->snd_cwnd = target;
}

static __always_inline void her_apply_join(struct sock *sk, u32 est_ss)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 mode = param(sk, her_join_others);

	if (mode == HER_JOIN_NONE)
		return;
	tp->snd_ssthresh = cc_max(est_ss, 2);
	if (mode == HER_JOIN_SET_CWND)
		tp->snd_cwnd = tp->snd_ssthresh;
}

/* After a leave, or a loss that was none: room up to cwnd. */
static __always_inline void her_apply_room(struct sock *sk, u32 cwnd)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_ssthresh = cc_max(tp->snd_ssthresh, cwnd);
	if (param(sk, her_leave_mode) == HER_LEAVE_CWND)
		tp->snd_cwnd = cc_max(tp->snd_cwnd, cwnd);
}

/* Applies what happened in the group since the member's last ACK. */
static __always_inline void her_poll(struct sock *sk, struct cc_group *g)
{
	struct heracles *her = inet_csk_ca(sk);
	struct cc_member *m = &her->member;
	struct cc_group_event join, loss, leave, undo;
	bool joined, lost, left, undone, first;
	u64 loss_n;

	joined = cc_group_news(g, m, CC_JOIN);
	lost = cc_group_news(g, m, CC_LOSS);
	left = cc_group_news(g, m, CC_LEAVE);
	undone = cc_group_news(g, m, CC_UNDO);
	if (!joined && !lost && !left && !undone)
		return;

	cc_lock(g);
	join = g->ev[CC_JOIN];
	loss = g->ev[CC_LOSS];
	leave = g->ev[CC_LEAVE];
	undo = g->ev[CC_UNDO];
	loss_n = g->own[HER_LOSS_N];
	cc_unlock(g);
	m->seen[CC_JOIN] = join.count;
	m->seen[CC_LOSS] = loss.count;
	m->seen[CC_LEAVE] = leave.count;
	m->seen[CC_UNDO] = undo.count;

	if (param(sk, her_event_order) == HER_HIGHEST) {
		lost &= !joined;
		left &= !joined && !lost;
	}
	first = her_in_first_slow_start(tcp_sk(sk));	/* a loss would end it */
	if (lost)
		her_apply_loss(sk, her_after_loss(sk, loss.cwnd, loss_n));
	if (joined && !first)
		her_apply_join(sk, join.ssthresh);
	if (left && !first)
		her_apply_room(sk, leave.cwnd);
	if (undone)
		her_apply_room(sk, undo.cwnd);
}

/* True where the member's latest round-trip times do not belong to its group. */
static __always_inline bool her_strays(struct sock *sk, struct cc_group *g)
{
	struct heracles *her = inet_csk_ca(sk);

	if (!her->sampled)
		return false;
	her->sampled = false;
	if (!her_fits(sk, g->rtt_us)) {
		her->strikes++;
		return her->strikes >= param(sk, her_rtt_strikes);
	}
	her->strikes = 0;
	if (param(sk, her_group_rtt) == HER_EWMA8) {
		cc_lock(g);
		g->rtt_us = ((u64)g->rtt_us * 7 + her->rtt_us) / 8;
		cc_unlock(g);
	}
	return false;
}

CC_HOOK(void, her_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct heracles *her = inet_csk_ca(sk);
	u64 source = param(sk, her_rtt_src);
	u8 state = cc_ca_state(sk);
	struct cc_group_key key;
	struct cc_group *g;

	if (!her->member.in_group)
		her->acks += param(sk, her_ack_unit) == HER_ACKS ? 1 : sample->pkts_acked;
	if (sample->rtt_us > 0) {
		her->rtt_us = source == HER_SRTT  ? tp->srtt_us >> 3 :
			      source == HER_MIN	  ? cc_min_rtt_us(sk) :
						    (u32)sample->rtt_us;
		her->sampled = true;
	}

	/* cong_avoid() does not run in these states. */
	if (!her->member.in_group || (state != TCP_CA_CWR && state != TCP_CA_Recovery))
		return;
	her_key(sk, &key);
	g = cc_group_find(sk, &key);
	if (g && cc_group_news(g, &her->member, CC_LOSS)) {
		struct cc_group_event loss;
		u64 n;

		cc_lock(g);
		loss = g->ev[CC_LOSS];
		n = g->own[HER_LOSS_N];
		cc_unlock(g);
		her->member.seen[CC_LOSS] = loss.count;
		tp->snd_ssthresh = cc_min(tp->snd_ssthresh, her_after_loss(sk, loss.cwnd, n));
	}
}

CC_HOOK(void, her_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct heracles *her = inet_csk_ca(sk);
	struct cc_group *g = NULL;
	struct cc_group_key key;

	if (her->member.in_group) {
		her_key(sk, &key);
		g = cc_group_find(sk, &key);
		if (g) {
			her_poll(sk, g);
			if (her_strays(sk, g)) {
				her_leave(sk);
				her_join(sk, true);
			}
		}
	} else if (her->rtt_us && her->acks >= param(sk, her_min_acks)) {
		her_join(sk, false);
	}
	reno_cong_avoid(sk, acked);
	if (!her->member.in_group)
		return;
	her_key(sk, &key);
	g = cc_group_find(sk, &key);
	if (g)
		her_contribute(sk, g);
}

CC_HOOK(u32, her_ssthresh, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct heracles *her = inet_csk_ca(sk);
	struct cc_member *m = &her->member;
	u32 half = reno_ssthresh(tp);
	u32 target, own, share;
	struct cc_group_key key;
	struct cc_group *g;
	struct cc_note note;

	if (!m->in_group)
		return half;
	her_key(sk, &key);
	g = cc_group_find(sk, &key);
	if (!g)
		return half;

	cc_lock(g);
	share = (u64)tp->snd_cwnd * (2 * g->n - 1) / (2 * g->n);
	g->own[HER_LOSS_N] = g->n;
	g->own[HER_CWND_BEFORE] = g->cwnd_tot / g->n;
	cc_group_contribute(g, m, half, m->ssth);
	target = g->cwnd_tot / g->n;
	if (param(sk, her_loss_mode) == HER_MEAN_SSTHRESH)
		target = cc_min(g->ssth_tot / g->n, share);
	target = cc_max(target, 2);
	own = her_after_loss(sk, target, g->n);
	if (param(sk, her_loss_down_only))
		own = cc_max(cc_min(own, tp->snd_cwnd), 2);
	cc_group_contribute(g, m, m->cwnd, own);
	cc_group_catch_up(g, m);
	cc_group_post(g, m, CC_LOSS, target, target);
	note = cc_group_note(g, CC_LOSS);
	cc_unlock(g);
	cc_group_tell(sk, &key, &note);
	return own;
}

/* Runs before each round of sending, so also before the first segment after an idle period. */
CC_HOOK(u32, her_min_tso_segs, struct sock *sk)
{
	struct heracles *her = inet_csk_ca(sk);

	if (param(sk, her_leave_on) == HER_IDLE && her->member.in_group && idle_now(sk)) {
		her_leave(sk);
		her->acks = 0;
	}
	return 2;	/* the kernel's default */
}

CC_HOOK(u32, her_undo_cwnd, struct sock *sk)
{
	struct heracles *her = inet_csk_ca(sk);
	struct cc_member *m = &her->member;
	u32 cwnd = undo_default(tcp_sk(sk));
	struct cc_group_key key;
	struct cc_group *g;
	struct cc_note note;

	if (!m->in_group)
		return cwnd;
	her_key(sk, &key);
	g = cc_group_find(sk, &key);
	if (!g)
		return cwnd;
	cc_lock(g);
	cc_group_contribute(g, m, cwnd, m->ssth);
	if (!param(sk, her_undo_event)) {
		cc_unlock(g);
		return cwnd;
	}
	cc_group_post(g, m, CC_UNDO, g->own[HER_CWND_BEFORE], 0);
	note = cc_group_note(g, CC_UNDO);
	cc_unlock(g);
	cc_group_tell(sk, &key, &note);
	return cwnd;
}

CC_HOOK(void, her_release, struct sock *sk)
{
	her_leave(sk);
}

CC_REGISTER("Heracles: Reno whose connections to one network share windows, losses and what a leaver sets free",
	.pkts_acked = CC_OP(her_pkts_acked),
	.cong_avoid = CC_OP(her_cong_avoid),
	.ssthresh = CC_OP(her_ssthresh),
	.min_tso_segs = CC_OP(her_min_tso_segs),
	.undo_cwnd = CC_OP(her_undo_cwnd),
	.release = CC_OP(her_release))
