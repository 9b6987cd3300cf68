//! The servers: their handling of the browser's bytes.

use super::{Event, NetworkProcess, STREAM, Stage, Work};
use crate::action::{Action, Message};
use crate::machine::Thread;
use crate::server::Down;
use crate::tls;
use wirepaint_http_model::Priority;
use wirepaint_units::{Duration, Time};

impl NetworkProcess {
    /// A server reads a piece from the browser.
    pub(super) fn serve(&mut self, at: usize, message: Message) {
        let finished = self.handshake(at).server_finished();
        let connection = &mut self.connections[at];
        match message {
            Message::Hello => {
                self.work(Thread::Server, self.browser.compute.server_tls_ns, Work::Flight(at));
            }
            Message::Finished => {
                // Each has its own write and segment, and takes room in the first window.
                let overhead = tls::record_overhead(self.browser.tls);
                let settings = connection.protocol.server_settings();
                let settings = (settings > 0).then_some((Down::Settings, settings + overhead));
                let finished = (finished > 0).then_some((Down::Control, finished));
                for (meaning, bytes) in finished.into_iter().chain(settings) {
                    connection.down.write_raw(meaning, bytes);
                    self.actions.push_back(Action::ServerWrite {
                        connection: at as u32,
                        stream: STREAM,
                        bytes,
                    });
                }
            }
            Message::Settings => {
                let acknowledgement = connection.protocol.acknowledgement();
                let bytes = connection.down.write(&[(Down::Control, acknowledgement, 0)]);
                self.actions.push_back(Action::ServerWrite { connection: at as u32, stream: STREAM, bytes });
            }
            Message::Acknowledgement => {}
            Message::Raise(request, urgency) => {
                // Also for an answer that the server has not found yet.
                self.transfers[request as usize].urgency = urgency;
                let known = connection.server.raise(request, urgency);
                if known && self.ends_at_proxy(at).is_some() {
                    let priority = self.priority(request);
                    self.actions.push_back(Action::Ask { request, priority });
                }
            }
            Message::Request(request, urgency) => {
                self.transfers[request as usize].urgency = urgency;
                self.work(Thread::Server, self.browser.compute.answer_ns, Work::Answer(at, request));
            }
        }
    }

    /// The server sends its part of the handshake.
    pub(super) fn flight(&mut self, at: usize) {
        let bytes = self.handshake(at).server_flight();
        self.connections[at].down.write_raw(Down::Flight, bytes);
        self.actions.push_back(Action::ServerWrite { connection: at as u32, stream: STREAM, bytes });
    }

    /// The think time of an answer begins.
    pub(super) fn answer(&mut self, now: Time, at: usize, request: u32) {
        let connection = &mut self.connections[at];
        let resource = &self.page.resources[request as usize];
        let transfer = &mut self.transfers[request as usize];
        let head = connection.coding.answer(&self.heads, request);
        let body = transfer.left;
        transfer.encoded = head + body + connection.protocol.framing(body);
        let begins = now + resource.think_ns;
        let priority = self.priority(request);
        if let Some(more) = self.ends_at_proxy(at) {
            self.transfers[request as usize].encoded += more;
            self.connections[at].server.expect(request, priority, head + more, body);
            self.actions.push_back(Action::Ask { request, priority });
        } else {
            self.connections[at].server.ask(request, priority, begins, head, body);
        }
    }

    /// What a proxy that answers on a connection in the server's place adds to a head; `None` without one.
    fn ends_at_proxy(&self, at: usize) -> Option<u64> {
        if self.rows[at].encrypted { self.ends.encrypted } else { self.ends.plain }
    }

    /// What the browser said of a request.
    fn priority(&self, request: u32) -> Priority {
        let kind = self.page.resources[request as usize].kind;
        let incremental = self.browser.priorities.incremental.contains(&kind);
        Priority { urgency: self.transfers[request as usize].urgency, incremental }
    }

    /// The proxy that ends a request's connection has `bytes` more of the answer's body.
    pub fn supplied(&mut self, now: Time, request: u32, bytes: u64) {
        let Some(at) = self.transfers[request as usize].connection else { return };
        self.connections[at as usize].server.supply(now, request, bytes);
        self.server_writes(now, at as usize);
    }

