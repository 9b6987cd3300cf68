//! The order of a multiplexed connection's responses (RFC 9218, section 10).
//!
//! Lower urgency values first. Within an urgency, non-incremental responses one after another in
//! the order of their requests; when none is left, incremental ones in turns.

/// Urgency and incremental of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 (first) to 7 (last).
    pub urgency: u8,
    /// True when the client can use partial data.
    pub incremental: bool,
}

impl Default for Priority {
    /// Priority of a request without the header: `u=3, i=?0` (RFC 9218, section 4).
    fn default() -> Priority {
        Priority { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// Reads the value of a `priority` header or of a PRIORITY_UPDATE frame. Unknown parameters and
    /// values out of range count as absent.
    pub fn parse(value: &str) -> Priority {
        let mut priority = Priority::default();
        for member in value.split(',') {
            let member = member.split(';').next().unwrap_or_default().trim();
            match member.split_once('=') {
                Some(("u", urgency)) => match urgency.parse() {
                    Ok(urgency @ 0..=7) => priority.urgency = urgency,
                    _ => priority.urgency = Priority::default().urgency,
                },
                Some(("i", flag)) => priority.incremental = flag == "?1",
                None if member == "i" => priority.incremental = true,
                _ => {}
            }
        }
        priority
    }
}

/// A client's later change of a response's priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    urgency: u8,
    /// `None` keeps the old value.
    incremental: Option<bool>,
}

impl Change {
    /// A new urgency alone.
    pub fn urgency(urgency: u8) -> Change {
        Change { urgency, incremental: None }
    }

    /// From the value of a PRIORITY_UPDATE frame (RFC 9218, section 7.1).
    pub fn parse(value: &str) -> Change {
        let Priority { urgency, incremental } = Priority::parse(value);
        Change { urgency, incremental: Some(incremental) }
    }

    /// From the weight (1 to 256) of a PRIORITY frame (RFC 9113, section 6.3).
    ///
    /// The frame is deprecated, but Chromium uses no other way to reprioritise an HTTP/2 request, for
    /// instance an image that turns out to be in view. It spreads eight priorities evenly over the weights
    /// (256, 220, 183, 147, ... 1); its headers use the same eight as urgencies.
    pub fn from_weight(weight: u16) -> Change {
        Change::urgency((((256 - weight.min(256)) * 7 + 127) / 255) as u8)
    }

    /// `priority` after the change.
    pub fn apply(self, priority: Priority) -> Priority {
        Priority { urgency: self.urgency, incremental: self.incremental.unwrap_or(priority.incremental) }
    }
}

/// The responses of a connection that have bytes to send.
#[derive(Debug, Default)]
pub struct Schedule {
    entries: Vec<Entry>,
    turn: u64,
}

#[derive(Debug)]
struct Entry {
    stream: u32,
    priority: Priority,
    /// When it last had its turn; 0 for never.
    turn: u64,
    /// Cannot send in this round: its flow-control window is used up.
    blocked: bool,
}

impl Schedule {
    /// Adds a response.
    pub fn add(&mut self, stream: u32, priority: Priority) {
        self.entries.push(Entry { stream, priority, turn: 0, blocked: false });
    }

    /// Removes a response that is complete or cancelled.
    pub fn remove(&mut self, stream: u32) {
        self.entries.retain(|entry| entry.stream != stream);
    }

    /// Changes a response's priority. Unknown streams are ignored.
    pub fn change(&mut self, stream: u32, change: Change) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.stream == stream) {
            entry.priority = change.apply(entry.priority);
        }
    }

    /// Starts a round: every response may try again.
    pub fn unblock(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.blocked = false);
    }

    /// One response may try again.
    pub fn unblock_one(&mut self, stream: u32) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.stream == stream) {
            entry.blocked = false;
        }
    }

    /// The next response; `None` if all are blocked or there is none.
    pub fn next(&self) -> Option<u32> {
        let rank = |entry: &&Entry| {
            let Priority { urgency, incremental } = entry.priority;
            (urgency, incremental, if incremental { entry.turn } else { 0 }, entry.stream)
        };
        self.entries.iter().filter(|entry| !entry.blocked).min_by_key(rank).map(|entry| entry.stream)
    }

    /// The response had its turn.
    pub fn served(&mut self, stream: u32) {
        self.turn += 1;
        let turn = self.turn;
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.stream == stream) {
            entry.turn = turn;
        }
    }

    /// The response cannot send in this round.
    pub fn block(&mut self, stream: u32) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.stream == stream) {
            entry.blocked = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(schedule: &mut Schedule, count: usize) -> Vec<u32> {
        (0..count)
            .map(|_| {
                let stream = schedule.next().unwrap();
                schedule.served(stream);
                stream
            })
            .collect()
    }

    #[test]
    fn a_header_is_read_as_chromium_writes_it() {
        let of = |urgency, incremental| Priority { urgency, incremental };
        assert_eq!(Priority::parse("u=0"), of(0, false));
        assert_eq!(Priority::parse("u=2, i"), of(2, true));
        assert_eq!(Priority::parse("i"), of(3, true));
        assert_eq!(Priority::parse("u=1,i=?0"), of(1, false));
        assert_eq!(Priority::parse("u=9, x=4, i=?1;q"), of(3, true));
        assert_eq!(Priority::parse(""), Priority::default());
    }

    #[test]
    fn urgent_before_idle_and_whole_ones_in_order_of_request() {
        let mut schedule = Schedule::default();
        schedule.add(1, Priority::parse("u=3"));
        schedule.add(3, Priority::parse("u=0"));
        schedule.add(5, Priority::parse("u=3"));
        assert_eq!(turns(&mut schedule, 2), [3, 3]);
        schedule.remove(3);
        assert_eq!(turns(&mut schedule, 2), [1, 1]);
        schedule.remove(1);
        assert_eq!(turns(&mut schedule, 1), [5]);
    }

    #[test]
    fn incremental_ones_take_turns_after_the_whole_ones_of_their_urgency() {
        let mut schedule = Schedule::default();
        for stream in [1, 3, 5] {
            schedule.add(stream, Priority::parse("u=2, i"));
        }
        assert_eq!(turns(&mut schedule, 5), [1, 3, 5, 1, 3]);
        schedule.add(7, Priority::parse("u=2"));
        assert_eq!(turns(&mut schedule, 2), [7, 7]);
        schedule.remove(7);
        assert_eq!(turns(&mut schedule, 2), [5, 1]);
    }

    #[test]
    fn a_blocked_one_lets_the_next_pass_for_one_round() {
        let mut schedule = Schedule::default();
        schedule.add(1, Priority::parse("u=0"));
        schedule.add(3, Priority::default());
        schedule.block(1);
        assert_eq!(schedule.next(), Some(3));
        schedule.block(3);
        assert_eq!(schedule.next(), None);
        schedule.unblock();
        assert_eq!(schedule.next(), Some(1));
    }

    #[test]
    fn a_response_can_be_moved_while_it_waits() {
        let mut schedule = Schedule::default();
        schedule.add(1, Priority::default());
        schedule.add(3, Priority::default());
        schedule.change(3, Change::parse("u=1"));
        schedule.change(99, Change::parse("u=0"));
        assert_eq!(schedule.next(), Some(3));
    }

    #[test]
    fn the_weights_of_chromium_are_its_urgencies() {
        let image = Priority::parse("i");
        for (urgency, weight) in [256, 220, 183, 147, 110, 74, 37, 1].into_iter().enumerate() {
            let moved = Change::from_weight(weight).apply(image);
            assert_eq!(moved, Priority { urgency: urgency as u8, incremental: true });
        }
    }
}
