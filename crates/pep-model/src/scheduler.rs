//! The door to both orders.

use crate::answer::{Answer, Grant, Wanted, wire_bytes};
use crate::arrival::Arrival;
use crate::fair::Fair;
use crate::policy::{PepSchedule, Policy};
use std::collections::BTreeMap;

/// The answers that the ground side has to send, and their order.
///
/// Tell it what there is ([`add`](Self::add), [`offer`](Self::offer), [`finish`](Self::finish)), then call
/// [`pick`](Self::pick) until it gives nothing. Call `pick` again after each of these, when a connection has got
/// room, and at the time that [`next`](Self::next) says. Bytes of one answer go out in order. With `fair` they may go
/// over different connections of the class, so the receiver orders them by their offset.
pub struct Scheduler {
    policy: Policy,
    answers: BTreeMap<u32, Answer>,
    order: Order,
    rate: Rate,
}

/// What a caller that comes late may make up for, in ns: timers are that exact.
const LATE: u64 = 5_000_000;

/// When the rate, which all classes share, lets the next bytes go.
#[derive(Default)]
struct Rate {
    /// Time, in ns.
    free_at: u64,
    /// The last call came before it.
    is_waited_for: bool,
}

enum Order {
    Arrival(Arrival),
    Fair(Fair),
}

impl Scheduler {
    /// Nothing to send.
    pub fn new(policy: Policy) -> Scheduler {
        let order = match policy.schedule {
            PepSchedule::Arrival => Order::Arrival(Arrival::new(&policy)),
            PepSchedule::Fair => Order::Fair(Fair::new(&policy)),
        };
        Scheduler { policy, answers: BTreeMap::new(), order, rate: Rate::default() }
    }

    /// Its rules.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// An answer begins to come from its origin. `answer` is a new number; `user` is any number that is the same
    /// for all answers of one user; `class` is below the policy's [`class_count`](Policy::class_count).
    pub fn add(&mut self, answer: u32, user: u32, class: usize, wanted: Wanted) {
        self.answers.insert(answer, Answer { class, user, ready: 0, finished: false });
        match &mut self.order {
            Order::Arrival(order) => order.add(answer, class),
            Order::Fair(order) => order.add(answer, user, class, wanted),
        }
    }

    /// `bytes` more of the answer can be sent: they are there, and the receiver has room for them.
    pub fn offer(&mut self, answer: u32, bytes: u64) {
        let Some(known) = self.answers.get_mut(&answer).filter(|_| bytes > 0) else { return };
        let was = known.is_sendable();
        known.ready += bytes;
        if let (Order::Fair(order), false) = (&mut self.order, was) {
            order.becomes_sendable(answer, known);
        }
    }

    /// No bytes follow those that were offered.
    pub fn finish(&mut self, answer: u32) {
        let Some(known) = self.answers.get_mut(&answer) else { return };
        let was = known.is_sendable();
        known.finished = true;
        if let (Order::Fair(order), false) = (&mut self.order, was) {
            order.becomes_sendable(answer, known);
        }
    }

    /// The browser asks for an answer that was sent ahead, or changes its priority.
    pub fn want(&mut self, answer: u32, wanted: Wanted) {
        if let (Some(known), Order::Fair(order)) = (self.answers.get(&answer), &mut self.order) {
            order.want(answer, known, wanted);
        }
    }

    /// Forgets an answer that nobody wants any more. Unknown ones are ignored.
    pub fn remove(&mut self, answer: u32) {
        let Some(known) = self.answers.remove(&answer) else { return };
        match &mut self.order {
            Order::Arrival(order) => order.remove(answer),
            Order::Fair(order) => order.remove(answer, &known),
        }
    }

    /// When to call [`pick`](Self::pick) again although nothing happens, in ns: the rate held something back.
    pub fn next(&self) -> Option<u64> {
        self.rate.is_waited_for.then_some(self.rate.free_at)
    }

    /// Who sends next on one of the connections for which `has_room` is true; `None` if nobody can at `now`, in ns.
    pub fn pick(&mut self, now: u64, has_room: impl Fn(usize) -> bool) -> Option<Grant> {
        self.rate.is_waited_for = now < self.rate.free_at && !self.answers.is_empty();
        if self.rate.is_waited_for {
            return None;
        }
        let grant = match &mut self.order {
            Order::Arrival(order) => order.pick(&mut self.answers, has_room),
            Order::Fair(order) => order.pick(&mut self.answers, has_room),
        }?;
        if let Some(rate) = self.policy.rate_bit_per_s {
            self.rate.free_at = self.rate.free_at.max(now.saturating_sub(LATE))
                + wire_bytes(grant.bytes) * 8_000_000_000 / rate;
        }
        if grant.last {
            self.remove(grant.answer);
        }
        Some(grant)
    }
}
