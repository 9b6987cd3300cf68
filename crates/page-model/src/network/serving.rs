//! The servers: what they do with what the browser sent.

use super::{Event, Network, Stage, Up, Work};
use crate::machine::Thread;
use crate::priority::incremental;
use crate::server::{Down, Rank};
use crate::tls;
use crate::visit::Action;
use wirepaint_units::{Duration, Time};

impl Network {
    /// A server reads a piece of what the browser sent.
    pub(super) fn serve(&mut self, at: usize, meaning: Up) {
        let finished = self.handshake(at).server_finished();
        let connection = &mut self.connections[at];
        match meaning {
            Up::Hello => {
                self.work(Thread::Server, self.settings.compute.server_tls_ns, Work::Flight(at));
            }
            Up::Finished => {
                // Each is a write, and a segment, of its own: they take room in the first window.
                let overhead = tls::record_overhead(self.settings.tls);
                let settings = connection.http2.then_some((Down::Settings, tls::SERVER_SETTINGS + overhead));
                let finished = (finished > 0).then_some((Down::Control, finished));
                for (meaning, bytes) in finished.into_iter().chain(settings) {
                    connection.down.write_raw(meaning, bytes);
                    self.actions.push_back(Action::ServerWrite { connection: at as u32, bytes });
                }
            }
            Up::Control => {
                let bytes = connection.down.write(&[(Down::Control, tls::SETTINGS_ACK, 0)]);
                self.actions.push_back(Action::ServerWrite { connection: at as u32, bytes });
            }
            Up::Acknowledgement => {}
            Up::Raise(request, urgency) => connection.server.raise(request, urgency),
            Up::Request(request) => {
                self.work(Thread::Server, self.settings.compute.answer_ns, Work::Answer(at, request));
            }
        }
    }

    /// The server's part of the handshake.
    pub(super) fn flight(&mut self, at: usize) {
        let bytes = self.handshake(at).server_flight();
        self.connections[at].down.write_raw(Down::Flight, bytes);
        self.actions.push_back(Action::ServerWrite { connection: at as u32, bytes });
    }

    /// The server begins to think about the answer to a request.
    pub(super) fn answer(&mut self, now: Time, at: usize, request: u32) {
        let connection = &mut self.connections[at];
        let resource = &self.page.resources[request as usize];
        let transfer = &mut self.transfers[request as usize];
        let head = if connection.http2 {
            connection.compression.answer(&self.headers, request)
        } else {
            self.headers.answer_plain(request)
        };
        let body = transfer.left;
        let frames = if connection.http2 { body.div_ceil(16_375) * 9 } else { 0 };
        transfer.encoded = head + body + frames;
        let begins = now + resource.think_ns;
        let urgency = transfer.priority.urgency();
        let rank = Rank { urgency, incremental: incremental(resource.kind) };
        connection.server.ask(request, rank, begins, head, body);
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
            self.actions.push_back(Action::ServerWrite { connection: at as u32, bytes });
        }
        if connection.server.blocked {
            self.actions.push_back(Action::ServerWaits { connection: at as u32 });
        }
        if written > 0 {
            let work = Duration(self.settings.compute.serve_ns_per_kib.0 * written / 1024);
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
