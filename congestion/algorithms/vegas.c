/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Vegas: holds the window where a few segments of it wait in the queue, by comparing the
 * round-trip time with the smallest one seen.
 *
 *	baseRTT		smallest round-trip time of the connection, since it last resumed
 *	minRTT		smallest of the last round trip; its samples are counted
 *	once per RTT	(the ACK passes snd_nxt of the time before)
 *		diff = cwnd * (minRTT - baseRTT) / baseRTT	segments that wait
 *		up to 2 samples:	Reno's growth
 *		slow start, diff > 1:	cwnd = min(cwnd, cwnd * baseRTT / minRTT + 1);
 *					ssthresh = min(ssthresh, cwnd)
 *		slow start otherwise:	cwnd += acked
 *		diff > 4:		cwnd -= 1; ssthresh = min(ssthresh, cwnd)
 *		diff < 2:		cwnd += 1
 *		then cwnd >= 2; ssthresh = max(ssthresh, 3/4 cwnd)
 *	in between	slow start grows, congestion avoidance holds
 *	not in Open	Reno's growth; back in Open a new round begins
 *	idle		the kernel's restart, or a first segment with nothing in flight:
 *			all is measured anew, baseRTT too
 *	loss, ECN echo, timeout
 *			ssthresh = cwnd / 2, at least 2
 *
 * Source: Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global
 * Internet", IEEE JSAC 13(8), 1995: sections III.B (alpha, beta) and III.C (gamma);
 * Linux's tcp_vegas for all that the paper leaves open.
 *
 * Constants
 *	2, 4	alpha, beta: segments that should wait in the queue. The paper tries 1, 3
 *		and 2, 4
 *	1	gamma: more waiting segments end slow start
 *	1 us	is added to each sample, so that none is zero
 *	3	samples, of which not all can be of delayed ACKs
 *
 * How this differs from the paper (as Linux)
 *	1. Slow start grows in every round trip, not in every second one.
 *	2. Loss detection and recovery stay the kernel's; the paper has its own.
 *	3. The rate is that of the ACKs, by the smallest round-trip time of a round trip.
 *
 * How this differs from Linux's vegas
 *	4. The product of cwnd and the queueing delay is 64 bits wide; Linux's wraps.
 *
 * As in Linux, Vegas also grows where the application limits the flight: only the Reno
 * parts ask whether the window is in use. And a connection that often falls idle takes
 * its own queueing for the path, since baseRTT is forgotten.
 */
#include "cc.h"

CC_PARAM(vegas_alpha, 2, 0, 65535, "segments; fewer waiting in the queue let the window grow")
CC_PARAM(vegas_beta, 4, 0, 65535, "segments; more waiting in the queue let it shrink")
CC_PARAM(vegas_gamma, 1, 0, 65535, "segments; more waiting in the queue end slow start")

#define VEGAS_NONE 0x7fffffff	/* no sample yet */

struct vegas {
	u32 begin;		/* snd_nxt when the round trip began */
	u32 samples;		/* of this round trip */
	u32 min_rtt;		/* us, of this round trip */
	u32 base_rtt;		/* us */
	bool on;
};
CC_STATE(struct vegas);

static inline void vegas_begin(struct vegas *vegas, u32 snd_nxt)
{
	vegas->begin = snd_nxt;
	vegas->samples = 0;
	vegas->min_rtt = VEGAS_NONE;
}

static inline void vegas_restart(struct sock *sk)
{
	struct vegas *vegas = inet_csk_ca(sk);

	vegas->on = true;
	vegas->base_rtt = VEGAS_NONE;
	vegas_begin(vegas, tcp_sk(sk)->snd_nxt);
}

CC_HOOK(void, vegas_init, struct sock *sk)
{
	vegas_restart(sk);
}

CC_HOOK(void, vegas_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct vegas *vegas = inet_csk_ca(sk);
	u32 rtt = sample->rtt_us + 1;

	if (sample->rtt_us < 0)
		return;
	vegas->base_rtt = cc_min(vegas->base_rtt, rtt);
	vegas->min_rtt = cc_min(vegas->min_rtt, rtt);
	vegas->samples++;
}

/* The decision once per round trip. */
static inline void vegas_adjust(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct vegas *vegas = inet_csk_ca(sk);
	u64 base_rtt = cc_max(vegas->base_rtt, 1), rtt = cc_max(vegas->min_rtt, 1);
	u64 waiting = tp->snd_cwnd * (rtt - base_rtt) / base_rtt;

	if (tcp_in_slow_start(tp)) {
		if (waiting > param(sk, vegas_gamma)) {
			tp->snd_cwnd = cc_min(tp->snd_cwnd, tp->snd_cwnd * base_rtt / rtt + 1);
			tp->snd_ssthresh = cc_min(tp->snd_ssthresh, tp->snd_cwnd);
		} else {
			ss_grow(tp, acked, 1);
		}
	} else if (waiting > param(sk, vegas_beta)) {
		tp->snd_cwnd--;
		tp->snd_ssthresh = cc_min(tp->snd_ssthresh, tp->snd_cwnd);
	} else if (waiting < param(sk, vegas_alpha)) {
		tp->snd_cwnd++;
	}
	tp->snd_cwnd = cc_min(cc_max(tp->snd_cwnd, 2), tp->snd_cwnd_clamp);
	raise34(tp);
}

CC_HOOK(void, vegas_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct vegas *vegas = inet_csk_ca(sk);

	if (!vegas->on) {
		reno_cong_avoid(sk, acked);
	} else if (cc_after(ack, vegas->begin)) {
		if (vegas->samples <= 2)
			reno_cong_avoid(sk, acked);
		else
			vegas_adjust(sk, acked);
		vegas_begin(vegas, tp->snd_nxt);
	} else if (tcp_in_slow_start(tp)) {
		ss_grow(tp, acked, 1);
	}
}

CC_HOOK(void, vegas_set_state, struct sock *sk, u8 new_state)
{
	struct vegas *vegas = inet_csk_ca(sk);

	vegas->on = new_state == TCP_CA_Open;
	if (vegas->on)
		vegas_begin(vegas, tcp_sk(sk)->snd_nxt);
}

CC_HOOK(void, vegas_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_CWND_RESTART || event == CA_EVENT_TX_START)
		vegas_restart(sk);
}

CC_HOOK(u32, vegas_ssthresh, struct sock *sk)
{
	return reno_ssthresh(tcp_sk(sk));
}

CC_HOOK(u32, vegas_undo_cwnd, struct sock *sk)
{
	return undo_default(tcp_sk(sk));
}

CC_REGISTER("Vegas: keeps two to four segments in the queue, by the round-trip time",
	.init = CC_OP(vegas_init),
	.pkts_acked = CC_OP(vegas_pkts_acked),
	.cong_avoid = CC_OP(vegas_cong_avoid),
	.set_state = CC_OP(vegas_set_state),
	.cwnd_event = CC_OP(vegas_cwnd_event),
	.ssthresh = CC_OP(vegas_ssthresh),
	.undo_cwnd = CC_OP(vegas_undo_cwnd))
