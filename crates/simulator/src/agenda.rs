//! Pending events: a small 4-ary heap, ordered by time, then by order of insertion.
//!
//! The heap stays small because an owner (a link, an endpoint) has one pending entry: its [`Alarm`]. An alarm
//! that moves later is not cancelled: it fires at its old time, and its owner looks again. One that moves
//! earlier leaves a stale entry behind, which [`Alarm::goes_off`] detects.

use wirepaint_units::Time;

/// Bits of an entry that hold the event.
const EVENT_BITS: u32 = 28;
/// Children of a node.
const ARITY: usize = 4;

/// Id of an event, below 2^28. The caller gives it its meaning.
pub type EventId = u32;

/// The pending events of one run.
///
/// An entry is one number: time in the upper 64 bits, then 36 bits of a running number (7e10 events), then
/// the event. Entries compare as numbers, and entries of equal times keep their order of insertion.
#[derive(Debug, Default)]
pub struct Agenda {
    heap: Vec<u128>,
    /// The root's place is empty; the next push may fill it.
    hole: bool,
    asked: u64,
}

impl Agenda {
    /// Adds an event.
    pub fn push(&mut self, time: Time, event: EventId) {
        debug_assert!(event >> EVENT_BITS == 0, "event {event} has more than {EVENT_BITS} bits");
        let low = self.asked << EVENT_BITS | u64::from(event);
        self.asked += 1;
        let entry = u128::from(time.0) << 64 | u128::from(low);
        if self.hole {
            self.hole = false;
            self.sift_down(entry);
        } else {
            self.heap.push(entry);
            self.sift_up(self.heap.len() - 1, entry);
        }
    }

    /// Removes the earliest event.
    pub fn pop(&mut self) -> Option<(Time, EventId)> {
        self.fill_hole();
        let entry = *self.heap.first()?;
        self.hole = true;
        Some((Time((entry >> 64) as u64), entry as u32 & ((1 << EVENT_BITS) - 1)))
    }

    /// Number of pending events.
    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.hole)
    }

    /// True when nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn fill_hole(&mut self) {
        if self.hole {
            self.hole = false;
            let last = self.heap.pop().expect("a hole is a place");
            if !self.heap.is_empty() {
                self.sift_down(last);
            }
        }
    }

    fn sift_up(&mut self, mut at: usize, entry: u128) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    /// Places an entry from the root downwards.
    fn sift_down(&mut self, entry: u128) {
        let heap = self.heap.as_mut_slice();
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            let (least, value) = if let Some(&[a, b, c, d]) = heap.get(first..).and_then(<[_]>::first_chunk) {
                // A tournament without branches, since the least child is unpredictable.
                let left = if b < a { (first + 1, b) } else { (first, a) };
                let right = if d < c { (first + 3, d) } else { (first + 2, c) };
                if right.1 < left.1 { right } else { left }
            } else {
                let rest = (first..heap.len()).map(|child| (child, heap[child]));
                let Some(least) = rest.min_by_key(|(_, value)| *value) else { break };
                least
            };
            if entry <= value {
                break;
            }
            heap[at] = value;
            at = least;
        }
        heap[at] = entry;
    }
}

/// The one pending entry of an owner.
#[derive(Clone, Copy, Debug)]
pub struct Alarm(Time);

impl Default for Alarm {
    fn default() -> Alarm {
        Alarm(Time::MAX)
    }
}

impl Alarm {
    /// Ensures that `event` fires at `deadline` or earlier.
    pub fn set(&mut self, agenda: &mut Agenda, deadline: Option<Time>, event: EventId) {
        if let Some(deadline) = deadline.filter(|deadline| *deadline < self.0) {
            self.0 = deadline;
            agenda.push(deadline, event);
        }
    }

    /// Whether it is set to fire by `time`.
    pub fn is_set_by(&self, time: Time) -> bool {
        self.0 <= time
    }

    /// Whether the entry that fired at `now` is the pending one. If so, the alarm is no longer set.
    pub fn goes_off(&mut self, now: Time) -> bool {
        let pending = self.0 == now;
        if pending {
            self.0 = Time::MAX;
        }
        pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn events_come_by_time_and_equal_times_in_the_order_of_asking(
            steps in prop::collection::vec(prop::option::of(0_u64..50), 0..400)
        ) {
            let mut agenda = Agenda::default();
            let mut sorted = Vec::new();
            for (number, step) in (0_u32..).zip(steps) {
                match step {
                    Some(time) => {
                        agenda.push(Time(time), number);
                        sorted.push((Time(time), number));
                    }
                    None => {
                        sorted.sort_unstable();
                        let first = (!sorted.is_empty()).then(|| sorted.remove(0));
                        prop_assert_eq!(agenda.pop(), first);
                    }
                }
                prop_assert_eq!(agenda.len(), sorted.len());
            }
            sorted.sort_unstable();
            for entry in sorted {
                prop_assert_eq!(agenda.pop(), Some(entry));
            }
            prop_assert!(agenda.pop().is_none() && agenda.is_empty());
        }
    }

    #[test]
    fn an_alarm_that_moved_earlier_goes_off_once() {
        let (mut agenda, mut alarm) = (Agenda::default(), Alarm::default());
        alarm.set(&mut agenda, Some(Time(9)), 7);
        alarm.set(&mut agenda, Some(Time(5)), 7);
        alarm.set(&mut agenda, Some(Time(8)), 7);
        let mut heard = Vec::new();
        while let Some((time, _)) = agenda.pop() {
            heard.push((time.0, alarm.goes_off(time)));
        }
        assert_eq!(heard, [(5, true), (9, false)]);
    }
}
