//! The fair order: classes by share, users of a class by turns, answers of a user by the browser's priorities.
//!
//! - **Classes.** Each has sent a number of bytes; divided by its share that is its virtual time. The class with
//!   the least virtual time goes first. A class that begins to send starts at the least virtual time of the others,
//!   so nobody saves up. While all are idle nobody is owed anything, and all start anew. A class whose connections
//!   have no room is still owed its share: others run ahead of it by [`LEAD`] at most. One without anything to send
//!   is owed nothing: others borrow its share.
//! - **Users.** Deficit round robin (Shreedhar and Varghese, SIGCOMM 1995) in its surplus form: a user whose credit
//!   is above zero sends a whole frame and may fall below zero. Frames are small then. A user alone pays nothing.
//! - **Answers.** RFC 9218 as the replay server has it; what nobody asked for yet goes last.

use crate::answer::{Answer, Grant, LARGE_FRAME, SMALL_FRAME, Wanted};
use crate::policy::Policy;
use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;
use wirepaint_http_model::{Priority, Schedule};

/// Bytes by which a class may run ahead of one whose connections have no room. It bridges the time until that one
/// has room again.
const LEAD: f64 = 65_536.0;

/// Bytes of 10 ms at a rate: another user's request waits no longer for a frame that has begun.
fn large_frame(bit_per_s: NonZeroU64) -> u64 {
    (bit_per_s.get() / 800).clamp(SMALL_FRAME, LARGE_FRAME)
}

pub(crate) struct Fair {
    classes: Vec<Class>,
    per_class: usize,
    multiplexed: bool,
    /// Most bytes of a user who is alone.
    large_frame: u64,
}

struct Class {
    share: f64,
    /// Bytes sent, divided by the share.
    virtual_time: f64,
    users: BTreeMap<u32, User>,
    /// Users with something to send, in the order of their turns.
    turns: VecDeque<u32>,
    /// The connection that is asked first, counted in the class.
    next: usize,
}

#[derive(Default)]
struct User {
    /// Bytes that the user may send in this turn; below zero after a frame that was larger.
    credit: i64,
    /// Answers of this user, sendable or not.
    answers: usize,
    /// Sendable answers.
    sendable: usize,
    asked: Schedule,
    ahead: Schedule,
}

impl Fair {
    pub fn new(policy: &Policy) -> Fair {
        let class = |class| Class {
            share: policy.share(class),
            virtual_time: 0.0,
            users: BTreeMap::new(),
            turns: VecDeque::new(),
            next: 0,
        };
        Fair {
            classes: (0..policy.class_count()).map(class).collect(),
            per_class: policy.connections,
            multiplexed: policy.multiplexed,
            large_frame: policy.rate_bit_per_s.map_or(LARGE_FRAME, large_frame),
        }
    }

    pub fn add(&mut self, answer: u32, user: u32, class: usize, wanted: Wanted) {
        let multiplexed = self.multiplexed;
        let user = self.classes[class].users.entry(user).or_default();
        user.answers += 1;
        user.place(answer, wanted, multiplexed);
        user.block(answer);
    }

    pub fn becomes_sendable(&mut self, answer: u32, known: &Answer) {
        if self.classes[known.class].turns.is_empty() {
            let others = self.classes.iter().filter(|class| !class.turns.is_empty());
            match others.map(|class| class.virtual_time).reduce(f64::min) {
                Some(least) => {
                    let class = &mut self.classes[known.class];
                    class.virtual_time = class.virtual_time.max(least);
                }
                None => self.classes.iter_mut().for_each(|class| class.virtual_time = 0.0),
            }
        }
        let class = &mut self.classes[known.class];
        let user = class.users.get_mut(&known.user).expect("a user has entries as long as answers");
        user.asked.unblock_one(answer);
        user.ahead.unblock_one(answer);
        user.sendable += 1;
        if user.sendable == 1 {
            class.turns.push_back(known.user);
        }
    }

