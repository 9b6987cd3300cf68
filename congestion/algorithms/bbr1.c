/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * BBR version 1: sends at the bottleneck's bandwidth, with two BDPs in flight.
 *
 *	model	bw      = largest delivery rate of the last 10 round trips
 *		min_rtt = smallest round-trip time of the last 10 s
 *	control	pacing rate = pacing_gain * bw * 0.99, cwnd = cwnd_gain * bw * min_rtt
 *
 *	mode		pacing_gain	cwnd_gain	left when
 *	Startup		2.885		2.885		bw grew < 25 % in 3 rounds
 *	Drain		1 / 2.885	2.885		in flight <= bw * min_rtt
 *	ProbeBW		1.25 .75 1*6	2		min_rtt is 10 s old
 *			(a phase takes one min_rtt)
 *	ProbeRTT	1		1, cwnd <= 4	200 ms and a round trip have passed
 *
 *	loss	first round trip of a recovery: cwnd = in flight + acked, then the window of
 *		before; ssthresh is never lowered
 *	policer	two intervals of at least 4 round trips, each with a loss rate >= 20 % and the
 *		same rate: pace at that rate for 48 round trips
 *	bursts	cwnd has room for three bursts of the sender, and for what the receiver's
 *		aggregated ACKs brought beyond bw in the last 5 to 10 round trips
 *
 * Sources
 *	Cardwell et al., "BBR: congestion-based congestion control", ACM Queue 14(5), 2016.
 *	draft-cardwell-iccrg-bbr-congestion-control-00, sections 3.5, 4.1 to 4.4.
 *	Linux 6.18, net/ipv4/tcp_bbr.c, for policer detection, ACK aggregation and what the
 *	draft leaves open; lib/win_minmax.c for the windowed maximum (Nichols).
 *
 * Constants, beside those above
 *	2.885 = 2/ln 2	the least gain that doubles the delivery rate each round trip
 *	4 segments	floor of cwnd: enough for a delayed ACK each way
 *	10 rounds	bw's window: a gain cycle of 8 and 2 more
 *	1 % margin	pacing below the estimate lets queues drain
 *
 * How this differs from Linux's bbr
 *	1. Times are milliseconds of the TCP clock, not jiffies.
 *	2. bbr1_probe_rtt_ms, bbr1_min_rtt_s, bbr1_cwnd_gain_pct and bbr1_policer are parameters.
 *	3. No inet_diag information: BPF cannot offer get_info.
 *	4. The room for bursts assumes that a burst is sk_pacing_rate >> sk_pacing_shift bytes,
 *	   at least min_tso_segs, without the limit of a device's largest offloaded frame.
 */
#include "cc.h"

CC_PARAM(bbr1_min_rtt_s, 10, 1, 3600, "seconds after which the smallest round-trip time is measured anew")
CC_PARAM(bbr1_probe_rtt_ms, 200, 0, 10000, "milliseconds of ProbeRTT; 0 never enters it")
CC_PARAM(bbr1_cwnd_gain_pct, 200, 100, 1000, "per cent of the BDP that ProbeBW keeps in flight")
CC_PARAM(bbr1_policer, 1, 0, 1, "1 looks for a token-bucket policer and paces at its rate")

#define BW_SHIFT	24	/* bandwidth in segments per microsecond, shifted left */
#define UNIT		256	/* a gain of 1 */
#define CYCLE		8	/* phases of ProbeBW */

enum { STARTUP, DRAIN, PROBE_BW, PROBE_RTT };

