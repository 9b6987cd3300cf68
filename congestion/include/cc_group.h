/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Groups: what the connections under one instance of an algorithm know in common.
 *
 * An algorithm that shares state among connections includes this file in place of
 * cc.h. A hook can only change its own socket, so sharing is by pull: the group
 * holds sums, counters of events and what the algorithm adds (own), and each member
 * applies what is new to it at its own next ACK, at most a round trip later.
 *
 *	key	sender's network namespace, server, destination's prefix, slot
 *	value	struct cc_group, under its lock; the invariant outside the lock:
 *		n members, cwnd_tot and ssth_tot the sums of what they contributed
 *	member	struct cc_member, a part of the connection's state
 *
 * A hook that works on its group:
 *
 *	cc_group_key(sk, 24, 64, m->slot, &key);
 *	g = cc_group_make(sk, &key);		or cc_group_find()
 *	if (!g)
 *		return;				the table is full: without a group
 *	cc_lock(g);
 *	... loads, stores, arithmetic and the functions marked "locked" below ...
 *	note = cc_group_note(g, CC_LOSS);
 *	cc_unlock(g);
 *	cc_group_tell(sk, &key, &note);		for the trace
 *
 * The server is the network of the sender's own address (CC_SERVER_PLEN4,
 * CC_SERVER_PLEN6): what different servers of a page learn, they do not share, though
 * on the testbed one network namespace holds them all. A front end that serves several
 * names has their addresses in one network, or one address.
 *
 * A sender that disconnects by connect(AF_UNSPEC) has lost its address by the time of
 * release() and stays counted in its group.
 *
 * Under the lock the kernel forbids every call, so all of this is inlined. A group
 * without members stays and is used again: removing it would race with a member
 * that has just found it. Hence at most CC_GROUPS_MAX servers, prefixes and slots are
 * known to an instance in its life; connections beyond them stay without a group.
 */
#pragma once

#include "cc.h"

#define CC_GROUPS_MAX 4096

/* Bits of a sender's address that its server has in common: a usual network of hosts,
 * for IPv6 by RFC 7421. */
#define CC_SERVER_PLEN4 24
#define CC_SERVER_PLEN6 64

struct bpf_spin_lock {
	u32 val;
};

enum { CC_AF_INET = 2, CC_AF_INET6 = 10 };

/* Kinds of events. What cwnd and ssthresh of an event mean, its algorithm says. */
enum { CC_JOIN, CC_LOSS, CC_LEAVE, CC_DELAY, CC_UNDO, CC_EVENTS };

struct cc_group_key {
	u32 netns;		/* of the sender */
	u8 family;		/* CC_AF_INET also for IPv4 in an IPv6 socket */
	u8 plen;		/* bits of the prefix */
	u8 slot;		/* groups of one server and prefix */
	u8 unused;
	u32 prefix[4];		/* network order; IPv4 in the first */
	u32 server[2];		/* the same; CC_SERVER_PLEN6 bits at most */
};

struct cc_group_event {
	u32 count;		/* events so far; compared by difference, it wraps */
	u32 cwnd;		/* of the last one */
	u32 ssthresh;
};

struct cc_group {
	struct bpf_spin_lock lock;
	u32 n;			/* members */
	u32 rtt_us;
	u32 gen;		/* times that the first member joined */
	u64 cwnd_tot;
	u64 ssth_tot;
	struct cc_group_event ev[CC_EVENTS];
	u64 own[8];		/* the algorithm's */
};

struct cc_member {
	u32 cwnd;		/* contributed to the sums */
	u32 ssth;
	u32 seen[CC_EVENTS];	/* event counters that were applied */
	u8 slot;
	bool in_group;
};

/* A group right after an event. */
struct cc_note {
	u32 kind;
	u32 n;
	u64 cwnd_tot;
	u64 ssth_tot;
	u32 cwnd;
	u32 ssthresh;
};

/* A row of the trace's table `group`; addresses and ports in network order. */
struct cc_group_record {
	u64 time_ns;
	struct cc_group_key key;
	u32 local[4];
	u32 remote[4];
	u16 local_port;
	u16 remote_port;
	u32 unused;
	struct cc_note note;
};

#ifdef __bpf__

/* How `cc load` and `cc groups` tell whose groups these are; the first entry. */
struct cc_instance {
	char algorithm[16];
	char name[16];
	u64 lost;		/* records that found the ring buffer full */
};

struct {
	__uint(type, 1 /* BPF_MAP_TYPE_HASH; an LRU refuses locks */);
	__uint(max_entries, CC_GROUPS_MAX);
	__type(key, struct cc_group_key);
	__type(value, struct cc_group);
} cc_groups SEC(".maps");

