/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Hybla: a long path gets the throughput that Reno has on a path of 25 ms. With rho the
 * path's round-trip time in units of 25 ms, the window grows per ACK by as much as makes
 * it rho times as large at any time.
 *
 *	rho		max(srtt / hybla_rtt0, 1), in eighths; found anew with each smallest
 *			srtt so far
 *	open		cwnd = rho; never above 65535
 *	slow start	cwnd += 2^rho - 1 per ACK, up to ssthresh
 *	cong. avoidance	cwnd += rho^2 / cwnd per ACK, so rho^2 per RTT
 *	not in Open	Reno's growth
 *	loss, ECN echo, timeout
 *			ssthresh = cwnd / 2, at least 2
 *
 * Source: Caini and Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous
 * networks", International Journal of Satellite Communications and Networking 22(5),
 * 2004: equations of both increments and of rho; Linux's tcp_hybla for the integers.
 *
 * Constants
 *	25 ms		RTT0: a terrestrial path as the paper takes it (hybla_rtt0)
 *	1/128		fraction of a segment in which slow start counts
 *	2^16		largest 2^rho: with it the first ACK already reaches the limit
 *	65535		limit of cwnd, that of Linux's module
 *
 * How this differs from the paper
 *	1. The paper pairs Hybla with packet spacing and bandwidth estimation for the
 *	   initial ssthresh. Neither is here, nor in Linux: on a path of 600 ms the first
 *	   ACK opens the window to 65535 segments, and only the receiver's window, the
 *	   send buffer and the queue limit what leaves. Set these in an experiment.
 *	2. Increments are per ACK, not per acknowledged segment, as in Linux: delayed ACKs
 *	   halve the growth.
 *	3. ssthresh starts infinite, not at rho times a base value.
 *
 * How this differs from Linux's hybla
 *	4. Chosen on a living connection it leaves cwnd alone, where Linux sets it to rho.
 *	5. The limit of 65535 is set through setsockopt(), because the kernel does not let
 *	   a BPF program write it; ssthresh, which that overwrites, is restored. It
 *	   stays when the connection changes to another algorithm (release() may not call
 *	   setsockopt(), and Linux's module leaves it as well).
 *	6. Congestion avoidance keeps the rest of its division. Linux cuts each increment
 *	   to 1/128 segment, so at rho 1 it falls behind Reno and above 128 segments stands.
 */
#include "cc.h"

CC_OWN_INITIAL_WINDOW

CC_PARAM(hybla_rtt0, 25, 1, 10000, "ms; the round-trip time on which Hybla is Reno")

#define HYBLA_CLAMP 65535
#define HYBLA_EXPONENT_MAX 16
#define HYBLA_ONE 128		/* slow start counts in 1/128 segment */

/* 128 * 2^(n/8) for n from 7 down to 0: 234, 215, 197, 181, 165, 152, 139, 128; a byte each,
 * as the loader takes no tables. */
#define HYBLA_FRACTIONS 0xead7c5b5a5988b80ULL

struct hybla {
	u32 rho8;		/* rho in eighths */
	u32 min_srtt;		/* smallest tp->srtt_us so far */
	u32 cents;		/* growth of slow start not yet given, below HYBLA_ONE */
	u32 rest;		/* growth of congestion avoidance not yet given */
};
CC_STATE(struct hybla);

static inline void hybla_measure(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct hybla *hybla = inet_csk_ca(sk);
	u64 rtt0_us = param(sk, hybla_rtt0) * 1000;

	/* srtt_us is in eighths too. */
	hybla->rho8 = cc_max(tp->srtt_us / rtt0_us, 8);
	hybla->min_srtt = tp->srtt_us;
}

CC_HOOK(void, hybla_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct hybla *hybla = inet_csk_ca(sk);

	hybla_measure(sk);
	cc_set_clamp(sk, HYBLA_CLAMP);
	if (!cc_is_live(tp))
		tp->snd_cwnd = cc_min(hybla->rho8 >> 3, HYBLA_CLAMP);
}

/* 2^rho - 1 for an ACK in slow start; what remains below a segment is kept in cents. */
static inline u32 hybla_slow_start(struct hybla *hybla)
{
	u32 fraction = HYBLA_FRACTIONS >> 8 * (hybla->rho8 & 7) & 0xff;
	u32 power = fraction << cc_min(hybla->rho8 >> 3, HYBLA_EXPONENT_MAX);
	u32 credit = hybla->cents + power - HYBLA_ONE;

	hybla->cents = credit % HYBLA_ONE;
	return credit / HYBLA_ONE;
}

/* rho^2 / cwnd for an ACK in congestion avoidance; the rest of the division is kept. */
static inline u32 hybla_avoidance(struct hybla *hybla, u32 cwnd)
{
	u64 credit = hybla->rest + (u64)hybla->rho8 * hybla->rho8;	/* 64 rho^2 */

	hybla->rest = credit % (64ULL * cwnd);
	return credit / (64ULL * cwnd);
}

CC_HOOK(void, hybla_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct hybla *hybla = inet_csk_ca(sk);
	u32 limit = tp->snd_cwnd_clamp;

	if (tp->srtt_us < hybla->min_srtt)
		hybla_measure(sk);
	if (cc_ca_state(sk) != TCP_CA_Open) {
		reno_cong_avoid(sk, acked);
		return;
	}
	if (!lim_kernel(sk, 2))
		return;
	if (tcp_in_slow_start(tp)) {
		limit = cc_min(limit, tp->snd_ssthresh);
		tp->snd_cwnd += hybla_slow_start(hybla);
	} else {
		tp->snd_cwnd += hybla_avoidance(hybla, cc_max(tp->snd_cwnd, 1));
	}
	tp->snd_cwnd = cc_min(tp->snd_cwnd, limit);
}

CC_HOOK(u32, hybla_ssthresh, struct sock *sk)
{
	return reno_ssthresh(tcp_sk(sk));
}

CC_HOOK(u32, hybla_undo_cwnd, struct sock *sk)
{
	return undo_default(tcp_sk(sk));
}

CC_REGISTER("Hybla: a satellite path grows its window as fast as a path of 25 ms",
	.init = CC_OP(hybla_init),
	.cong_avoid = CC_OP(hybla_cong_avoid),
	.ssthresh = CC_OP(hybla_ssthresh),
	.undo_cwnd = CC_OP(hybla_undo_cwnd))