enum {
	HIGH_GAIN	= UNIT * 2885 / 1000 + 1,
	DRAIN_GAIN	= UNIT * 1000 / 2885,
	FULL_BW_GROWTH	= UNIT * 5 / 4,
	FULL_BW_ROUNDS	= 3,
	BW_ROUNDS	= CYCLE + 2,
	LEAST_CWND	= 4,
	MARGIN_PCT	= 1,
	SLOW_RATE	= 1200000 / 8,	/* bytes per second below which a burst is one segment */
	POLICER_ROUNDS	= 4,		/* at least, and at most four times as many */
	POLICER_LOSS	= 50,		/* of 256: 20 % */
	POLICER_RATIO	= UNIT / 8,	/* two rates are the same within an eighth, */
	POLICER_DIFF	= 4000 / 8,	/*   or within 4 kbit/s */
	POLICER_HOLD	= 48,		/* round trips */
	AGGR_ROUNDS	= 5,
	AGGR_LONGEST_US	= 100000,
	AGGR_MOST	= 1 << 20,
	BURST_MOST	= 127,
};

struct peak {
	u32 round;
	u32 bw;
};

struct bbr1 {
	u64 cycle_us;		/* start of ProbeBW's phase */
	u64 aggr_us;		/* start of the interval over which aggregation is measured */
	struct peak bw[3];	/* largest of the window, and of what follows each */
	u32 min_rtt_us;
	u32 min_rtt_ms;		/* when it was measured */
	u32 probe_rtt_end_ms;	/* 0 until the flight is small enough */
	u32 rounds;
	u32 round_end;		/* tp->delivered at which the round trip ends */
	u32 policer_bw;
	u32 policer_delivered;	/* tp->delivered, time and tp->lost at the start of the */
	u32 policer_ms;		/*   policer's interval */
	u32 policer_lost;
	u32 prior_cwnd;		/* to return to after a recovery or ProbeRTT */
	u32 full_bw;
	u32 aggr_acked;
	u16 extra_acked;	/* of the present AGGR_ROUNDS and of those before */
	u16 extra_acked_before;
	u16 pacing_gain;
	u16 cwnd_gain;
	u8 mode : 2, full_bw_rounds : 2, prev_state : 3, full : 1;
	u8 round_start : 1, conserve : 1, idle_restart : 1, probe_rtt_round : 1,
	   policing : 1, policed : 1, seen_rtt : 1;
	u8 phase : 3, aggr_rounds : 5;
	u8 policer_rounds;
};
CC_STATE(struct bbr1);

static inline u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

static inline u32 now_ms(const struct tcp_sock *tp)
{
	return tp->tcp_mstamp / 1000;
}

static inline bool after_ms(u32 now, u32 then)
{
	return (s32)(now - then) > 0;
}

/*
 * The bandwidth and what derives from it.
 */

/* Keeps the largest value of the last BW_ROUNDS rounds, with the best of the second and of the
 * last part of the window in reserve. */
static inline void max_bw_update(struct bbr1 *bbr, u32 bw)
{
	struct peak sample = { bbr->rounds, bw }, *best = bbr->bw;
	u32 age;

	if (bw >= best[0].bw || bbr->rounds - best[2].round > BW_ROUNDS) {
		best[0] = best[1] = best[2] = sample;
		return;
	}
	if (bw >= best[1].bw)
		best[1] = best[2] = sample;
	else if (bw >= best[2].bw)
		best[2] = sample;

	age = bbr->rounds - best[0].round;
	if (age > BW_ROUNDS) {
		best[0] = best[1];
		best[1] = best[2];
		best[2] = sample;
		if (bbr->rounds - best[0].round > BW_ROUNDS) {
			best[0] = best[1];
			best[1] = best[2];
		}
	} else if (best[1].round == best[0].round && age > BW_ROUNDS / 4) {
		best[1] = best[2] = sample;
	} else if (best[2].round == best[1].round && age > BW_ROUNDS / 2) {
		best[2] = sample;
	}
}

static inline u32 max_bw(const struct bbr1 *bbr)
{
	return bbr->bw[0].bw;
}

static inline u32 bandwidth(const struct bbr1 *bbr)
{
	return bbr->policed ? bbr->policer_bw : max_bw(bbr);
}

/* Bytes per second less the margin; the order of operations keeps it within 64 bits. */
static inline u64 bytes_per_second(const struct tcp_sock *tp, u64 bw, u32 gain)
{
	u64 rate = bw * tp->mss_cache * gain / UNIT;

	return rate * (1000000 / 100 * (100 - MARGIN_PCT)) >> BW_SHIFT;
}

