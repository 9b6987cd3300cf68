/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * BIC: after a loss the window searches for the size at which the loss happened, W_max:
 * in large steps while far from it, by binary search near it, then slowly beyond it.
 *
 *	slow start	cwnd += 1 per acked segment
 *	cong. avoidance	cwnd += 1 per cnt acked segments;  d = (W_max - cwnd) / 4:
 *	  cwnd <= 14		cnt = cwnd			Reno
 *	  d > 16		cnt = cwnd / 16			additive: 16 per RTT
 *	  1 < d <= 16		cnt = cwnd / d			binary search
 *	  cwnd < W_max, d <= 1	cnt = cwnd * 20 / 4		the last few segments
 *	  cwnd < W_max + 4	cnt = cwnd * 20 / 4
 *	  cwnd < W_max + 48	cnt = cwnd * 3 / (cwnd - W_max)	slow start away from W_max
 *	  beyond		cnt = cwnd / 16
 *			no W_max yet: cnt at most 20. Then cnt /= segments per ACK
 *	loss, ECN echo	W_max = cwnd, or 0.9 cwnd where cwnd < W_max (fast convergence);
 *			ssthresh = 0.8 cwnd (cwnd / 2 up to 14 segments), at least 2
 *	timeout		the same; then W_max and the segments per ACK are forgotten
 *	not cwnd-limited	no growth
 *
 * Source: Xu, Harfoush and Rhee, "Binary increase congestion control (BIC) for fast
 * long-distance networks", INFOCOM 2004: section III (binary search, additive increase,
 * slow start beyond W_max, fast convergence); Linux's tcp_bic for the integers.
 *
 * Constants
 *	16	S_max: largest growth per RTT (bic_max_increment). The paper uses 32
 *	14	low_window: below it Reno is as fast (bic_low_window)
 *	819	beta = 819/1024 of the window remain after a loss (bic_beta); the paper
 *		uses 0.875. Fast convergence: (1 + beta) / 2 = 0.9
 *	4	B: the search goes a quarter of the way, not half
 *	20	round trips for the last B segments up to W_max (bic_smooth_part)
 *	1/16	weight of a new sample of segments per ACK, as also its unit
 *
 * How this differs from the paper
 *	1. The search is Linux's: a quarter of the distance per RTT and no S_min; growth is
 *	   recomputed with each step of the window, not once per RTT.
 *
 * How this differs from Linux's bic
 *	2. cnt is recomputed after 31.25 ms by the microsecond clock; Linux's HZ/32 jiffies
 *	   are 28 ms at 250 Hz.
 *	3. bic_delayed_ack = 0 leaves out the division by segments per ACK. Linux starts
 *	   at 2, and its integers stay just below 2 where each segment is acknowledged by
 *	   itself: growth is then nearly twice as fast.
 */
#include "cc.h"

CC_PARAM(bic_max_increment, 16, 1, 1024, "segments; largest growth per round trip")
CC_PARAM(bic_low_window, 14, 0, 65535, "segments; up to this window it is Reno")
CC_PARAM(bic_beta, 819, 1, 1023, "1/1024; what remains of the window after a loss")
CC_PARAM(bic_smooth_part, 20, 1, 1024, "round trips for the last four segments up to W_max")
CC_PARAM(bic_fast_convergence, 1, 0, 1, "1 lowers W_max where the window had not reached it")
CC_PARAM(bic_delayed_ack, 1, 0, 1, "1 divides by the measured segments per ACK")

#define BIC_B 4
#define BIC_ACK_SHIFT 4		/* segments per ACK in 1/16 */
#define BIC_REFRESH_US 31250

struct bic {
	u32 w_max;
	u32 cnt;		/* acked segments per step of the window */
	u32 last_cwnd;		/* for which cnt was computed, */
	u32 delayed_ack;	/* segments per ACK */
	u64 last_us;		/*   and when */
};
CC_STATE(struct bic);