    /// Lets a server write as much as it can, and sets its alarm.
    pub(super) fn server_writes(&mut self, now: Time, at: usize) {
        let connection = &mut self.connections[at];
        if connection.stage == Stage::Closed {
            return;
        }
        let mut written = 0;
        loop {
            let bytes = connection.server.write(now, &mut connection.down);
            if bytes == 0 {
                break;
            }
            written += bytes;
            self.actions.push_back(Action::ServerWrite { connection: at as u32, stream: STREAM, bytes });
        }
        if connection.server.blocked {
            self.actions.push_back(Action::ServerWaits { connection: at as u32 });
        }
        if written > 0 {
            let work = Duration(self.browser.compute.serve_ns_per_kib.0 * written / 1024);
            self.works.push_back((Thread::Server, work, None));
        }
        if let Some(next) = connection.server.next_timeout().filter(|&next| next > now)
            && connection.alarm.is_none_or(|alarm| next < alarm)
        {
            connection.alarm = Some(next);
            self.agenda.at(next, Event::Server(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::chromium;
    use crate::headers::heads;
    use crate::noise::Noise;
    use crate::page::Page;
    use crate::priority::Priority;
    use std::sync::Arc;

    const THINK: Time = Time(1_000_000_000);

    /// Carries bytes and does work in no time, until none is left. If `writes` is given, requests are kept
    /// back.
    fn carry(network: &mut NetworkProcess, now: Time, mut writes: Option<&mut Vec<u64>>) {
        loop {
            if let Some(action) = network.actions.pop_front() {
                match (action, &mut writes) {
                    (Action::Connect { connection, .. }, _) => network.connected(now, connection),
                    (Action::ClientWrite { bytes, .. }, Some(writes)) => writes.push(bytes),
                    (Action::ClientWrite { bytes, .. }, None) => network.server_received(now, 0, bytes),
                    (Action::ServerWrite { bytes, .. }, _) => network.client_received(now, 0, bytes),
                    _ => {}
                }
            } else if let Some((_, _, work)) = network.works.pop_front() {
                work.into_iter().for_each(|work| network.worked(now, work));
            } else {
                return;
            }
        }
    }

    /// Two images are requested together, then the second is raised. Returns the first bodies that the server
    /// sends when `arrived` of the three frames have arrived.
    fn begun(arrived: usize) -> Vec<u32> {
        let resource = |kind: &str, bytes: u64, cause| {
            serde_json::json!({"url": "https://a.test/", "origin": 0, "status": 200, "type": kind, "cause": cause,
                               "wire_bytes": bytes, "decoded_bytes": bytes, "think_ns": THINK})
        };
        let image = resource(
            "image",
            50_000,
            Some(serde_json::json!({"kind": "markup", "by": 0, "at": 0, "element": "image"})),
        );
        let origin =
            serde_json::json!({"host": "a.test", "address": "10.65.0.1", "port": 443, "encrypted": true});
        let page =
            serde_json::json!({"origins": [origin], "resources": [resource("html", 0, None), image, image]});
        let page: Arc<Page> = Arc::new(serde_json::from_value(page).unwrap());
        let heads = Arc::new(heads(&page));
        let mut network = NetworkProcess::new(page, heads, Arc::new(chromium()), Noise::new(1, 1, 0));
        network.ask(Time(0), 0, Priority::VeryHigh);
        carry(&mut network, Time(0), None);
        let mut writes = Vec::new();
        network.ask(Time(0), 1, Priority::Low);
        network.ask(Time(0), 2, Priority::Low);
        carry(&mut network, Time(0), Some(&mut writes));
        network.raise(Time(0), 2, Priority::High);
        carry(&mut network, Time(0), Some(&mut writes));
        assert_eq!(writes.len(), 3);
        writes.iter().take(arrived).for_each(|bytes| network.server_received(Time(0), 0, *bytes));
        carry(&mut network, Time(0), None);
        network.timeout(THINK);
        carry(&mut network, THINK, None);
        network.chunks.iter().filter(|chunk| chunk.bytes > 10_000).map(|chunk| chunk.request).collect()
    }

    #[test]
    fn the_server_learns_of_a_raised_priority_when_the_frame_arrives() {
        assert_eq!(begun(2), [1, 2]);
    }

    #[test]
    fn a_raise_that_arrives_before_the_answer_is_found_counts() {
        assert_eq!(begun(3), [2]);
    }
}