    pub fn want(&mut self, answer: u32, known: &Answer, wanted: Wanted) {
        let user = self.classes[known.class].users.get_mut(&known.user);
        let user = user.expect("a user has entries as long as answers");
        user.asked.remove(answer);
        user.ahead.remove(answer);
        user.place(answer, wanted, self.multiplexed);
        if !known.is_sendable() {
            user.block(answer);
        }
    }

    pub fn remove(&mut self, answer: u32, known: &Answer) {
        let class = &mut self.classes[known.class];
        let user = class.users.get_mut(&known.user).expect("a user has entries as long as answers");
        user.asked.remove(answer);
        user.ahead.remove(answer);
        user.answers -= 1;
        user.sendable -= usize::from(known.is_sendable());
        if user.sendable == 0 {
            class.turns.retain(|&other| other != known.user);
            user.credit = user.credit.min(0);
        }
        if user.answers == 0 {
            class.users.remove(&known.user);
        }
    }

    pub fn pick(
        &mut self,
        answers: &mut BTreeMap<u32, Answer>,
        has_room: impl Fn(usize) -> bool,
    ) -> Option<Grant> {
        let per_class = self.per_class;
        let room = |number: usize, next: usize| {
            let first = number * per_class;
            (0..per_class).map(|step| first + (next + step) % per_class).find(|&each| has_room(each))
        };
        let busy = || self.classes.iter().enumerate().filter(|(_, class)| !class.turns.is_empty());
        let least = busy().map(|(_, class)| class.virtual_time).reduce(f64::min)?;
        let (number, connection) = busy()
            .filter(|(_, class)| (class.virtual_time - least) * class.share <= LEAD)
            .filter_map(|(number, class)| Some((number, room(number, class.next)?)))
            .min_by(|(a, _), (b, _)| {
                self.classes[*a].virtual_time.total_cmp(&self.classes[*b].virtual_time)
            })?;
        let class = &mut self.classes[number];
        class.next = (connection % per_class + 1) % per_class;
        let is_alone = class.turns.len() == 1;
        let frame = if is_alone { self.large_frame } else { SMALL_FRAME };
        let user_number = if is_alone { class.turns[0] } else { class.next_user() };
        let user = class.users.get_mut(&user_number).expect("who has a turn is known");
        let answer = user.next().expect("who has a turn has something to send");
        let known = answers.get_mut(&answer).expect("a scheduled answer is known");
        let (bytes, last) = known.take(frame);
        if !is_alone {
            user.credit -= bytes as i64;
        }
        class.virtual_time += bytes as f64 / class.share;
        if !known.is_sendable() {
            user.block(answer);
            user.sendable -= 1;
            if user.sendable == 0 {
                class.turns.pop_front();
                user.credit = user.credit.min(0);
            }
        }
        Some(Grant { connection, answer, bytes, last })
    }
}

impl Class {
    /// The user whose turn it is among several.
    fn next_user(&mut self) -> u32 {
        loop {
            let first = self.turns[0];
            let user = self.users.get_mut(&first).expect("who has a turn is known");
            if user.credit > 0 {
                return first;
            }
            user.credit += SMALL_FRAME as i64;
            self.turns.rotate_left(1);
        }
    }
}

impl User {
    fn place(&mut self, answer: u32, wanted: Wanted, multiplexed: bool) {
        match wanted {
            Wanted::Asked(Priority { urgency, incremental }) => {
                self.asked.add(answer, Priority { urgency, incremental: incremental && multiplexed });
            }
            Wanted::Ahead => self.ahead.add(answer, Priority::default()),
        }
    }

    fn block(&mut self, answer: u32) {
        self.asked.block(answer);
        self.ahead.block(answer);
    }

    fn next(&mut self) -> Option<u32> {
        if let Some(answer) = self.asked.next() {
            self.asked.served(answer);
            return Some(answer);
        }
        self.ahead.next()
    }
}
