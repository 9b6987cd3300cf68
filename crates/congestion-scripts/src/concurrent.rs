//! Several script senders at the same time.
//!
//! Each [`Sender`] has its own clock; those of a script share a [`Wire`](crate::wire::Wire). These functions
//! advance all of them together: events happen in order of time, at equal times in the order of the list.

use crate::sender::Sender;

/// Time passes until `end_us`; segments that arrive within it are acknowledged.
pub fn advance_to(senders: &mut [&mut Sender], end_us: u64) {
    while let Some(first) = earliest(senders, |_, sender| sender.due_us().is_some_and(|due| due <= end_us)) {
        senders[first].step(end_us);
    }
    for sender in senders {
        sender.advance_to(end_us);
    }
}

/// The next `arrivals[i]` segments of the `i`-th sender arrive, one ACK each; other due events happen
/// meanwhile. False if fewer were in flight.
pub fn ack(senders: &mut [&mut Sender], mut arrivals: Vec<u64>, ece: bool) -> bool {
    while let Some(next) = earliest(senders, |index, _| arrivals[index] > 0) {
        let Some(due) = senders[next].due_us() else { return false };
        arrivals[next] -= 1;
        // Others that are due at the same time come after this one.
        advance_to(senders, due - 1);
        if !senders[next].ack(1, ece) {
            return false;
        }
    }
    let now = senders.iter().map(|sender| sender.now_us()).max().unwrap_or(0);
    advance_to(senders, now);
    true
}

/// The sender with the earliest due time among those that `asked` selects; one without due events comes last.
fn earliest(senders: &[&mut Sender], asked: impl Fn(usize, &Sender) -> bool) -> Option<usize> {
    (0..senders.len())
        .filter(|&index| asked(index, senders[index]))
        .min_by_key(|&index| senders[index].due_us().unwrap_or(u64::MAX))
}
