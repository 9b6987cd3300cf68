//! Drop-tail.

use super::{Backlog, Configured, Discipline, Fates, Fifo, Queued};
use crate::packet::{Drop, Packet};
use crate::random::Stream;
use crate::refused::{ConfigError, at_least_one, refuse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use wirepaint_units::Time;

/// Limits of a drop-tail queue; without one nothing is dropped. The packet in transmission does not count, in any
/// discipline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Limit in packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Limit in wire bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl Limits {
    /// Refuses limits in which no packet fits; `key` is where they stand.
    pub(crate) fn check_at(&self, key: &str, full_frame: u32) -> Result<(), ConfigError> {
        at_least_one(&format!("{key}.packets"), self.packets.unwrap_or(u64::MAX))?;
        // If a full packet never fits, the link is down.
        match self.bytes {
            Some(bytes) if bytes < u64::from(full_frame) => {
                refuse(&format!("{key}.bytes"), bytes, format!("at least {full_frame}, a full frame"))
            }
            _ => Ok(()),
        }
    }
}

impl Configured for Limits {
    fn check(&self, full_frame: u32) -> Result<(), ConfigError> {
        self.check_at("queue", full_frame)
    }

    fn build<P: Packet + Debug + 'static>(&self, _full_frame: u64, _: Stream) -> Box<dyn Discipline<P>> {
        Box::new(DropTail::new(self.packets, self.bytes))
    }
}

/// First in, first out; an arrival that does not fit is dropped.
#[derive(Debug)]
pub(crate) struct DropTail<P> {
    packets: u64,
    bytes: u64,
    fifo: Fifo<P>,
}

impl<P> DropTail<P> {
    /// Limits; `None` is no limit.
    pub fn new(packets: Option<u64>, bytes: Option<u64>) -> DropTail<P> {
        DropTail {
            packets: packets.unwrap_or(u64::MAX),
            bytes: bytes.unwrap_or(u64::MAX),
            fifo: Fifo::default(),
        }
    }
}

impl<P: Packet + Debug> Discipline<P> for DropTail<P> {
    fn enqueue(&mut self, now: Time, packet: Queued<P>, fates: &mut Fates<P>) {
        let backlog = self.fifo.backlog();
        if backlog.packets < self.packets && backlog.bytes.saturating_add(packet.bytes) <= self.bytes {
            self.fifo.push(packet);
        } else {
            fates.drop(now, Drop::Queue, packet);
        }
    }

    fn dequeue(&mut self, _now: Time, _fates: &mut Fates<P>) -> Option<Queued<P>> {
        self.fifo.pop()
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ms, queued};
    use super::*;

    #[test]
    fn a_limit_in_bytes_drops_the_packet_that_would_exceed_it() {
        let mut queue = DropTail::new(None, Some(2 * 1514 + 1513));
        let mut fates = Fates::default();
        for number in 0..3 {
            queue.enqueue(ms(0), queued(number, 0, ms(0)), &mut fates);
        }
        assert_eq!(queue.backlog(), Backlog { packets: 2, bytes: 3028 });
        assert_eq!(fates.dropped[0].packet.number, 2);
        assert_eq!(fates.dropped[0].cause, Drop::Queue);
    }
}