static inline void first_pacing_rate(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr1 *bbr = inet_csk_ca(sk);
	u64 rtt_us = 1000;	/* assumed until there is a sample */
	u64 bw;

	if (tp->srtt_us) {
		rtt_us = tp->srtt_us >> 3 ? tp->srtt_us >> 3 : 1;
		bbr->seen_rtt = 1;
	}
	bw = ((u64)tp->snd_cwnd << BW_SHIFT) / rtt_us;
	bw = bytes_per_second(tp, bw, HIGH_GAIN);
	sk->sk_pacing_rate = bw < sk->sk_max_pacing_rate ? bw : sk->sk_max_pacing_rate;
}

static inline void set_pacing_rate(struct sock *sk, u32 bw, u32 gain)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct bbr1 *bbr = inet_csk_ca(sk);
	u64 rate = bytes_per_second(tp, bw, gain);

	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	if (!bbr->seen_rtt && tp->srtt_us)
		first_pacing_rate(sk);
	if (bbr->full || rate > sk->sk_pacing_rate)
		sk->sk_pacing_rate = rate;
}

static inline u32 least_burst(const struct sock *sk)
{
	return sk->sk_pacing_rate < SLOW_RATE ? 1 : 2;
}

/* Segments that the sender passes on at once. */
static inline u32 burst(struct sock *sk)
{
	u64 bytes = sk->sk_pacing_rate >> sk->sk_pacing_shift;
	u64 segments;

	if (bytes > 65535)
		bytes = 65535;
	segments = bytes / cc_max(tcp_sk(sk)->mss_cache, 1);
	return cc_min(cc_max((u32)segments, least_burst(sk)), BURST_MOST);
}

/* gain * bw * min_rtt, rounded up, in segments. */
static inline u32 bdp(const struct bbr1 *bbr, u32 bw, u32 gain)
{
	if (bbr->min_rtt_us == ~0U)
		return TCP_INIT_CWND;
	return (((u64)bw * bbr->min_rtt_us * gain / UNIT) + (1 << BW_SHIFT) - 1) >> BW_SHIFT;
}

static inline u32 with_bursts(struct sock *sk, u32 cwnd)
{
	const struct bbr1 *bbr = inet_csk_ca(sk);

	cwnd += 3 * burst(sk);
	cwnd = (cwnd + 1) & ~1U;	/* even: delayed ACKs come for two segments */
	if (bbr->mode == PROBE_BW && bbr->phase == 0)
		cwnd += 2;	/* lets even a BDP of few segments probe */
	return cwnd;
}

static inline u32 inflight_target(struct sock *sk, u32 bw, u32 gain)
{
	return with_bursts(sk, bdp(inet_csk_ca(sk), bw, gain));
}

/* Segments in the network when the next paced one leaves: those that TCP handed to pacing wait. */
static inline u32 in_network(struct sock *sk, u32 flight)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct bbr1 *bbr = inet_csk_ca(sk);
	u64 wait_us = tp->tcp_wstamp_ns > tp->tcp_clock_cache ?
		      (tp->tcp_wstamp_ns - tp->tcp_clock_cache) / 1000 : 0;
	u32 delivered = (u64)bandwidth(bbr) * wait_us >> BW_SHIFT;

	if (bbr->pacing_gain > UNIT)
		flight += burst(sk);
	return flight > delivered ? flight - delivered : 0;
}

/*
 * The modes.
 */

static inline void next_phase(struct sock *sk)
{
	struct bbr1 *bbr = inet_csk_ca(sk);

	bbr->phase = (bbr->phase + 1) % CYCLE;
	bbr->cycle_us = tcp_sk(sk)->delivered_mstamp;
}

/* ProbeBW begins in any phase but the one that drains: flows do not probe in step. */
static inline void enter_probe_bw(struct sock *sk)
{
	struct bbr1 *bbr = inet_csk_ca(sk);

	bbr->mode = PROBE_BW;
	bbr->phase = CYCLE - 1 - cc_random(sk) % (CYCLE - 1);
	next_phase(sk);
}

