/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * FLD_TCP: favours short flows over long ones by two rules of the sender.
 *
 *	short(flow):	bytes sent once <= fld_threshold (2 MB)
 *
 *	slow start	short: cwnd += 2 per acked segment, so it triples each RTT
 *			long:  cwnd += 1 per acked segment, so it doubles
 *	cong. avoidance	both:  cwnd += 1 per cwnd acked segments (Reno)
 *	loss		short: Relentless. L = segments lost in the episode,
 *			       ssthresh = cwnd at its start - L, at least 2;
 *			       cwnd follows (PRR) and ends at ssthresh
 *			long:  ssthresh = cwnd / 2, at least 2
 *	timeout		both:  ssthresh = cwnd / 2, at least 2; cwnd = 1
 *	ECN echo	both:  as a loss of a long flow
 *
 * A flow that grows long keeps cwnd and ssthresh; only the rules change, and a
 * loss episode ends by the rule it began with.
 *
 * Sources
 *	Moktan et al., "Favoring the short", INFOCOM workshops 2012, and
 *	"Performance analysis of a short flow favoring TCP", ICACCI 2014, as retold
 *	in section 2.1 of the authors' study of page loads over LTE and 3G: tripling,
 *	initial window of 10, threshold of 2 MB, Relentless below it, Reno above.
 *	M. Mathis, "Relentless congestion control", PFLDNeT 2009, and his module of
 *	2008: the window is reduced by the number of lost segments.
 *
 * Constants
 *	2,000,000 bytes	the paper counts in decimal: 10 segments of 1500 are 15 kB
 *	2 segments	RFC 5681's floor of ssthresh
 *	gate of 3	a window that triples needs a flight of cwnd/3 to be "in use";
 *			the kernel's own test uses 2, for a window that doubles
 *
 * How this differs from the sources
 *	1. The papers do not say how slow start reacts to a loss; they name Relentless
 *	   for congestion avoidance. Here it covers both (fld_ss_loss).
 *	2. Nothing is said of timeouts and ECN. A timeout marks the whole flight lost
 *	   and an ECN echo marks nothing, so counting losses fits neither: both halve.
 *	   A timeout inside a Relentless episode also ends in half the window.
 *	3. A repaired tail loss (TLP) and a drop in the local queue mark no segment as
 *	   lost; each counts as one.
 *	4. Mathis counts retransmissions, this counts the marks of loss detection;
 *	   fld_loss_count selects.
 *	5. The initial window is the route's (Linux: 10), not set here.
 *	6. Nothing is paced. Where the socket asks for pacing, Linux's rate of twice the
 *	   window per RTT holds back a window that triples: set tcp_pacing_ss_ratio to 300.
 *	7. The window grows only while the sender uses it (fld_gate), as in Linux.
 */
#include "cc.h"

enum { FLD_SENT_UNIQUE, FLD_ACKED, FLD_SENT };
enum { FLD_RELENTLESS, FLD_HALVE };
enum { FLD_RTO_RENO, FLD_RTO_RELENTLESS };
enum { FLD_ECN_HALVE, FLD_ECN_MINUS_ONE };
enum { FLD_LOST_MARKS, FLD_RETRANS };

CC_PARAM(fld_threshold, 2000000, 0, 1ULL << 62, "bytes; a flow that has transmitted more is long")
CC_PARAM(fld_count, FLD_SENT_UNIQUE, 0, 2,
	 "what is counted as transmitted: 0 bytes sent once, 1 bytes acknowledged, 2 bytes sent")
CC_PARAM(fld_ss_loss, FLD_RELENTLESS, 0, 1, "a loss in slow start: 0 Relentless, 1 halve")
CC_PARAM(fld_rto, FLD_RTO_RENO, 0, 1,
	 "ssthresh at a timeout: 0 half the window, 1 Relentless, which the marked flight makes 2")
CC_PARAM(fld_ecn, FLD_ECN_HALVE, 0, 1, "an ECN echo: 0 halve, 1 count as one lost segment")
CC_PARAM(fld_lost_rtx, 1, 0, 1, "1 counts a lost retransmission as a further lost segment")
CC_PARAM(fld_loss_count, FLD_LOST_MARKS, 0, 1,
	 "what is counted as lost: 0 marks of loss detection, 1 retransmissions")
CC_PARAM(fld_gate, 3, 0, 16, "slow start needs a flight above cwnd/N; 0 grows unconditionally")

/* A Relentless episode, from ssthresh() to COMPLETE_CWR, undo or timeout. */
struct fld {
	u32 prior;		/* cwnd at its start */
	u32 lost0;		/* segments marked lost by then, unless an earlier episode counted them */
	u32 lost_entry;		/* tp->lost by then */
	u32 retrans_entry;	/* tp->total_retrans by then */
	u32 counted;		/* tp->lost at the end of the last reduction, whatever its kind */
	struct cc_marks marks;
	bool in_episode;
	bool all_counted;	/* what is marked lost at its start was counted before */
	bool ece;		/* the ACK at hand carries an ECN echo */
};
CC_STATE(struct fld);

