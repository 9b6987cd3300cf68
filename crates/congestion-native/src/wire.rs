//! The bottleneck of a script.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// What the senders of a script share beside their groups: a bottleneck, behind which segments of one
/// round-trip time arrive in the order in which they were sent, and the order of all that happens.
#[derive(Default)]
pub struct Wire {
    /// When the last transmission of each round-trip time is due.
    last_due_us: RefCell<BTreeMap<u64, u64>>,
    order: Cell<u64>,
}

impl Wire {
    /// When the ACK of a segment comes that is sent now. ACKs come at least a microsecond apart, as RACK
    /// tells transmissions apart by their times.
    pub(crate) fn due_us(&self, now_us: u64, rtt_us: u64) -> u64 {
        let mut last_due_us = self.last_due_us.borrow_mut();
        let last = last_due_us.entry(rtt_us).or_default();
        *last = (*last + 1).max(now_us + rtt_us);
        *last
    }

    /// The place of what happens next, among all senders.
    pub(crate) fn next(&self) -> u64 {
        self.order.replace(self.order.get() + 1)
    }
}
