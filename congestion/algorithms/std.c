/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * STD: standard TCP as RFC 5681 words it, the baseline of the papers.
 *
 *	ACK of new data	cwnd < ssthresh: cwnd += 1 per acked segment
 *			otherwise:       cwnd += 1 per cwnd acked segments
 *			also when the application, not cwnd, limited the flight
 *	loss, ECN echo	ssthresh = FlightSize / 2, at least 2; cwnd follows (PRR)
 *	timeout		ssthresh the same, once per window; cwnd = 1
 *	idle > RTO	before the first segment: cwnd = min(IW, cwnd)
 *
 * Source: RFC 5681, section 3.1 (equations 2 and 4; floor of 2 segments), section
 * 4.1 (restart window; the idle time counts from the last segment that was sent).
 *
 * How this differs from the RFC
 *	1. Slow start adds one per acked segment, not per ACK (std_ss_mode): RFC 3465
 *	   with L unbounded, as Linux.
 *	2. During recovery the kernel's PRR (RFC 9937) sets cwnd in place of section
 *	   3.2's inflation; the value at its end is the same, ssthresh.
 *
 * How this differs from Linux's reno
 *	3. Growth needs no full window (std_applim_growth).
 *	4. ssthresh derives from FlightSize, not from cwnd (std_flight).
 *	5. After idle cwnd falls to the restart window at once and ssthresh stays,
 *	   where Linux halves cwnd per RTO and raises ssthresh. With the sysctl
 *	   tcp_slow_start_after_idle at 1 the kernel's rule would run as well.
 */
#include "cc.h"

CC_SYSCTL("net.ipv4.tcp_slow_start_after_idle", "0")

enum { STD_FLIGHT, STD_CWND };
enum { STD_PER_SEG, STD_PER_ACK };

CC_PARAM(std_flight, STD_FLIGHT, 0, 1, "ssthresh after a loss is half of: 0 FlightSize, 1 cwnd")
CC_PARAM(std_rw, 0, 0, 65535, "restart window in segments; 0 is the connection's initial window")
CC_PARAM(std_ss_mode, STD_PER_SEG, 0, 1, "slow start adds one segment per: 0 acked segment, 1 ACK")
CC_PARAM(std_applim_growth, 1, 0, 1, "1 grows on every ACK, 0 only while the window is in use")

struct std {
	u32 initial_window;
};
CC_STATE(struct std);

CC_HOOK(void, std_init, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct std *std = inet_csk_ca(sk);

	std->initial_window = cc_is_live(tp) ? TCP_INIT_CWND : tp->snd_cwnd;
}

/* Runs before each round of sending: the only place where cwnd can fall before the
 * first segment after an idle period leaves. */
CC_HOOK(u32, std_min_tso_segs, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct std *std = inet_csk_ca(sk);
	u32 restart = param(sk, std_rw);

	if (cc_idle_j(sk) > inet_csk(sk)->icsk_rto)
		tp->snd_cwnd = cc_min(tp->snd_cwnd, restart ? restart : std->initial_window);
	return 2;	/* the kernel's default */
}

CC_HOOK(void, std_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!param(sk, std_applim_growth) && !lim_kernel(sk, 2))
		return;
	if (tcp_in_slow_start(tp) && param(sk, std_ss_mode) == STD_PER_ACK)
		acked = cc_min(acked, 1);
	reno_grow(tp, acked);
}

CC_HOOK(u32, std_ssthresh, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 window = param(sk, std_flight) == STD_CWND ? tp->snd_cwnd : tp->packets_out;

	return cc_max(window >> 1, 2);
}

CC_HOOK(u32, std_undo_cwnd, struct sock *sk)
{
	return undo_default(tcp_sk(sk));
}

CC_REGISTER("standard TCP of RFC 5681: slow start, congestion avoidance, restart window after idle",
	.init = CC_OP(std_init),
	.min_tso_segs = CC_OP(std_min_tso_segs),
	.cong_avoid = CC_OP(std_cong_avoid),
	.ssthresh = CC_OP(std_ssthresh),
	.undo_cwnd = CC_OP(std_undo_cwnd))