static inline void leave_probe_rtt(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr1 *bbr = inet_csk_ca(sk);

	if (!bbr->probe_rtt_end_ms || !after_ms(now_ms(tp), bbr->probe_rtt_end_ms))
		return;
	bbr->min_rtt_ms = now_ms(tp);
	tp->snd_cwnd = cc_max(tp->snd_cwnd, bbr->prior_cwnd);
	if (bbr->full)
		enter_probe_bw(sk);
	else
		bbr->mode = STARTUP;
}

static inline bool phase_is_over(struct sock *sk, const struct rate_sample *rs)
{
	const struct bbr1 *bbr = inet_csk_ca(sk);
	bool long_enough = tcp_sk(sk)->delivered_mstamp - bbr->cycle_us > bbr->min_rtt_us;
	u32 flight;

	if (bbr->pacing_gain == UNIT)
		return long_enough;
	flight = in_network(sk, rs->prior_in_flight);
	if (bbr->pacing_gain > UNIT)	/* probe until the flight is larger, or losses say enough */
		return long_enough && (rs->losses > 0 ||
			flight >= inflight_target(sk, max_bw(bbr), bbr->pacing_gain));
	return long_enough || flight <= inflight_target(sk, max_bw(bbr), UNIT);
}

static inline void set_gains(struct sock *sk)
{
	struct bbr1 *bbr = inet_csk_ca(sk);

	switch (bbr->mode) {
	case STARTUP:
		bbr->pacing_gain = HIGH_GAIN;
		bbr->cwnd_gain = HIGH_GAIN;
		break;
	case DRAIN:
		bbr->pacing_gain = DRAIN_GAIN;
		bbr->cwnd_gain = HIGH_GAIN;
		break;
	case PROBE_BW:
		bbr->pacing_gain = bbr->policed || bbr->phase > 1 ? UNIT :
				   bbr->phase == 0 ? UNIT * 5 / 4 : UNIT * 3 / 4;
		bbr->cwnd_gain = param(sk, bbr1_cwnd_gain_pct) * UNIT / 100;
		break;
	default:
		bbr->pacing_gain = UNIT;
		bbr->cwnd_gain = UNIT;
	}
}

/*
 * A token-bucket policer lets bursts pass, then drops what is above its rate.
 */

static inline void policer_interval(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr1 *bbr = inet_csk_ca(sk);

	bbr->policer_ms = tp->delivered_mstamp / 1000;
	bbr->policer_delivered = tp->delivered;
	bbr->policer_lost = tp->lost;
	bbr->policer_rounds = 0;
}

static inline void policer_forget(struct sock *sk)
{
	struct bbr1 *bbr = inet_csk_ca(sk);

	bbr->policer_bw = 0;
	bbr->policed = 0;
	bbr->policing = 0;
	policer_interval(sk);
}

/* An interval showed the rate bw: two that agree are a policer. */
static inline void policer_rate(struct sock *sk, u32 bw)
{
	struct bbr1 *bbr = inet_csk_ca(sk);
	u32 last = bbr->policer_bw;
	u32 differ = bw > last ? bw - last : last - bw;

	if (last && ((u64)differ * UNIT <= (u64)POLICER_RATIO * last ||
		     bytes_per_second(tcp_sk(sk), differ, UNIT) <= POLICER_DIFF)) {
		bbr->policer_bw = ((u64)bw + last) / 2;
		bbr->policed = 1;
		bbr->pacing_gain = UNIT;
		bbr->policer_rounds = 0;
		return;
	}
	bbr->policer_bw = bw;
	policer_interval(sk);
}

