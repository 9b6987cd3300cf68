/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CWV: congestion window validation of RFC 2861. A window that was not used decays,
 * because it no longer says anything about the path; ssthresh remembers it.
 *
 *	idle >= RTO	before the first segment: ssthresh = max(ssthresh, 3/4 cwnd);
 *			cwnd = min(cwnd, rwnd) / 2 for each RTO that passed, at least 1
 *	window full	T_prev = now, W_used = 0
 *	not full, nothing left to send
 *			W_used = max(W_used, flight); once per RTO since T_prev:
 *			ssthresh = max(ssthresh, 3/4 cwnd);
 *			cwnd = (min(cwnd, rwnd) + W_used) / 2; T_prev = now, W_used = 0
 *	not full, data waiting (for the receiver or Nagle)
 *			nothing
 *	ACK of new data	growth of RFC 5681, only if the window was full
 *	loss, ECN echo, timeout
 *			ssthresh = cwnd / 2, at least 2
 *
 * Source: RFC 2861, sections 3 (growth only while the window is full), 3.1 (idle
 * and application-limited decay) and 3.2 (pseudo-code: T_last is the kernel's
 * lsndtime). As studied by Biswas et al. (2010), who simulate it with ns-2.
 *
 * Constants
 *	1 segment	lowest window that decays leave (cwv_floor): the RFC and ns-2
 *	3/4 cwnd	between the old window and its first half (section 3.1)
 *
 * How this differs from the RFC
 *	1. "After sending a data segment" has no hook. The flight is measured at each ACK:
 *	   sent segments only become more between ACKs, so it is the exact maximum, at
 *	   most one round trip later. "Data waiting" is what waits then.
 *	2. The idle test runs before the first segment after the idle period, where the
 *	   RFC's pseudo-code, taken literally, lets that one leave by the old window.
 *	3. The application-limited tests run in state Open only: recovery has its own idea
 *	   of the window.
 *	4. The RFC is silent about losses; they are Reno's.
 *	5. The kernel may send a burst in parts (small queues, segmentation offload), and
 *	   the ACK at hand then finds less than a window in flight. While data waits, a
 *	   flight that Linux marks as limited by cwnd counts as full.
 *
 * How this differs from Linux's "CWV" (tcp_cwnd_restart, tcp_cwnd_application_limited)
 *	6. Linux's floor is min(IW, cwnd), and its application-limited decay practically
 *	   never fires, as each ACK of new data counts as use. With the sysctl
 *	   tcp_slow_start_after_idle at 1 it would run as well.
 */
#include "cc.h"

CC_SYSCTL("net.ipv4.tcp_slow_start_after_idle", "0")

enum { CWV_RTO, CWV_RTT };
enum { CWV_THREE_QUARTERS, CWV_OLD_CWND };
enum { CWV_FULL, CWV_KERNEL };

CC_PARAM(cwv_unit, CWV_RTO, 0, 1, "the window decays once per: 0 RTO, 1 smoothed RTT; idle begins at an RTO")
CC_PARAM(cwv_floor, 1, 0, 65535, "segments that remain after idle; 0 is the initial window")
CC_PARAM(cwv_ssthresh, CWV_THREE_QUARTERS, 0, 1,
	 "ssthresh remembers: 0 three quarters of the old cwnd, 1 all of it")
CC_PARAM(cwv_gate, CWV_FULL, 0, 1,
	 "growth needs: 0 a full window, 1 Linux's test (half a window in slow start)")

struct cwv {
	u32 t_prev;		/* jiffies; last time the window was full or decayed */
	u32 w_used;		/* segments; the largest flight since */
	u32 restarted;		/* lsndtime of the idle period that was counted last */
	u32 initial_window;
	bool full;		/* the window was full when the ACK at hand arrived */
};
CC_STATE(struct cwv);

