/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Westwood+: after a loss the window is set to what the path was measured to carry, so
 * that a loss by radio does not cost half of it.
 *
 *	measuring	bytes acknowledged in a window of max(RTT, 50 ms), divided by its
 *			length, is a sample of the bandwidth; two low-pass filters follow:
 *			ns = (7 ns + sample) / 8, bw = (7 bw + ns) / 8; the first sample
 *			fills both
 *	  duplicate ACK	counts as one segment; the number that later covers it counts
 *			as much less
 *	share		max(bw * RTTmin / mss, 2) segments
 *	growth		Reno
 *	loss, ECN echo	during recovery as Reno; at its end ssthresh = cwnd = share
 *	timeout		ssthresh = share; cwnd = 1; RTTmin is measured anew
 *
 * Source: Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New
 * Reno, and Vegas TCP congestion control", ACM CCR 34(2), 2004: section 2; Linux's
 * tcp_westwood for the counting and the filters' integers.
 *
 * Constants
 *	50 ms	shortest measuring window: below it ACKs come too unevenly
 *	7/8	pole of both filters
 *	20 s	RTT before the first sample: too long on purpose
 *	2	RFC 5681's floor of ssthresh
 *
 * How this differs from Linux's westwood
 *	1. Time is counted in microseconds and bandwidth in bytes per second. Linux uses
 *	   jiffies and bytes per jiffy: at 250 Hz a round-trip time of 50 ms is 12.5 of
 *	   them (ww_clock = 1 does it so too).
 *	2. After an undo the window stays what undo made of it; Linux's module overwrites
 *	   it with the share when recovery ends.
 *
 * As in Linux, a loss before the first measuring window has passed finds no bandwidth
 * and leaves two segments.
 */
#include "cc.h"

enum { WW_US, WW_JIFFY };

CC_PARAM(ww_clock, WW_US, 0, 1, "time is counted in: 0 microseconds, 1 jiffies, as Linux's module")

/* Times in ticks of the clock, bandwidth in bytes per WW_SECOND or per jiffy. */
#define WW_SECOND 1000000
#define WW_RTT_START_US (20 * WW_SECOND)

struct westwood {
	u64 bw_ns;		/* after the first filter */
	u64 bw;			/* after both */
	u64 begin;		/* of the measuring window */
	u64 acked;		/* bytes acknowledged in it */
	u32 snd_una;		/* up to where they were counted */
	u32 accounted;		/* bytes counted by duplicate ACKs, not covered yet */
	u32 rtt;
	u32 rtt_min;
	bool started;		/* an ACK has arrived */
	bool measured;
	bool renew_rtt_min;
	bool in_episode;	/* from ssthresh() to COMPLETE_CWR or undo */
};
CC_STATE(struct westwood);

static inline bool ww_in_us(struct sock *sk)
{
	return param(sk, ww_clock) == WW_US;
}

static inline u64 ww_now(struct sock *sk)
{
	return ww_in_us(sk) ? cc_now_us(sk) : cc_now_j(sk);
}

/* In ticks, rounded up as the kernel's usecs_to_jiffies(). */
static inline u32 ww_ticks(struct sock *sk, u32 us)
{
	return ww_in_us(sk) ? us : cc_us_to_j(us + 1000000 / CC_HZ - 1);
}

CC_HOOK(void, ww_init, struct sock *sk)
{
	struct westwood *ww = inet_csk_ca(sk);

	ww->rtt = ww_ticks(sk, WW_RTT_START_US);
	ww->rtt_min = ww->rtt;
	ww->renew_rtt_min = true;
	ww->begin = ww_now(sk);
}

CC_HOOK(void, ww_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct westwood *ww = inet_csk_ca(sk);

	if (sample->rtt_us > 0)
		ww->rtt = ww_ticks(sk, sample->rtt_us);
}

