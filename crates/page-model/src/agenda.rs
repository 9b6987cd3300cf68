//! Pending events, ordered by time, then by order of insertion.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use wirepaint_units::Time;

/// Pending events.
#[derive(Debug)]
pub struct Agenda<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    asked: u64,
}

#[derive(Debug)]
struct Entry<E> {
    time: Time,
    number: u64,
    event: E,
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Entry<E>) -> std::cmp::Ordering {
        (self.time, self.number).cmp(&(other.time, other.number))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Entry<E>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Entry<E>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> Default for Agenda<E> {
    fn default() -> Agenda<E> {
        Agenda { heap: BinaryHeap::new(), asked: 0 }
    }
}

impl<E> Agenda<E> {
    /// Adds an event.
    pub fn at(&mut self, time: Time, event: E) {
        self.asked += 1;
        self.heap.push(Reverse(Entry { time, number: self.asked, event }));
    }

    /// The next event that is due by `now`, with its time.
    pub fn due(&mut self, now: Time) -> Option<(Time, E)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| (entry.time, entry.event))
    }

    /// Time of the next event.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(entry)| entry.time)
    }
}
