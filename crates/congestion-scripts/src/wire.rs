//! The bottleneck of a script.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// State that the senders of a script share beside their groups: a bottleneck, behind which segments of one
/// round-trip time arrive in the order of sending, and the order of all events.
#[derive(Default)]
pub struct Wire {
    /// When the last transmission of each round-trip time is due.
    last_due_us: RefCell<BTreeMap<u64, u64>>,
    order: Cell<u64>,
}

impl Wire {
    /// When the ACK of a segment sent now arrives. ACKs are at least a microsecond apart, because RACK
    /// distinguishes transmissions by their times.
    pub(crate) fn due_us(&self, now_us: u64, rtt_us: u64) -> u64 {
        let mut last_due_us = self.last_due_us.borrow_mut();
        let last = last_due_us.entry(rtt_us).or_default();
        *last = (*last + 1).max(now_us + rtt_us);
        *last
    }

    /// The place of the next event, among all senders.
    pub(crate) fn next(&self) -> u64 {
        self.order.replace(self.order.get() + 1)
    }
}