static inline void bic_reset(struct bic *bic)
{
	bic->w_max = 0;
	bic->cnt = 0;
	bic->last_cwnd = 0;
	bic->last_us = 0;
	bic->delayed_ack = 2 << BIC_ACK_SHIFT;
}

CC_HOOK(void, bic_init, struct sock *sk)
{
	bic_reset(inet_csk_ca(sk));
}

/* cnt above the low window, before the division by segments per ACK. */
static inline u32 bic_search(struct sock *sk, u32 cwnd, u32 w_max)
{
	u32 step = param(sk, bic_max_increment);
	u32 flat = (u64)cwnd * param(sk, bic_smooth_part) / BIC_B;

	if (cwnd < w_max) {
		u32 distance = (w_max - cwnd) / BIC_B;

		if (distance > step)
			return cwnd / step;
		return distance <= 1 ? flat : cwnd / distance;
	}
	if (cwnd < w_max + BIC_B)
		return flat;
	if (cwnd < w_max + step * (BIC_B - 1))
		return (u64)cwnd * (BIC_B - 1) / (cwnd - w_max);
	return cwnd / step;
}

static inline void bic_update(struct sock *sk)
{
	struct bic *bic = inet_csk_ca(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;
	u64 now = cc_now_us(sk);

	if (bic->last_cwnd == cwnd && now - bic->last_us <= BIC_REFRESH_US)
		return;
	bic->last_cwnd = cwnd;
	bic->last_us = now;
	if (cwnd <= param(sk, bic_low_window)) {
		bic->cnt = cwnd;
		return;
	}
	bic->cnt = bic_search(sk, cwnd, bic->w_max);
	if (bic->w_max == 0)
		bic->cnt = cc_min(bic->cnt, 20);	/* at least 5 % per RTT */
	if (param(sk, bic_delayed_ack))
		bic->cnt = ((u64)bic->cnt << BIC_ACK_SHIFT) / cc_max(bic->delayed_ack, 1);
	bic->cnt = cc_max(bic->cnt, 1);
}

CC_HOOK(void, bic_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct bic *bic = inet_csk_ca(sk);

	if (!lim_kernel(sk, 2))
		return;
	if (tcp_in_slow_start(tp)) {
		acked = ss_grow(tp, acked, 1);
		if (!acked)
			return;
	}
	bic_update(sk);
	ca_grow(tp, bic->cnt, acked);
}

CC_HOOK(void, bic_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct bic *bic = inet_csk_ca(sk);

	if (sample->pkts_acked && cc_ca_state(sk) == TCP_CA_Open)
		bic->delayed_ack += sample->pkts_acked - (bic->delayed_ack >> BIC_ACK_SHIFT);
}

CC_HOOK(u32, bic_ssthresh, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct bic *bic = inet_csk_ca(sk);
	u64 cwnd = tp->snd_cwnd, beta = param(sk, bic_beta);

	if (cwnd < bic->w_max && param(sk, bic_fast_convergence))
		bic->w_max = cwnd * (1024 + beta) / 2048;
	else
		bic->w_max = cwnd;
	if (cwnd <= param(sk, bic_low_window))
		return reno_ssthresh(tp);
	return cc_max(cwnd * beta / 1024, 2);
}

CC_HOOK(void, bic_set_state, struct sock *sk, u8 new_state)
{
	if (new_state == TCP_CA_Loss)
		bic_reset(inet_csk_ca(sk));
}

CC_HOOK(u32, bic_undo_cwnd, struct sock *sk)
{
	return undo_default(tcp_sk(sk));
}

CC_REGISTER("BIC: binary search for the window at which the last loss happened",
	.init = CC_OP(bic_init),
	.cong_avoid = CC_OP(bic_cong_avoid),
	.pkts_acked = CC_OP(bic_pkts_acked),
	.ssthresh = CC_OP(bic_ssthresh),
	.set_state = CC_OP(bic_set_state),
	.undo_cwnd = CC_OP(bic_undo_cwnd))
