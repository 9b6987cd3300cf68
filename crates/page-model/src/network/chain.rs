//! How Chromium tells an HTTP/2 server of priorities: a chain, in which each stream depends on the one before.
//!
//! The most urgent come first, among equals the oldest. A stream whose priority changes is told of, in a PRIORITY
//! frame, only if its place in the chain changes (net/spdy/http2_priority_dependencies). So of two images that
//! become visible together only the first to move is told of.

use crate::priority::Priority;

/// The requests under way on a connection.
#[derive(Debug, Default)]
pub struct Chain(Vec<(u32, Priority)>);

impl Chain {
    /// A new request; returns the one before it.
    pub fn add(&mut self, request: u32, priority: Priority) -> Option<u32> {
        let place = self.0.iter().rposition(|&(_, other)| other >= priority).map_or(0, |last| last + 1);
        self.0.insert(place, (request, priority));
        self.before(place)
    }

    /// The request is answered.
    pub fn remove(&mut self, request: u32) {
        self.0.retain(|&(other, _)| other != request);
    }

    /// Changes the priority of a request; true if the server is told.
    pub fn change(&mut self, request: u32, priority: Priority) -> bool {
        let Some(place) = self.0.iter().position(|&(other, _)| other == request) else { return false };
        let before = self.before(place);
        self.0.remove(place);
        self.add(request, priority) != before
    }

    fn before(&self, place: usize) -> Option<u32> {
        place.checked_sub(1).map(|before| self.0[before].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(requests: &[(u32, Priority)]) -> Chain {
        let mut chain = Chain::default();
        for &(request, priority) in requests {
            chain.add(request, priority);
        }
        chain
    }

    #[test]
    fn of_two_that_are_raised_together_only_the_first_to_move_is_told() {
        let images = [(5, Priority::Medium), (7, Priority::Medium), (9, Priority::Low)];
        let mut late_first = chain(&images);
        assert!(late_first.change(9, Priority::High));
        assert!(!late_first.change(5, Priority::High), "9 is before it already");
        let mut early_first = chain(&images);
        assert!(!early_first.change(5, Priority::High), "it was the first before");
        assert!(early_first.change(9, Priority::High), "it passes 7");
    }

    #[test]
    fn among_equals_the_oldest_comes_first() {
        let mut chain = chain(&[(1, Priority::High), (3, Priority::Low), (5, Priority::High)]);
        assert_eq!(chain.add(7, Priority::Low), Some(3));
        assert_eq!(chain.add(9, Priority::High), Some(5));
        chain.remove(5);
        assert_eq!(chain.add(11, Priority::High), Some(9));
        assert!(!chain.change(99, Priority::High), "a request that is not under way");
    }
}
