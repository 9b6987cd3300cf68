//! The door to both orders.

use crate::answer::{Answer, Grant, Wanted};
use crate::arrival::Arrival;
use crate::fair::Fair;
use crate::policy::{PepSchedule, Policy};
use std::collections::BTreeMap;

/// The answers that the ground side has to send, and their order.
///
/// Tell it what there is ([`add`](Self::add), [`offer`](Self::offer), [`finish`](Self::finish)), then call
/// [`pick`](Self::pick) until it gives nothing. Call `pick` again after each of these and when a connection has got
/// room. Bytes of one answer go out in order. With `fair` they may go over different connections of the class, so
/// the receiver orders them by their offset.
pub struct Scheduler {
    policy: Policy,
    answers: BTreeMap<u32, Answer>,
    order: Order,
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
        Scheduler { policy, answers: BTreeMap::new(), order }
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

    /// Who sends next on one of the connections for which `has_room` is true; `None` if nobody can.
    pub fn pick(&mut self, has_room: impl Fn(usize) -> bool) -> Option<Grant> {
        let grant = match &mut self.order {
            Order::Arrival(order) => order.pick(&mut self.answers, has_room),
            Order::Fair(order) => order.pick(&mut self.answers, has_room),
        }?;
        if grant.last {
            self.remove(grant.answer);
        }
        Some(grant)
    }
}
