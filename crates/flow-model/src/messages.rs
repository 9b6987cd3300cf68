//! Messages: when each was due to be written, and when its last byte was read.

use std::collections::VecDeque;
use wirepaint_units::{Duration, Time};

/// A message that was read in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When its write was due; of an exchange, the write of its request.
    pub due: Time,
    /// When its reader had the last byte; of an exchange, the last byte of the answer.
    pub read: Time,
    /// Its bytes; of an exchange, those of the answer.
    pub bytes: u64,
}

impl Message {
    /// From the write to the last byte. It includes the wait for room in the send buffer.
    pub fn delay(&self) -> Duration {
        self.read.since(self.due)
    }
}

/// Messages of a constant-rate flow.
#[derive(Default)]
pub(crate) struct Messages {
    /// Messages not read in full: one past the last byte of each, when its write was due, and its bytes.
    under_way: VecDeque<(u64, Time, u64)>,
    asked: u64,
}

impl Messages {
    pub fn write(&mut self, due: Time, bytes: u64) {
        self.asked += bytes;
        self.under_way.push_back((self.asked, due, bytes));
    }

    /// By `now`, `received` bytes of the flow were read: adds to `done` the messages that are complete.
    pub fn read(&mut self, now: Time, received: u64, done: &mut Vec<Message>) {
        while let Some(&(_, due, bytes)) = self.under_way.front().filter(|(end, ..)| *end <= received) {
            done.push(Message { due, read: now, bytes });
            self.under_way.pop_front();
        }
    }
}