static inline void policer_look(struct sock *sk, bool losses, bool app_limited)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr1 *bbr = inet_csk_ca(sk);
	u32 lost, delivered, ms;

	if (!param(sk, bbr1_policer))
		return;
	if (bbr->policed) {
		if (bbr->mode == PROBE_BW && bbr->round_start &&
		    ++bbr->policer_rounds >= POLICER_HOLD) {
			policer_forget(sk);
			enter_probe_bw(sk);
		}
		return;
	}
	if (!bbr->policing) {	/* the bucket is empty at a loss: begin there */
		if (!losses)
			return;
		policer_interval(sk);
		bbr->policing = 1;
	}
	if (app_limited)
		return policer_forget(sk);
	if (bbr->round_start)
		bbr->policer_rounds++;
	if (bbr->policer_rounds < POLICER_ROUNDS)
		return;
	if (bbr->policer_rounds > 4 * POLICER_ROUNDS)
		return policer_forget(sk);
	if (!losses)	/* end at a loss as well */
		return;
	lost = tp->lost - bbr->policer_lost;
	delivered = tp->delivered - bbr->policer_delivered;
	if (!delivered || (u64)lost * 256 < (u64)POLICER_LOSS * delivered)
		return;
	ms = (u32)(tp->delivered_mstamp / 1000) - bbr->policer_ms;
	if (!after_ms(ms, 0))
		return;
	policer_rate(sk, ((u64)delivered << BW_SHIFT) / ((u64)ms * 1000));
}

/*
 * What an ACK tells of the path.
 */

static inline void update_bw(struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr1 *bbr = inet_csk_ca(sk);
	u64 bw;

	bbr->round_start = 0;
	if (rs->delivered < 0 || rs->interval_us <= 0)
		return;
	if ((s32)(rs->prior_delivered - bbr->round_end) >= 0) {
		bbr->round_end = tp->delivered;
		bbr->rounds++;
		bbr->round_start = 1;
		bbr->conserve = 0;
	}
	policer_look(sk, rs->losses > 0, rs->is_app_limited);
	bw = ((u64)(u32)rs->delivered << BW_SHIFT) / (u64)rs->interval_us;
	if (!rs->is_app_limited || bw >= max_bw(bbr))
		max_bw_update(bbr, bw);
}

/* How many more segments than bw explains were acknowledged since some ACK. */
static inline void update_aggregation(struct sock *sk, const struct rate_sample *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr1 *bbr = inet_csk_ca(sk);
	u32 expected, extra;

	if (!rs->acked_sacked || rs->delivered < 0 || rs->interval_us <= 0)
		return;
	if (bbr->round_start) {
		if (bbr->aggr_rounds + 1 >= AGGR_ROUNDS) {
			bbr->aggr_rounds = 0;
			bbr->extra_acked_before = bbr->extra_acked;
			bbr->extra_acked = 0;
		} else {
			bbr->aggr_rounds++;
		}
	}
	expected = (u64)bandwidth(bbr) * (tp->delivered_mstamp - bbr->aggr_us) >> BW_SHIFT;
	if (bbr->aggr_acked <= expected || bbr->aggr_acked + rs->acked_sacked >= AGGR_MOST) {
		bbr->aggr_acked = 0;
		bbr->aggr_us = tp->delivered_mstamp;
		expected = 0;
	}
	bbr->aggr_acked = cc_min(AGGR_MOST - 1, bbr->aggr_acked + rs->acked_sacked);
	extra = cc_min(cc_min(bbr->aggr_acked - expected, tp->snd_cwnd), 0xffff);
	if (extra > bbr->extra_acked)
		bbr->extra_acked = extra;
}

static inline u32 aggregation(const struct bbr1 *bbr)
{
	u32 most = (u64)bandwidth(bbr) * AGGR_LONGEST_US >> BW_SHIFT;

	return bbr->full ? cc_min(cc_max(bbr->extra_acked, bbr->extra_acked_before), most) : 0;
}

static inline void check_full_bw(struct bbr1 *bbr, const struct rate_sample *rs)
{
	if (bbr->full || !bbr->round_start || rs->is_app_limited)
		return;
	if (max_bw(bbr) >= (u64)bbr->full_bw * FULL_BW_GROWTH / UNIT) {
		bbr->full_bw = max_bw(bbr);
		bbr->full_bw_rounds = 0;
		return;
	}
	bbr->full_bw_rounds++;
	bbr->full = bbr->full_bw_rounds >= FULL_BW_ROUNDS;
}

