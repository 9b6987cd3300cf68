//! The paper's order (HTTP-AE, section IV-D): each answer has a connection, given by turns, and goes whole, first
//! come, first served. With classes each class has connections of its own (section IV-E).
//!
//! The paper does not say what a connection does while its first answer waits for its origin or for the receiver.
//! Here the next one that can be sent goes on, so that a slow browser does not stop others.

use crate::answer::{Answer, Grant, LARGE_FRAME};
use crate::policy::Policy;
use std::collections::{BTreeMap, VecDeque};

pub(crate) struct Arrival {
    /// Answers of each connection, oldest first.
    queues: Vec<VecDeque<u32>>,
    /// For each class, how many answers it has had.
    turns: Vec<usize>,
    per_class: usize,
    multiplexed: bool,
    /// The connection that is asked first.
    next: usize,
}

impl Arrival {
    pub fn new(policy: &Policy) -> Arrival {
        Arrival {
            queues: vec![VecDeque::new(); policy.connection_count()],
            turns: vec![0; policy.class_count()],
            per_class: policy.connections,
            multiplexed: policy.multiplexed,
            next: 0,
        }
    }

    pub fn add(&mut self, answer: u32, class: usize) {
        let connection = class * self.per_class + self.turns[class] % self.per_class;
        self.turns[class] += 1;
        self.queues[connection].push_back(answer);
    }

    pub fn remove(&mut self, answer: u32) {
        self.queues.iter_mut().for_each(|queue| queue.retain(|&other| other != answer));
    }

    pub fn pick(
        &mut self,
        answers: &mut BTreeMap<u32, Answer>,
        has_room: impl Fn(usize) -> bool,
    ) -> Option<Grant> {
        let count = self.queues.len();
        for connection in (0..count).map(|step| (self.next + step) % count) {
            if !has_room(connection) {
                continue;
            }
            let queue = &mut self.queues[connection];
            let Some(place) = queue.iter().position(|answer| answers[answer].is_sendable()) else { continue };
            let answer = queue[place];
            let known = answers.get_mut(&answer).expect("every answer in a queue is known");
            let (bytes, last) = known.take(LARGE_FRAME);
            if self.multiplexed {
                queue.remove(place);
                queue.push_back(answer);
            }
            self.next = (connection + 1) % count;
            return Some(Grant { connection, answer, bytes, last });
        }
        None
    }
}
