/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * newCWV: RFC 7661, for applications that limit their own rate. The window survives
 * such phases; how much of it the path is known to carry is measured beside it.
 *
 *	pipeACK		bytes acknowledged per round trip, the largest such sample of the
 *			last max(3 RTT, 1 s); undefined at first and after a reduction
 *	validated	pipeACK is undefined or >= cwnd / 2: growth, losses as RFC 5681
 *	non-validated	otherwise:
 *	  growth	only while the flight fills the window; idle changes nothing
 *	  loss, ECN echo
 *			W = max(pipeACK, FlightSize); ssthresh = W / 2 during recovery, at
 *			its end cwnd = (W - R) / 2 with R segments retransmitted, at least
 *			1; ssthresh = max(cwnd, 2); pipeACK undefined
 *	  each period	ssthresh = max(ssthresh, 3/4 cwnd); cwnd = max(cwnd / 2, IW);
 *			a period is newcwv_nvp_s
 *	timeout		ssthresh = FlightSize / 2, at least 2; cwnd = 1; pipeACK undefined
 *	undo		cwnd and pipeACK return
 *
 * Source: RFC 7661, sections 4.2 (pipeACK), 4.3 (both phases), 4.4.1 (congestion in the
 * non-validated phase), 4.4.2 (bursts), 4.4.3 (end of the non-validated period), 4.5
 * (measurement by bins).
 *
 * Constants (all of the RFC)
 *	max(3 RTT, 1 s)	pipeACK sampling period: long enough for a pause between bursts
 *	5 bins		of it; the RFC's example. The authors' module had 4
 *	1/2 cwnd	what a window in use is acknowledged at least per round trip
 *	300 s		newcwv_nvp_s, the non-validated period: a path is thought to stay as it is for minutes
 *
 * How this differs from the RFC
 *	1. A sample begins with an ACK and holds what ACKs show within one smoothed RTT of
 *	   it. So none spans a pause, and none has to be discarded as too long. What it holds
 *	   so far counts for pipeACK.
 *	2. The phase is looked at with each ACK and before each sending. A phase that began
 *	   while nothing happened is dated back to when the last sufficient sample ran out.
 *	3. The reduction after newcwv_nvp_s never raises a window below the initial one.
 *	4. R does not count segments that were retransmitted twice.
 *	5. Bursts in the non-validated phase are not limited unless newcwv_pace is set: the
 *	   kernel then paces by its own rate, 1.2 (slow start: 2) windows per RTT.
 *	6. During recovery PRR (RFC 9937) leads cwnd to ssthresh.
 */
#include "cc.h"

CC_SYSCTL("net.ipv4.tcp_slow_start_after_idle", "0")

CC_PARAM(newcwv_nvp_s, 300, 1, 3600, "seconds of the non-validated period, after each of which the window is halved")
CC_PARAM(newcwv_pace, 0, 0, 1, "1 paces, which limits bursts of a window that was preserved")

#define NEWCWV_BINS 5
#define NEWCWV_PERIOD_MS 1000		/* least pipeACK sampling period */

/* Times of cc_now_us() in ms; they wrap after 49 days. */
struct newcwv_bin {
	u32 at_ms;
	u32 bytes;
};

enum { NEWCWV_NO_EPISODE, NEWCWV_VALIDATED, NEWCWV_NONVALIDATED };

struct newcwv {
	struct newcwv_bin bins[NEWCWV_BINS];	/* newest first */
	u64 sample_us;		/* when the sample at hand began; 0: the next ACK begins it */
	u32 sample_bytes;
	u32 last_una;		/* snd_una of the ACK before */
	u32 pipe_ack;		/* bytes */
	u32 nvp_ms;		/* when the non-validated period began */
	u32 initial_window;
	/* A reduction, from ssthresh() to COMPLETE_CWR, undo or timeout. */
	u32 pipe_ack_before;
	u32 window;		/* segments; max(pipeACK, FlightSize) */
	u32 retrans_before;	/* tp->total_retrans */
	struct cc_marks marks;
	u8 episode;
	bool measured;		/* pipeACK is defined */
	bool measured_before;
	bool nonvalidated;
	bool full;		/* the flight filled the window when the ACK at hand arrived */
};
CC_STATE(struct newcwv);

static inline u32 newcwv_now_ms(struct sock *sk)
{
	return cc_now_us(sk) / 1000;
}

static inline u32 newcwv_period_ms(const struct tcp_sock *tp)
{
	return cc_max(3 * ((tp->srtt_us >> 3) / 1000), NEWCWV_PERIOD_MS);
}

static inline bool newcwv_suffices(const struct tcp_sock *tp, u32 bytes)
{
	return 2ULL * bytes >= (u64)tp->snd_cwnd * tp->mss_cache;
}

