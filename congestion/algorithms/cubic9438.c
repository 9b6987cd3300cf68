/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * CUBIC of RFC 9438: after a loss the window follows a cubic function of time, flat
 * around W_max, where the loss happened; on short paths it follows Reno instead.
 *
 *	slow start	cwnd += 1 per acked segment; with cubic_hystart it ends (ssthresh =
 *			cwnd) in a round whose ACKs, 2 ms apart at most, take longer than
 *			half the smallest RTT, or in which 8 RTTs exceed the smallest by an
 *			eighth of it (4 to 16 ms); from there to the first loss, as long as
 *			W_max is unknown, cwnd += 1 per 20 acked segments at least, as in Linux
 *	epoch		begins with the first ACK of congestion avoidance:
 *			t = 0, W_est = cwnd, K = cbrt((W_max - cwnd) / C);
 *			without a W_max above cwnd, or after a timeout: W_max = cwnd, K = 0
 *	cong. avoidance	W_cubic(t) = C (t - K)^3 + W_max
 *			W_est += a * acked / cwnd;  a = 9/17, from W_est = cwnd_prior on 1
 *			W_cubic(t) < W_est: cwnd = W_est
 *			otherwise: cwnd += (target - cwnd) / cwnd per acked segment,
 *			target = W_cubic(t + RTT), at least cwnd and at most 1.5 cwnd
 *	loss, ECN echo	W_max = cwnd, or 0.85 cwnd where cwnd < W_max (fast convergence);
 *			cwnd_prior = cwnd; ssthresh = 0.7 FlightSize, at least 2; cwnd
 *			follows (PRR); the epoch ends
 *	timeout		ssthresh the same; cwnd = 1; the next epoch has K = 0
 *	not cwnd-limited	no growth, and the time does not count towards t
 *	undo		the epoch goes on as if nothing had happened
 *
 * Source: RFC 9438, sections 4.2 (W_cubic, target), 4.3 (Reno-friendly region), 4.4
 * and 4.5 (growth), 4.6 (decrease), 4.7 (fast convergence), 4.8 (timeout), 4.9
 * (spurious events), 4.10 (slow start that ends without a loss), 5.8 (application-
 * limited).
 *
 * Constants
 *	C = 0.4		segments per second^3 (section 5): C ms^3 is x^3 * 4 / 9765625
 *			in 1/1024 segment
 *	beta = 0.7	multiplicative decrease (section 4.6); 0.85 = (1 + beta) / 2
 *	a = 9/17	3 (1 - beta) / (1 + beta): as aggressive as Reno with beta 0.5
 *	1/1024 segment	the window's fraction; remainders of divisions are carried, so
 *			nothing is lost to truncation
 *	16 segments	HyStart waits for a window of that size; 8 samples, 2 ms, 4 to 16 ms:
 *			Linux's values
 *	2^20 ms		t - K is cut there, which keeps its cube within 64 bits
 *
 * How this differs from the RFC
 *	1. PRR (RFC 9937) leads cwnd to ssthresh during recovery. So an ECN echo ends at
 *	   two segments at least, where the RFC allows one.
 *	2. W_est raises cwnd and never lowers it. The RFC sets cwnd to W_est also in the
 *	   moment in which W_cubic(t) < W_est < cwnd.
 *	3. An epoch ends when cwnd falls below ssthresh (the kernel's restart after idle):
 *	   t counts from the beginning of a stage of congestion avoidance.
 *	4. HyStart++ (RFC 9406, recommended in section 4.10) is not there; cubic_hystart
 *	   is the older HyStart (Ha and Rhee, PFLDNeT 2008) as Linux has it.
 *	5. After an undo cwnd is the kernel's prior_cwnd, without its fraction.
 *
 * How this differs from Linux's cubic
 *	6. beta is 0.7, not 717/1024; ssthresh derives from FlightSize, not from cwnd
 *	   (cubic_flight).
 *	7. Linux counts in whole segments: W_cubic(t + RTT) is rounded towards W_max, a = 8/15
 *	   and stays so, cwnd grows by one per cwnd / (target - cwnd) acked segments, rounded
 *	   down, at least two, and by one per 100 cwnd where the target is no higher; the number
 *	   is kept for a 32nd of a second unless the window changes (cubic_linux).
 *	8. Linux adds the smallest RTT to t (cubic_linux), counts in jiffies, has HyStart on
 *	   (cubic_hystart), forgets W_max at a timeout, and restores only cwnd at an undo.
 *	9. Linux takes idle periods out of t, this also phases in which the application
 *	   sends less than the window allows.
 */
#include "cc.h"

enum { CUBIC_FLIGHT, CUBIC_CWND };

CC_PARAM(cubic_flight, CUBIC_FLIGHT, 0, 1, "ssthresh after a loss is 0.7 of: 0 FlightSize, 1 cwnd")
CC_PARAM(cubic_fast, 1, 0, 1, "1 fast convergence: W_max is lowered where cwnd had not reached it")
CC_PARAM(cubic_hystart, 0, 0, 1, "1 HyStart: slow start may end before a loss, as in Linux")
CC_PARAM(cubic_linux, 0, 0, 1, "1 congestion avoidance in whole segments, as in Linux")

#define CUBIC_SHIFT 10		/* windows in 1/1024 segment */
#define CUBIC_PROBE 20		/* acknowledged segments per step where HyStart ended slow start */
#define CUBIC_WINDOW_MAX ((1U << (32 - CUBIC_SHIFT)) - 1)

/* All that a spurious reduction gives back. Windows in 1/1024 segment. */
struct cubic_epoch {
	u64 start_us;		/* when t was 0; 0 outside of an epoch */
	u32 w_max;
	u32 w_est;
	u32 w_est_rest;		/* what the last division of W_est left */
	u32 k_ms;
	u32 cwnd_prior;		/* segments; cwnd at the last reduction */
	bool timeout;		/* the next epoch is the first after a timeout */
};

/* Of the present round trip of slow start. Times in microseconds. */
struct cubic_hystart {
	u32 least_rtt;		/* of the connection; 0 before the first */
	u32 round_rtt;		/* the round's smallest of the first 8 */
	u32 round_start;
	u32 last_ack;		/* of the train that began the round */
	u32 round_end;		/* snd_nxt at its start */
	u8 samples;
	bool found;
	bool reduced;		/* a loss has shown W_max since the beginning or a timeout */
};

struct cubic9438 {
	struct cubic_epoch epoch;
	struct cubic_epoch saved;	/* as it was before the last reduction */
	u64 last_us;		/* until when the time is counted or left out */
	union {			/* from the beginning of an epoch */
		struct {
			u32 fraction;	/* of cwnd */
			u32 rest;	/* what the last division of cwnd left */
		};
		struct {		/* with cubic_linux */
			u32 step;	/* acknowledged segments per step of the window; 0 at first */
			u32 seen;	/* the window and, in the lowest byte, the jiffy that it is of */
		};
	};
	struct cubic_hystart hystart;
};
CC_STATE(struct cubic9438);

static inline u32 cubic_scaled(u32 segments)
{
	return cc_min(segments, CUBIC_WINDOW_MAX) << CUBIC_SHIFT;
}

/* C (t - K)^3 + W_max, in 1/1024 segment; whole: without the fraction of its distance from W_max. */
static inline u64 cubic_w(const struct cubic_epoch *epoch, u64 t_us, bool whole)
{
	u64 t = t_us / 1000;
	bool convex = t >= epoch->k_ms;
	u64 distance = convex ? t - epoch->k_ms : epoch->k_ms - t;
	u64 change;

	if (distance >= 1 << 20)
		distance = (1 << 20) - 1;
	change = distance * distance * distance * 4 / 9765625;
	if (whole)
		change &= ~((1ULL << CUBIC_SHIFT) - 1);
	if (convex)
		return epoch->w_max + change;
	return epoch->w_max > change ? epoch->w_max - change : 0;
}

/* The first ACK of congestion avoidance. */
static inline void cubic_begin(struct sock *sk)
{
	struct cubic9438 *cubic = inet_csk_ca(sk);
	struct cubic_epoch *epoch = &cubic->epoch;
	u32 cwnd = tcp_sk(sk)->snd_cwnd;
	u32 scaled = cubic_scaled(cwnd);

	if (epoch->timeout || epoch->w_max <= scaled) {
		epoch->w_max = scaled;
		epoch->k_ms = 0;
	} else {
		epoch->k_ms = cc_cbrt((u64)(epoch->w_max - scaled) * 9765625 / 4);
	}
	if (!epoch->cwnd_prior)
		epoch->cwnd_prior = cwnd;
	epoch->timeout = false;
	epoch->w_est = scaled;
	epoch->w_est_rest = 0;
	epoch->start_us = cc_now_us(sk);
	cubic->fraction = 0;
	cubic->rest = 0;
}

/* The time since the last ACK that could raise the window is not part of t. */
static inline void cubic_leave_out(struct sock *sk)
{
	struct cubic9438 *cubic = inet_csk_ca(sk);
	u64 now = cc_now_us(sk);

	if (cubic->epoch.start_us)
		cubic->epoch.start_us += now - cubic->last_us;
	cubic->last_us = now;
}

/* W_est as Reno with the decrease beta would have it. */
static inline void cubic_estimate(struct cubic_epoch *epoch, u32 cwnd, u32 acked, bool whole)
{
	u32 parts = whole ? 15 : 17;
	u32 share = whole ? 8 : epoch->w_est >= cubic_scaled(epoch->cwnd_prior) ? 17 : 9;
	u64 credit = epoch->w_est_rest + ((u64)acked * share << CUBIC_SHIFT);
	u64 per_step = (u64)parts * cwnd;
	u64 w_est = epoch->w_est + credit / per_step;

	epoch->w_est_rest = credit % per_step;
	epoch->w_est = w_est < ~0U ? w_est : ~0U;
}

/* Acknowledged segments per step of the window where Linux counts. It looks again when the window is
 * another or a 32nd of a second has passed, and at W_cubic once per jiffy. */
static inline u32 cubic_linux_step(struct sock *sk, u64 t_us)
{
	struct cubic9438 *cubic = inet_csk_ca(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd, now = cc_now_j(sk), step = cubic->step;
	u32 age = (now - cubic->seen) & 0xff, target, w_est;

	if (step && cubic->seen >> 8 == cwnd && age <= CC_HZ / 32)
		return step;
	if (!step || age) {
		target = cubic_w(&cubic->epoch, t_us + cubic->hystart.least_rtt, true) >> CUBIC_SHIFT;
		step = target > cwnd ? cwnd / (target - cwnd) : 100 * cwnd;
		if (!cubic->hystart.reduced)
			step = cc_min(step, CUBIC_PROBE);
		cubic->seen = cwnd << 8 | (now & 0xff);
	}
	w_est = cubic->epoch.w_est >> CUBIC_SHIFT;
	if (w_est > cwnd)
		step = cc_min(step, cwnd / (w_est - cwnd));
	cubic->step = cc_max(step, 2);
	return cubic->step;
}

static inline void cubic_round(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct cubic9438 *cubic = inet_csk_ca(sk);
	struct cubic_hystart *hystart = &cubic->hystart;

	hystart->round_start = tp->tcp_mstamp;
	hystart->last_ack = tp->tcp_mstamp;
	hystart->round_end = tp->snd_nxt;
	hystart->round_rtt = ~0U;
	hystart->samples = 0;
}

/* How much the burst of one transmission stretches a train of ACKs (four of Linux's largest
 * offloaded frames at the pacing rate), at most a millisecond. */
static inline u32 cubic_burst_us(const struct sock *sk)
{
	u64 rate = sk->sk_pacing_rate;
	u64 us = rate ? 4ULL * 65536 * 1000000 / rate : 0;

	return us < 1000 ? us : 1000;
}

static inline void cubic_maybe_leave(struct sock *sk, u32 rtt)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic9438 *cubic = inet_csk_ca(sk);
	struct cubic_hystart *hystart = &cubic->hystart;
	u32 now = tp->tcp_mstamp, longest;

	if ((s32)(tp->snd_una - hystart->round_end) > 0)
		cubic_round(sk);
	if (tp->snd_cwnd < 16)
		return;
	if ((s32)(now - hystart->last_ack) <= 2000) {
		hystart->last_ack = now;
		longest = hystart->least_rtt + cubic_burst_us(sk);
		if (sk->sk_pacing_status == SK_PACING_NONE)
			longest /= 2;
		hystart->found |= (s32)(now - hystart->round_start) > (s32)longest;
	}
	hystart->round_rtt = cc_min(hystart->round_rtt, rtt);
	if (hystart->samples < 8)
		hystart->samples++;
	else
		hystart->found |= hystart->round_rtt > hystart->least_rtt +
				  cc_min(cc_max(hystart->least_rtt / 8, 4000), 16000);
	if (hystart->found)
		tp->snd_ssthresh = tp->snd_cwnd;
}

/* The smallest round-trip time, and HyStart's. Those of the second after a reduction say nothing
 * of an empty path. */
CC_HOOK(void, cubic_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct cubic9438 *cubic = inet_csk_ca(sk);
	struct cubic_hystart *hystart = &cubic->hystart;
	u32 rtt;

	if (sample->rtt_us < 0)
		return;
	if (cubic->epoch.start_us && cc_now_us(sk) - cubic->epoch.start_us < 1000000)
		return;
	rtt = cc_max(sample->rtt_us, 1);
	if (!hystart->least_rtt || rtt < hystart->least_rtt)
		hystart->least_rtt = rtt;
	if (param(sk, cubic_hystart) && !hystart->found && tcp_in_slow_start(tcp_sk(sk)))
		cubic_maybe_leave(sk, rtt);
}

CC_HOOK(void, cubic_init, struct sock *sk)
{
	cubic_round(sk);
}

CC_HOOK(void, cubic_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct cubic9438 *cubic = inet_csk_ca(sk);
	struct cubic_epoch *epoch = &cubic->epoch;
	u64 window, least, t;

	if (!lim_kernel(sk, 2)) {
		cubic_leave_out(sk);
		return;
	}
	cubic->last_us = cc_now_us(sk);
	if (tcp_in_slow_start(tp)) {
		epoch->start_us = 0;
		acked = ss_grow(tp, acked, 1);
		if (!acked)
			return;
	}
	if (!epoch->start_us)
		cubic_begin(sk);

	t = cubic->last_us - epoch->start_us;
	cubic_estimate(epoch, tp->snd_cwnd, acked, param(sk, cubic_linux));
	if (param(sk, cubic_linux)) {
		ca_grow(tp, cubic_linux_step(sk, t), acked);
		return;
	}
	window = cubic_scaled(tp->snd_cwnd) + cubic->fraction;
	least = window;
	if (param(sk, cubic_hystart) && !cubic->hystart.reduced)
		least += (acked << CUBIC_SHIFT) / CUBIC_PROBE;
	if (cubic_w(epoch, t, false) < epoch->w_est) {
		if (window < epoch->w_est)
			window = epoch->w_est;
	} else {
		u64 target = cubic_w(epoch, t + (tp->srtt_us >> 3), false);
		u64 credit = cubic->rest;

		if (target > window + window / 2)
			target = window + window / 2;
		if (target > window)
			credit += acked * (target - window);
		window += credit / tp->snd_cwnd;
		cubic->rest = credit % tp->snd_cwnd;
	}
	window = cc_max(window, least);
	cubic->fraction = window & ((1 << CUBIC_SHIFT) - 1);
	tp->snd_cwnd = cc_min(window >> CUBIC_SHIFT, tp->snd_cwnd_clamp);
}

CC_HOOK(u32, cubic_ssthresh, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct cubic9438 *cubic = inet_csk_ca(sk);
	struct cubic_epoch *epoch = &cubic->epoch;
	u32 scaled = cubic_scaled(tp->snd_cwnd);
	u64 window = param(sk, cubic_flight) == CUBIC_CWND ? tp->snd_cwnd : tp->packets_out;

	cubic->saved = *epoch;
	if (param(sk, cubic_fast) && scaled < epoch->w_max)
		epoch->w_max = (u64)scaled * 17 / 20;
	else
		epoch->w_max = scaled;
	epoch->cwnd_prior = tp->snd_cwnd;
	cubic->hystart.reduced = true;
	epoch->timeout = false;
	epoch->start_us = 0;
	return cc_max(window * 7 / 10, 2);
}

/* The first segment after nothing was in flight: the idle time is left out of t. */
CC_HOOK(void, cubic_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		cubic_leave_out(sk);
}

/* Also a timeout within a window that was already reduced, which calls no ssthresh(). */
CC_HOOK(void, cubic_set_state, struct sock *sk, u8 new_state)
{
	struct cubic9438 *cubic = inet_csk_ca(sk);

	if (new_state == TCP_CA_Loss) {
		cubic->epoch.timeout = true;
		cubic->epoch.start_us = 0;
		cubic->hystart.found = false;
		cubic->hystart.reduced = false;
		cubic->hystart.least_rtt = 0;
		cubic_round(sk);
	}
}

CC_HOOK(u32, cubic_undo_cwnd, struct sock *sk)
{
	struct cubic9438 *cubic = inet_csk_ca(sk);

	cubic->epoch = cubic->saved;
	return undo_default(tcp_sk(sk));
}

CC_REGISTER("CUBIC of RFC 9438: a cubic function of the time since the last loss, Reno on short paths",
	.init = CC_OP(cubic_init),
	.pkts_acked = CC_OP(cubic_pkts_acked),
	.cong_avoid = CC_OP(cubic_cong_avoid),
	.ssthresh = CC_OP(cubic_ssthresh),
	.cwnd_event = CC_OP(cubic_cwnd_event),
	.set_state = CC_OP(cubic_set_state),
	.undo_cwnd = CC_OP(cubic_undo_cwnd))