static inline bool fld_is_short(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 count = param(sk, fld_count);
	u64 bytes;

	if (count == FLD_ACKED)
		bytes = tp->bytes_acked;
	else if (count == FLD_SENT)
		bytes = tp->bytes_sent;
	else
		bytes = tp->bytes_sent - tp->bytes_retrans;
	return bytes <= param(sk, fld_threshold);
}

static inline u32 fld_half(u32 cwnd)
{
	return cc_max(cwnd >> 1, 2);
}

/* ssthresh after the losses that the episode has seen so far. */
static inline u32 fld_relentless(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct fld *fld = inet_csk_ca(sk);
	u32 losses;

	if (param(sk, fld_loss_count) == FLD_RETRANS)
		losses = tp->total_retrans - fld->retrans_entry;
	else
		losses = fld->lost0 + (tp->lost - fld->lost_entry);
	if (!param(sk, fld_lost_rtx))
		losses -= cc_min(losses, fld->marks.repeats);
	/* Nothing is new where all was counted; where nothing is marked, something was. */
	if (!fld->all_counted)
		losses = cc_max(losses, 1);
	return fld->prior > losses + 2 ? fld->prior - losses : 2;
}

CC_HOOK(void, fld_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 gate = param(sk, fld_gate);

	if (gate && !lim_kernel(sk, gate))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = ss_grow(tp, acked, fld_is_short(sk) ? 2 : 1);
		if (!acked)
			return;
	}
	ca_grow(tp, tp->snd_cwnd, acked);
}

CC_HOOK(u32, fld_ssthresh, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct fld *fld = inet_csk_ca(sk);
	bool ece = fld->ece;

	fld->ece = false;
	fld->in_episode = fld_is_short(sk) &&
			  !(ece && param(sk, fld_ecn) == FLD_ECN_HALVE) &&
			  !(tcp_in_slow_start(tp) && param(sk, fld_ss_loss) == FLD_HALVE);
	if (!fld->in_episode)
		return fld_half(tp->snd_cwnd);

	fld->prior = tp->snd_cwnd;
	fld->lost0 = cc_min(tp->lost_out, tp->lost - fld->counted);
	fld->all_counted = tp->lost_out && !fld->lost0;
	fld->lost_entry = tp->lost;
	fld->retrans_entry = tp->total_retrans;
	fld->marks.repeats = 0;
	cc_marks_before(tp, &fld->marks);
	return fld_relentless(sk);
}

CC_HOOK(void, fld_in_ack_event, struct sock *sk, u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct fld *fld = inet_csk_ca(sk);

	fld->ece = flags & CA_ACK_ECE;
	if (!fld->in_episode)
		return;
	tp->snd_ssthresh = cc_min(tp->snd_ssthresh, fld_relentless(sk));
	cc_marks_before(tp, &fld->marks);
}

/* Runs before each round of sending, hence after the marking. */
CC_HOOK(u32, fld_min_tso_segs, struct sock *sk)
{
	struct fld *fld = inet_csk_ca(sk);

	if (fld->in_episode)
		cc_marks_after(tcp_sk(sk), &fld->marks);
	return 2;	/* the kernel's default */
}

static inline void fld_timeout(struct sock *sk)
{
	struct fld *fld = inet_csk_ca(sk);

	if (!fld->in_episode)
		return;
	if (param(sk, fld_rto) == FLD_RTO_RENO)
		tcp_sk(sk)->snd_ssthresh = fld_half(fld->prior);
	fld->in_episode = false;
}

CC_HOOK(void, fld_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct fld *fld = inet_csk_ca(sk);

	if (event == CA_EVENT_LOSS) {
		fld_timeout(sk);
	} else if (event == CA_EVENT_COMPLETE_CWR) {
		fld->counted = tp->lost;
		if (!fld->in_episode)
			return;
		tp->snd_ssthresh = cc_min(tp->snd_ssthresh, fld_relentless(sk));
		tp->snd_cwnd = tp->snd_ssthresh;
		fld->in_episode = false;
	}
}

/* A timeout within a window that was already reduced raises no CA_EVENT_LOSS. */
CC_HOOK(void, fld_set_state, struct sock *sk, u8 new_state)
{
	struct fld *fld = inet_csk_ca(sk);

	if (new_state != TCP_CA_Loss)
		return;
	fld->counted = tcp_sk(sk)->lost;
	fld_timeout(sk);
}

CC_HOOK(u32, fld_undo_cwnd, struct sock *sk)
{
	struct fld *fld = inet_csk_ca(sk);

	fld->in_episode = false;
	return undo_default(tcp_sk(sk));
}

CC_REGISTER("FLD_TCP: short flows triple in slow start and lose only what was lost; long flows are Reno",
	.cong_avoid = CC_OP(fld_cong_avoid),
	.ssthresh = CC_OP(fld_ssthresh),
	.in_ack_event = CC_OP(fld_in_ack_event),
	.min_tso_segs = CC_OP(fld_min_tso_segs),
	.cwnd_event = CC_OP(fld_cwnd_event),
	.set_state = CC_OP(fld_set_state),
	.undo_cwnd = CC_OP(fld_undo_cwnd))