CC_HOOK(void, cwv_init, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct cwv *cwv = inet_csk_ca(sk);

	cwv->t_prev = cc_now_j(sk);
	cwv->restarted = tp->lsndtime - 1;
	cwv->initial_window = cc_is_live(tp) ? TCP_INIT_CWND : tp->snd_cwnd;
	cwv->full = true;
}

/* What counts as one RTO, in jiffies. */
static inline u32 cwv_unit_j(struct sock *sk)
{
	if (param(sk, cwv_unit) == CWV_RTT)
		return cc_max(cc_us_to_j(tcp_sk(sk)->srtt_us >> 3), 1);
	return cc_max(inet_csk(sk)->icsk_rto, 1);
}

/* min(cwnd, rwnd) in segments. */
static inline u32 cwv_window(const struct tcp_sock *tp)
{
	return cc_min(tp->snd_cwnd, cc_max(tp->snd_wnd / cc_max(tp->mss_cache, 1), 1));
}

static inline void cwv_remember(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (param(sk, cwv_ssthresh) == CWV_OLD_CWND)
		tp->snd_ssthresh = cc_max(tp->snd_ssthresh, tp->snd_cwnd);
	else
		raise34(tp);
}

static inline void cwv_validated(struct sock *sk)
{
	struct cwv *cwv = inet_csk_ca(sk);

	cwv->t_prev = cc_now_j(sk);
	cwv->w_used = 0;
}

CC_HOOK(u32, cwv_min_tso_segs, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cwv *cwv = inet_csk_ca(sk);
	u32 idle = cc_idle_j(sk), rto = cc_max(inet_csk(sk)->icsk_rto, 1);
	u32 floor = param(sk, cwv_floor);

	/* Sending may be tried more than once after one idle period. */
	if (idle >= rto && cwv->restarted != tp->lsndtime) {
		floor = cc_min(floor ? floor : cwv->initial_window, tp->snd_cwnd);
		cwv_remember(sk);
		tp->snd_cwnd = cc_max(cwv_window(tp) >> cc_min(idle / cwv_unit_j(sk), 31), floor);
		cwv->restarted = tp->lsndtime;
		cwv_validated(sk);
	}
	return 2;	/* the kernel's default */
}

CC_HOOK(void, cwv_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cwv *cwv = inet_csk_ca(sk);
	u32 flight = cc_flight_before(tp, sample);
	bool waiting = tp->write_seq != tp->snd_nxt;

	cwv->full = flight >= tp->snd_cwnd || (waiting && cc_is_cwnd_limited(sk));
	if (cc_ca_state(sk) != TCP_CA_Open)
		return;
	if (cwv->full) {
		cwv_validated(sk);
	} else if (!waiting) {
		cwv->w_used = cc_max(cwv->w_used, flight);
		if (cc_now_j(sk) - cwv->t_prev >= cwv_unit_j(sk)) {
			cwv_remember(sk);
			tp->snd_cwnd = cc_max((cwv_window(tp) + cwv->w_used) >> 1, 1);
			cwv_validated(sk);
		}
	}
}

CC_HOOK(void, cwv_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	const struct cwv *cwv = inet_csk_ca(sk);

	if (param(sk, cwv_gate) == CWV_KERNEL)
		reno_cong_avoid(sk, acked);
	else if (cwv->full)
		reno_grow(tcp_sk(sk), acked);
}

CC_HOOK(u32, cwv_after_loss, struct sock *sk)
{
	return reno_ssthresh(tcp_sk(sk));
}

CC_HOOK(u32, cwv_undo_cwnd, struct sock *sk)
{
	return undo_default(tcp_sk(sk));
}

CC_REGISTER("congestion window validation of RFC 2861: an unused window decays once per RTO",
	.init = CC_OP(cwv_init),
	.min_tso_segs = CC_OP(cwv_min_tso_segs),
	.pkts_acked = CC_OP(cwv_pkts_acked),
	.cong_avoid = CC_OP(cwv_cong_avoid),
	.ssthresh = CC_OP(cwv_after_loss),
	.undo_cwnd = CC_OP(cwv_undo_cwnd))
