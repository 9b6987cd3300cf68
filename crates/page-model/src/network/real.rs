//! Connections whose servers are real: their bytes come from outside, and they may end.

use super::{NetworkProcess, Progress, Stage};
use crate::heard::Heard;
use crate::server::Down;
use wirepaint_units::Time;

impl NetworkProcess {
    /// Notes what has arrived from a real server. Returns the bytes that have now arrived at the client.
    pub fn hear(&mut self, number: u32, heard: &[Heard]) -> u64 {
        let mut parts = Vec::with_capacity(heard.len());
        let mut bytes = 0;
        let down = &mut self.connections[number as usize].down;
        for part in heard {
            match *part {
                Heard::Handshake { bytes: all } => bytes += down.write_raw(Down::Flight, all),
                Heard::Head { request, bytes } => parts.push((Down::Head(request), bytes, 0)),
                Heard::Body { request, bytes, payload } => parts.push((Down::Body(request), bytes, payload)),
                Heard::End => {}
            }
            if let Heard::Head { request, bytes } | Heard::Body { request, bytes, .. } = *part {
                self.transfers[request as usize].encoded += bytes;
            }
        }
        bytes += down.write(&parts);
        if heard.contains(&Heard::End) {
            down.write_raw(Down::End, 0);
        }
        bytes
    }

    /// The client reads that a server has ended its connection.
    ///
    /// A request is sent again on another connection if the server has answered one on this and nothing of this
    /// one: servers close idle connections at any time (RFC 9110, 9.2.2, as browsers read it).
    pub(super) fn ended(&mut self, now: Time, at: usize) {
        if self.connections[at].stage == Stage::Closed {
            return;
        }
        self.connections[at].stage = Stage::Closed;
        self.rows[at].closed = Some(now);
        let group = self.connections[at].group;
        if self.groups[group].session == Some(at) {
            self.groups[group].session = None;
        }
        let unwritten = std::mem::take(&mut self.connections[at].outbox);
        let was_used = self.rows[at].last_byte.is_some();
        let mut again = Vec::new();
        for (request, transfer) in self.transfers.iter_mut().enumerate() {
            let request = request as u32;
            if transfer.connection != Some(at as u32) || transfer.stage != Progress::OnWire {
                continue;
            }
            if was_used && transfer.first_byte.is_none() {
                transfer.stage = Progress::Waiting;
                (transfer.connection, transfer.sent) = (None, None);
                self.rows[at].objects -= 1;
                again.push(request);
            } else {
                self.unanswered.push_back((request, at as u32));
            }
        }
        again.extend(unwritten);
        again.extend(std::mem::take(&mut self.groups[group].waiting));
        self.groups[group].waiting = again;
        self.dispatch(now, group);
        self.connect_as_needed(now, group);
    }
}