/* Puts a sample into the newest bin, or into a new one where that has its fifth of the
 * period. Constant indices: the verifier allows no other into the socket. */
static inline void newcwv_keep(struct newcwv *newcwv, u32 at_ms, u32 bytes, u32 period_ms)
{
	struct newcwv_bin *bins = newcwv->bins;

	newcwv->measured = true;
	if (at_ms - bins[0].at_ms < period_ms / NEWCWV_BINS) {
		bins[0].bytes = cc_max(bins[0].bytes, bytes);
		return;
	}
	bins[4] = bins[3];
	bins[3] = bins[2];
	bins[2] = bins[1];
	bins[1] = bins[0];
	bins[0].at_ms = at_ms;
	bins[0].bytes = bytes;
}

/* Ends the sample at hand: its bytes were acknowledged within one smoothed RTT. */
static inline void newcwv_end_sample(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct newcwv *newcwv = inet_csk_ca(sk);
	u64 rtt = tp->srtt_us >> 3, elapsed = cc_now_us(sk) - newcwv->sample_us;

	if (newcwv->sample_bytes)
		newcwv_keep(newcwv, (newcwv->sample_us + (elapsed < rtt ? elapsed : rtt)) / 1000,
			    newcwv->sample_bytes, newcwv_period_ms(tp));
	newcwv->sample_us = 0;
	newcwv->sample_bytes = 0;
}

/* An ACK ends the sample that is a smoothed RTT old, and counts for the next. */
static inline void newcwv_sample(struct sock *sk, u32 newly_acked)
{
	struct newcwv *newcwv = inet_csk_ca(sk);
	u64 now = cc_now_us(sk);

	if (newcwv->sample_us && now - newcwv->sample_us >= tcp_sk(sk)->srtt_us >> 3)
		newcwv_end_sample(sk);
	if (!newcwv->sample_us)
		newcwv->sample_us = now;
	newcwv->sample_bytes += newly_acked;
}

/* Forgets bins that ran out, and with them finds pipeACK and the phase. */
static inline void newcwv_update(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct newcwv *newcwv = inet_csk_ca(sk);
	u32 now = newcwv_now_ms(sk), period = newcwv_period_ms(tp);
	u32 pipe_ack = newcwv->sample_bytes, since = now;
	bool sufficed = false, nonvalidated;

	CC_UNROLL
	for (int i = 0; i < NEWCWV_BINS; i++) {
		struct newcwv_bin *bin = &newcwv->bins[i];

		if (now - bin->at_ms < period) {
			pipe_ack = cc_max(pipe_ack, bin->bytes);
			continue;
		}
		if (!sufficed && bin->bytes && newcwv_suffices(tp, bin->bytes)) {
			sufficed = true;
			since = bin->at_ms + period;
		}
		bin->bytes = 0;
	}
	newcwv->pipe_ack = pipe_ack;
	nonvalidated = newcwv->measured && !newcwv_suffices(tp, pipe_ack);
	if (nonvalidated && !newcwv->nonvalidated)
		newcwv->nvp_ms = since;
	newcwv->nonvalidated = nonvalidated;
}

/* pipeACK becomes undefined. */
static inline void newcwv_forget(struct sock *sk)
{
	struct newcwv *newcwv = inet_csk_ca(sk);

	CC_UNROLL
	for (int i = 0; i < NEWCWV_BINS; i++)
		newcwv->bins[i].bytes = 0;
	newcwv->pipe_ack = 0;
	newcwv->measured = false;
	newcwv->nonvalidated = false;
	newcwv->episode = NEWCWV_NO_EPISODE;
	newcwv->sample_us = 0;
	newcwv->sample_bytes = 0;
}