struct {
	__uint(type, 27 /* BPF_MAP_TYPE_RINGBUF */);
	__uint(max_entries, 1 << 20);
} cc_group_records SEC(".maps");

struct {
	__uint(type, 2 /* BPF_MAP_TYPE_ARRAY */);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cc_instance);
} cc_instance SEC(".maps");

static const u64 cc_group_fresh[sizeof(struct cc_group) / sizeof(u64)];

static __always_inline struct cc_group *cc_group_find(struct sock *sk, const struct cc_group_key *key)
{
	return bpf_map_lookup_elem(&cc_groups, key);
}

/* The group of a key, made where there is none; NULL when the table is full. */
static __always_inline struct cc_group *cc_group_make(struct sock *sk, const struct cc_group_key *key)
{
	struct cc_group *g = cc_group_find(sk, key);

	if (g)
		return g;
	bpf_map_update_elem(&cc_groups, key, cc_group_fresh, 1 /* BPF_NOEXIST */);
	return cc_group_find(sk, key);
}

#define cc_lock(g) bpf_spin_lock(&(g)->lock)
#define cc_unlock(g) bpf_spin_unlock(&(g)->lock)

static __always_inline struct cc_group_record *cc_record_begin(struct sock *sk)
{
	struct cc_group_record *record = bpf_ringbuf_reserve(&cc_group_records, sizeof(*record), 0);
	struct cc_instance *instance;
	u32 first = 0;

	if (record)
		return record;
	instance = bpf_map_lookup_elem(&cc_instance, &first);
	if (instance)
		__sync_fetch_and_add(&instance->lost, 1);
	return NULL;
}

static __always_inline void cc_record_end(struct sock *sk, struct cc_group_record *record)
{
	bpf_ringbuf_submit(record, 1 /* BPF_RB_NO_WAKEUP: the reader polls */);
}

#else

/* The groups of one instance; the owner of the connections supplies them (groups.rs). */
struct cc_group_store {
	struct cc_group *(*find)(const struct cc_group_store *store, const struct cc_group_key *key);
	struct cc_group *(*make)(const struct cc_group_store *store, const struct cc_group_key *key);
	struct cc_group_record *(*record)(const struct cc_group_store *store);
};

static __always_inline struct cc_group *cc_group_find(struct sock *sk, const struct cc_group_key *key)
{
	return sk->cc_groups->find(sk->cc_groups, key);
}

static __always_inline struct cc_group *cc_group_make(struct sock *sk, const struct cc_group_key *key)
{
	return sk->cc_groups->make(sk->cc_groups, key);
}

/* The connections of a store share a thread. */
#define cc_lock(g) ((void)(g))
#define cc_unlock(g) ((void)(g))

static __always_inline struct cc_group_record *cc_record_begin(struct sock *sk)
{
	return sk->cc_groups->record(sk->cc_groups);
}

static __always_inline void cc_record_end(struct sock *sk, struct cc_group_record *record)
{
	(void)sk, (void)record;
}

#endif

/* A word of an address in network order, cut off after `bits`, which may lie before it. */
static __always_inline u32 cc_prefix_word(u32 word, s32 bits)
{
	u32 mask;

	if (bits >= 32)
		return word;
	if (bits <= 0)
		return 0;
	mask = ~0U << (32 - bits);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	mask = __builtin_bswap32(mask);
#endif
	return word & mask;
}

/* True for IPv4, also in an IPv6 socket (::ffff:a.b.c.d, RFC 4291 section 2.5.5.2). */
static __always_inline bool cc_is_ipv4(const struct sock *sk)
{
	const u32 *address = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32;
	u32 mapped = 0xffff;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	mapped = __builtin_bswap32(mapped);
#endif
	return sk->__sk_common.skc_family == CC_AF_INET ||
	       (!address[0] && !address[1] && address[2] == mapped);
}

/* The key of the group in `slot` of the socket's server and the destination's prefix: plen4
 * bits of an IPv4 address (at most 32), plen6 of an IPv6 one (at most 128). */
static __always_inline void cc_group_key(struct sock *sk, u32 plen4, u32 plen6, u8 slot,
					 struct cc_group_key *key)
{
	const u32 *address = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32;
	const u32 *own = sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32;