static inline void check_drain(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr1 *bbr = inet_csk_ca(sk);

	if (bbr->mode == STARTUP && bbr->full) {
		bbr->mode = DRAIN;
		tp->snd_ssthresh = inflight_target(sk, max_bw(bbr), UNIT);
	}
	if (bbr->mode == DRAIN && in_network(sk, in_flight(tp)) <= inflight_target(sk, max_bw(bbr), UNIT))
		enter_probe_bw(sk);
}

static inline void save_cwnd(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr1 *bbr = inet_csk_ca(sk);

	if (bbr->prev_state < TCP_CA_Recovery && bbr->mode != PROBE_RTT)
		bbr->prior_cwnd = tp->snd_cwnd;
	else
		bbr->prior_cwnd = cc_max(bbr->prior_cwnd, tp->snd_cwnd);
}

static inline void update_min_rtt(struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr1 *bbr = inet_csk_ca(sk);
	u32 now = now_ms(tp), length = param(sk, bbr1_probe_rtt_ms);
	bool expired = after_ms(now, bbr->min_rtt_ms + (u32)param(sk, bbr1_min_rtt_s) * 1000);

	if (rs->rtt_us >= 0 &&
	    (rs->rtt_us < bbr->min_rtt_us || (expired && !rs->is_ack_delayed))) {
		bbr->min_rtt_us = rs->rtt_us;
		bbr->min_rtt_ms = now;
	}
	if (length && expired && !bbr->idle_restart && bbr->mode != PROBE_RTT) {
		save_cwnd(sk);
		bbr->mode = PROBE_RTT;
		bbr->probe_rtt_end_ms = 0;
	}
	if (bbr->mode == PROBE_RTT) {
		u32 end = tp->delivered + in_flight(tp);

		tp->app_limited = end ? end : 1;	/* these rates say nothing of the path */
		if (!bbr->probe_rtt_end_ms && in_flight(tp) <= LEAST_CWND) {
			bbr->probe_rtt_end_ms = now + length ? now + length : 1;
			bbr->probe_rtt_round = 0;
			bbr->round_end = tp->delivered;
		} else if (bbr->probe_rtt_end_ms) {
			if (bbr->round_start)
				bbr->probe_rtt_round = 1;
			if (bbr->probe_rtt_round)
				leave_probe_rtt(sk);
		}
	}
	if (rs->delivered > 0)
		bbr->idle_restart = 0;
}

/*
 * The window.
 */

/* cwnd at the start and end of a recovery; true while packets are conserved. */
static inline bool recovery_cwnd(struct sock *sk, const struct rate_sample *rs, u32 *cwnd)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bbr1 *bbr = inet_csk_ca(sk);
	u8 state = cc_ca_state(sk), before = bbr->prev_state;

	if (rs->losses > 0)
		*cwnd = *cwnd > (u32)rs->losses ? *cwnd - rs->losses : 1;
	if (state == TCP_CA_Recovery && before != TCP_CA_Recovery) {
		bbr->conserve = 1;
		bbr->round_end = tp->delivered;
		*cwnd = in_flight(tp) + rs->acked_sacked;
	} else if (before >= TCP_CA_Recovery && state < TCP_CA_Recovery) {
		*cwnd = cc_max(*cwnd, bbr->prior_cwnd);
		bbr->conserve = 0;
	}
	bbr->prev_state = state;
	if (bbr->conserve)
		*cwnd = cc_max(*cwnd, in_flight(tp) + rs->acked_sacked);
	return bbr->conserve;
}