/* Ends the measuring window where it is long enough. */
static inline void ww_measure(struct sock *sk)
{
	struct westwood *ww = inet_csk_ca(sk);
	u64 now = ww_now(sk), elapsed = now - ww->begin;
	u32 shortest = ww_in_us(sk) ? WW_SECOND / 20 : CC_HZ / 20;
	u64 sample;

	if (!ww_in_us(sk))
		elapsed = (u32)elapsed;		/* jiffies wrap at 32 bits */
	if (!ww->rtt || elapsed <= cc_max(ww->rtt, shortest))
		return;
	sample = ww->acked * (ww_in_us(sk) ? WW_SECOND : 1) / elapsed;
	ww->bw_ns = ww->measured ? (7 * ww->bw_ns + sample) / 8 : sample;
	ww->bw = ww->measured ? (7 * ww->bw + ww->bw_ns) / 8 : sample;
	ww->measured = ww->bw_ns || ww->bw;
	ww->acked = 0;
	ww->begin = now;
}

/* Bytes that the ACK at hand shows to have arrived. */
static inline u32 ww_arrived(const struct tcp_sock *tp, struct westwood *ww)
{
	u32 mss = tp->mss_cache, bytes = tp->snd_una - ww->snd_una;

	ww->snd_una = tp->snd_una;
	if (!bytes) {
		ww->accounted += mss;
		return mss;
	}
	if (bytes <= mss)
		return bytes;
	if (ww->accounted >= bytes) {
		ww->accounted -= bytes;
		return mss;
	}
	bytes -= ww->accounted;
	ww->accounted = 0;
	return bytes;
}

CC_HOOK(void, ww_in_ack_event, struct sock *sk, u32 flags)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct westwood *ww = inet_csk_ca(sk);

	if (!ww->started) {
		ww->started = true;
		ww->snd_una = tp->snd_una;
	}
	ww_measure(sk);
	if (flags & CA_ACK_SLOWPATH) {
		ww->acked += ww_arrived(tp, ww);
	} else {
		ww->acked += tp->snd_una - ww->snd_una;
		ww->snd_una = tp->snd_una;
	}
	ww->rtt_min = ww->renew_rtt_min ? ww->rtt : cc_min(ww->rtt, ww->rtt_min);
	ww->renew_rtt_min = false;
}

CC_HOOK(void, ww_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	reno_cong_avoid(sk, acked);
}

CC_HOOK(u32, ww_ssthresh, struct sock *sk)
{
	struct westwood *ww = inet_csk_ca(sk);

	ww->in_episode = true;
	return reno_ssthresh(tcp_sk(sk));
}

static inline u32 ww_share(struct sock *sk)
{
	const struct westwood *ww = inet_csk_ca(sk);
	u64 bytes = ww->bw * ww->rtt_min / (ww_in_us(sk) ? WW_SECOND : 1);
	u64 segments = bytes / cc_max(tcp_sk(sk)->mss_cache, 1);

	return segments > 2 ? (segments < TCP_INFINITE_SSTHRESH ? segments : TCP_INFINITE_SSTHRESH) : 2;
}

CC_HOOK(void, ww_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct westwood *ww = inet_csk_ca(sk);

	if (event == CA_EVENT_COMPLETE_CWR && ww->in_episode) {
		tp->snd_ssthresh = ww_share(sk);
		tp->snd_cwnd = cc_min(tp->snd_ssthresh, tp->snd_cwnd_clamp);
		ww->in_episode = false;
	} else if (event == CA_EVENT_LOSS) {
		tp->snd_ssthresh = ww_share(sk);
		ww->renew_rtt_min = true;
		ww->in_episode = false;
	}
}

CC_HOOK(u32, ww_undo_cwnd, struct sock *sk)
{
	struct westwood *ww = inet_csk_ca(sk);

	ww->in_episode = false;
	return undo_default(tcp_sk(sk));
}

CC_REGISTER("Westwood+: after a loss the window is what the path was measured to carry",
	.init = CC_OP(ww_init),
	.pkts_acked = CC_OP(ww_pkts_acked),
	.in_ack_event = CC_OP(ww_in_ack_event),
	.cong_avoid = CC_OP(ww_cong_avoid),
	.ssthresh = CC_OP(ww_ssthresh),
	.cwnd_event = CC_OP(ww_cwnd_event),
	.undo_cwnd = CC_OP(ww_undo_cwnd))