CC_HOOK(void, newcwv_init, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct newcwv *newcwv = inet_csk_ca(sk);

	newcwv->initial_window = cc_is_live(tp) ? TCP_INIT_CWND : tp->snd_cwnd;
	newcwv->last_una = tp->snd_una;
	if (param(sk, newcwv_pace) && sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

CC_HOOK(u32, newcwv_min_tso_segs, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct newcwv *newcwv = inet_csk_ca(sk);
	u32 period_ms = param(sk, newcwv_nvp_s) * 1000;

	if (newcwv->episode) {
		cc_marks_after(tp, &newcwv->marks);
		return 2;
	}
	if (tp->packets_out == 0 && tp->write_seq != tp->snd_nxt)
		newcwv_end_sample(sk);	/* sending resumes */
	newcwv_update(sk);
	for (int i = 0; i < 32; i++) {
		if (!newcwv->nonvalidated || newcwv_now_ms(sk) - newcwv->nvp_ms < period_ms)
			break;
		raise34(tp);
		tp->snd_cwnd = cc_min(tp->snd_cwnd,
				      cc_max(tp->snd_cwnd >> 1, newcwv->initial_window));
		newcwv->nvp_ms += period_ms;
	}
	return 2;	/* the kernel's default */
}

CC_HOOK(void, newcwv_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct newcwv *newcwv = inet_csk_ca(sk);
	u32 newly_acked = tp->snd_una - newcwv->last_una;

	newcwv->last_una = tp->snd_una;
	newcwv->full = cc_flight_before(tp, sample) >= tp->snd_cwnd || cc_is_cwnd_limited(sk);
	/* Recovery acknowledges in leaps what arrived before. */
	if (newcwv->episode || cc_ca_state(sk) >= TCP_CA_CWR) {
		newcwv->sample_us = 0;
		newcwv->sample_bytes = 0;
		return;
	}
	newcwv_sample(sk, newly_acked);
	newcwv_update(sk);
}

CC_HOOK(void, newcwv_in_ack_event, struct sock *sk, u32 flags)
{
	struct newcwv *newcwv = inet_csk_ca(sk);

	cc_marks_before(tcp_sk(sk), &newcwv->marks);
}

CC_HOOK(void, newcwv_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	const struct newcwv *newcwv = inet_csk_ca(sk);

	if (newcwv->full || !newcwv->nonvalidated)
		reno_grow(tcp_sk(sk), acked);
}

static inline u32 newcwv_standard(const struct tcp_sock *tp)
{
	return cc_max(tp->packets_out >> 1, 2);
}

CC_HOOK(u32, newcwv_ssthresh, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct newcwv *newcwv = inet_csk_ca(sk);

	newcwv->pipe_ack_before = newcwv->pipe_ack;
	newcwv->measured_before = newcwv->measured;
	newcwv->retrans_before = tp->total_retrans;
	newcwv->marks.repeats = 0;
	cc_marks_before(tp, &newcwv->marks);
	newcwv->window = cc_max(newcwv->pipe_ack / cc_max(tp->mss_cache, 1), tp->packets_out);
	if (newcwv->nonvalidated) {
		newcwv->episode = NEWCWV_NONVALIDATED;
		return cc_max(newcwv->window >> 1, 1);
	}
	newcwv->episode = NEWCWV_VALIDATED;
	return newcwv_standard(tp);
}

/* The end of recovery or CWR. */
static inline void newcwv_complete(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct newcwv *newcwv = inet_csk_ca(sk);
	u32 sent_again = tp->total_retrans - newcwv->retrans_before;

	sent_again -= cc_min(newcwv->marks.repeats, sent_again);
	if (newcwv->episode == NEWCWV_NONVALIDATED) {
		u32 window = newcwv->window - cc_min(sent_again, newcwv->window);

		tp->snd_cwnd = cc_max(window >> 1, 1);
		tp->snd_ssthresh = cc_max(tp->snd_cwnd, 2);
	}
	newcwv_forget(sk);
}

CC_HOOK(void, newcwv_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct newcwv *newcwv = inet_csk_ca(sk);

	if (event == CA_EVENT_COMPLETE_CWR && newcwv->episode)
		newcwv_complete(sk);
	else if (event == CA_EVENT_LOSS)
		tp->snd_ssthresh = newcwv_standard(tp);
}

/* A timeout within a window that was already reduced raises no CA_EVENT_LOSS. */
CC_HOOK(void, newcwv_set_state, struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (new_state != TCP_CA_Loss)
		return;
	tp->snd_ssthresh = cc_max(tp->snd_ssthresh, 2);
	newcwv_forget(sk);
}

CC_HOOK(u32, newcwv_undo_cwnd, struct sock *sk)
{
	struct newcwv *newcwv = inet_csk_ca(sk);

	newcwv_forget(sk);
	if (newcwv->measured_before) {
		newcwv->bins[0].at_ms = newcwv_now_ms(sk);
		newcwv->bins[0].bytes = newcwv->pipe_ack_before;
		newcwv->measured = true;
		newcwv_update(sk);
	}
	return undo_default(tcp_sk(sk));
}

CC_REGISTER("RFC 7661: keeps an unused window, growth and losses go by what the path was seen to carry",
	.init = CC_OP(newcwv_init),
	.min_tso_segs = CC_OP(newcwv_min_tso_segs),
	.pkts_acked = CC_OP(newcwv_pkts_acked),
	.in_ack_event = CC_OP(newcwv_in_ack_event),
	.cong_avoid = CC_OP(newcwv_cong_avoid),
	.ssthresh = CC_OP(newcwv_ssthresh),
	.cwnd_event = CC_OP(newcwv_cwnd_event),
	.set_state = CC_OP(newcwv_set_state),
	.undo_cwnd = CC_OP(newcwv_undo_cwnd))