static inline void set_cwnd(struct sock *sk, const struct rate_sample *rs, u32 bw)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct bbr1 *bbr = inet_csk_ca(sk);
	u32 cwnd = tp->snd_cwnd;

	if (rs->acked_sacked && !recovery_cwnd(sk, rs, &cwnd)) {
		u32 target = with_bursts(sk, bdp(bbr, bw, bbr->cwnd_gain) + aggregation(bbr));

		if (bbr->full)
			cwnd = cc_min(cwnd + rs->acked_sacked, target);
		else if (cwnd < target || tp->delivered < TCP_INIT_CWND)
			cwnd += rs->acked_sacked;
		cwnd = cc_max(cwnd, LEAST_CWND);
	}
	cwnd = cc_min(cwnd, tp->snd_cwnd_clamp);
	tp->snd_cwnd = bbr->mode == PROBE_RTT ? cc_min(cwnd, LEAST_CWND) : cwnd;
}

CC_HOOK(void, bbr1_cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	struct bbr1 *bbr = inet_csk_ca(sk);
	u32 bw;

	update_bw(sk, rs);
	update_aggregation(sk, rs);
	if (bbr->mode == PROBE_BW && phase_is_over(sk, rs))
		next_phase(sk);
	check_full_bw(bbr, rs);
	check_drain(sk);
	update_min_rtt(sk, rs);
	set_gains(sk);

	bw = bandwidth(bbr);
	set_pacing_rate(sk, bw, bbr->pacing_gain);
	set_cwnd(sk, rs, bw);
}

CC_HOOK(void, bbr1_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr1 *bbr = inet_csk_ca(sk);

	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	bbr->round_end = tp->delivered;
	bbr->min_rtt_us = cc_min_rtt_us(sk);
	bbr->min_rtt_ms = now_ms(tp);
	bbr->aggr_us = tp->tcp_mstamp;
	policer_forget(sk);
	set_gains(sk);
	first_pacing_rate(sk);
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

CC_HOOK(void, bbr1_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct bbr1 *bbr = inet_csk_ca(sk);

	if (event != CA_EVENT_TX_START || !tp->app_limited)
		return;
	bbr->idle_restart = 1;
	bbr->aggr_us = tp->tcp_mstamp;
	bbr->aggr_acked = 0;
	if (bbr->mode == PROBE_BW)	/* fill the pipe again at bw, without a burst */
		set_pacing_rate(sk, bandwidth(bbr), UNIT);
	else if (bbr->mode == PROBE_RTT)
		leave_probe_rtt(sk);
}

CC_HOOK(void, bbr1_set_state, struct sock *sk, u8 new_state)
{
	struct bbr1 *bbr = inet_csk_ca(sk);

	if (new_state != TCP_CA_Loss)
		return;
	bbr->prev_state = TCP_CA_Loss;
	bbr->full_bw = 0;
	bbr->round_start = 1;	/* a timeout ends the round trip */
	policer_look(sk, true, false);
}

CC_HOOK(u32, bbr1_ssthresh, struct sock *sk)
{
	save_cwnd(sk);
	return tcp_sk(sk)->snd_ssthresh;
}

/* The losses were none: the path may be faster than it seemed. */
CC_HOOK(u32, bbr1_undo_cwnd, struct sock *sk)
{
	struct bbr1 *bbr = inet_csk_ca(sk);

	bbr->full_bw = 0;
	bbr->full_bw_rounds = 0;
	policer_forget(sk);
	return tcp_sk(sk)->snd_cwnd;
}

CC_HOOK(u32, bbr1_min_tso_segs, struct sock *sk)
{
	return least_burst(sk);
}

/* Room for a flight of three windows: one in the network, one to retransmit, one to come. */
CC_HOOK(u32, bbr1_sndbuf_expand, struct sock *sk)
{
	return 3;
}

CC_REGISTER("BBR version 1: paces at the measured bandwidth, keeps two BDPs in flight",
	.init = CC_OP(bbr1_init),
	.cong_control = CC_OP(bbr1_cong_control),
	.cwnd_event = CC_OP(bbr1_cwnd_event),
	.set_state = CC_OP(bbr1_set_state),
	.ssthresh = CC_OP(bbr1_ssthresh),
	.undo_cwnd = CC_OP(bbr1_undo_cwnd),
	.min_tso_segs = CC_OP(bbr1_min_tso_segs),
	.sndbuf_expand = CC_OP(bbr1_sndbuf_expand))