	__builtin_memset(key, 0, sizeof(*key));
	key->netns = cc_netns(sk);
	key->slot = slot;
	if (cc_is_ipv4(sk)) {
		key->family = CC_AF_INET;
		key->plen = plen4;
		key->prefix[0] = cc_prefix_word(sk->__sk_common.skc_daddr, plen4);
		key->server[0] = cc_prefix_word(sk->__sk_common.skc_rcv_saddr, CC_SERVER_PLEN4);
	} else {
		key->family = CC_AF_INET6;
		key->plen = plen6;
		key->prefix[0] = cc_prefix_word(address[0], plen6);
		key->prefix[1] = cc_prefix_word(address[1], plen6 - 32);
		key->prefix[2] = cc_prefix_word(address[2], plen6 - 64);
		key->prefix[3] = cc_prefix_word(address[3], plen6 - 96);
		key->server[0] = cc_prefix_word(own[0], CC_SERVER_PLEN6);
		key->server[1] = cc_prefix_word(own[1], CC_SERVER_PLEN6 - 32);
	}
}

/* Locked: replaces what the member has in the sums. */
static __always_inline void cc_group_contribute(struct cc_group *g, struct cc_member *m, u32 cwnd,
						u32 ssth)
{
	g->cwnd_tot += (u64)cwnd - m->cwnd;
	g->ssth_tot += (u64)ssth - m->ssth;
	m->cwnd = cwnd;
	m->ssth = ssth;
}

/* Locked: what happened so far does not concern the member. */
static __always_inline void cc_group_catch_up(const struct cc_group *g, struct cc_member *m)
{
	m->seen[CC_JOIN] = g->ev[CC_JOIN].count;
	m->seen[CC_LOSS] = g->ev[CC_LOSS].count;
	m->seen[CC_LEAVE] = g->ev[CC_LEAVE].count;
	m->seen[CC_DELAY] = g->ev[CC_DELAY].count;
	m->seen[CC_UNDO] = g->ev[CC_UNDO].count;
}

/* Locked: the member joins with its contribution. */
static __always_inline void cc_group_enter(struct cc_group *g, struct cc_member *m, u32 cwnd, u32 ssth)
{
	if (!g->n)
		g->gen++;
	g->n++;
	m->cwnd = 0;
	m->ssth = 0;
	m->in_group = true;
	cc_group_contribute(g, m, cwnd, ssth);
	cc_group_catch_up(g, m);
}

/* Locked: the member leaves with its contribution. */
static __always_inline void cc_group_exit(struct cc_group *g, struct cc_member *m)
{
	cc_group_contribute(g, m, 0, 0);
	g->n--;
	m->in_group = false;
}

/* Locked: an event for all members but this one. */
static __always_inline void cc_group_post(struct cc_group *g, struct cc_member *m, u32 kind, u32 cwnd,
					  u32 ssthresh)
{
	g->ev[kind].count++;
	g->ev[kind].cwnd = cwnd;
	g->ev[kind].ssthresh = ssthresh;
	m->seen[kind] = g->ev[kind].count;
}

/* Events of a kind that the member has not seen; a hint without the lock. */
static __always_inline u32 cc_group_news(const struct cc_group *g, const struct cc_member *m, u32 kind)
{
	s32 news = g->ev[kind].count - m->seen[kind];

	return news > 0 ? news : 0;
}

/* Locked: the group after the last event of a kind. */
static __always_inline struct cc_note cc_group_note(const struct cc_group *g, u32 kind)
{
	return (struct cc_note){
		.kind = kind,
		.n = g->n,
		.cwnd_tot = g->cwnd_tot,
		.ssth_tot = g->ssth_tot,
		.cwnd = g->ev[kind].cwnd,
		.ssthresh = g->ev[kind].ssthresh,
	};
}

/* Not locked: tells the trace. */
static __always_inline void cc_group_tell(struct sock *sk, const struct cc_group_key *key,
					  const struct cc_note *note)
{
	const struct sock_common *common = &sk->__sk_common;
	const u32 *local = common->skc_v6_rcv_saddr.in6_u.u6_addr32;
	const u32 *remote = common->skc_v6_daddr.in6_u.u6_addr32;
	struct cc_group_record *record = cc_record_begin(sk);
	bool ipv4 = key->family == CC_AF_INET;

	if (!record)
		return;
	record->time_ns = cc_now_us(sk) * 1000;
	record->key = *key;
	record->local[0] = ipv4 ? common->skc_rcv_saddr : local[0];
	record->local[1] = ipv4 ? 0 : local[1];
	record->local[2] = ipv4 ? 0 : local[2];
	record->local[3] = ipv4 ? 0 : local[3];
	record->remote[0] = ipv4 ? common->skc_daddr : remote[0];
	record->remote[1] = ipv4 ? 0 : remote[1];
	record->remote[2] = ipv4 ? 0 : remote[2];
	record->remote[3] = ipv4 ? 0 : remote[3];
	/* Not skc_num, which is 0 by the time of release(). */
	record->local_port = ((const struct inet_sock *)sk)->inet_sport;
	record->remote_port = common->skc_dport;
	record->note = *note;
	cc_record_end(sk, record);
}
