//! Connections of the browser: opening, becoming ready, giving up.

use super::{Chain, Connection, Event, Group, Message, NetworkProcess, Stage};
use crate::action::Action;
use crate::pipe::Pipe;
use crate::rows::ConnectionRow;
use crate::server::Server;
use crate::tls;
use wirepaint_http_model::HttpVersion;
use wirepaint_units::{Duration, Time};

impl NetworkProcess {
    pub(super) fn connect_as_needed(&mut self, now: Time, group: usize) {
        loop {
            let Group { waiting, look_ups, connections, session, .. } = &self.groups[group];
            let of = |stages: &[Stage]| {
                connections.iter().filter(|&&at| stages.contains(&self.connections[at].stage)).count()
            };
            let coming = look_ups + of(&[Stage::Connecting, Stage::Securing]);
            let open = coming + of(&[Stage::Ready]);
            let most = usize::from(self.browser.connections_per_origin);
            if session.is_some() || waiting.len() <= coming || open >= most {
                return;
            }
            if open == 0 {
                self.agenda
                    .at(now + self.browser.dns_ns + self.browser.backup_connect_ns, Event::Backup(group));
            }
            self.connect(now, group);
        }
    }

    pub(super) fn backup(&mut self, now: Time, group: usize) {
        let Group { waiting, look_ups, connections, .. } = &self.groups[group];
        let stage = |at: usize| self.connections[at].stage;
        let coming = |stage| matches!(stage, Stage::Connecting | Stage::Securing);
        let first = connections.iter().copied().find(|&at| coming(stage(at)));
        let most = usize::from(self.browser.connections_per_origin);
        let open = look_ups + connections.iter().filter(|&&at| stage(at) != Stage::Closed).count();
        match first {
            None => {}
            Some(_) if waiting.is_empty() => {}
            Some(at) if stage(at) == Stage::Securing || open >= most => {
                self.agenda.at(now + self.browser.backup_connect_ns, Event::Backup(group));
            }
            Some(_) => self.connect(now, group),
        }
    }

    pub(super) fn connect(&mut self, now: Time, group: usize) {
        if self.browser.dns_ns == Duration::ZERO {
            self.open(now, group);
        } else {
            self.groups[group].look_ups += 1;
            self.agenda.at(now + self.browser.dns_ns, Event::Resolved(group));
        }
    }

    /// A DNS look-up has ended.
    pub(super) fn resolved(&mut self, now: Time, group: usize) {
        let Group { look_ups, given_up, .. } = &mut self.groups[group];
        if *given_up > 0 {
            *given_up -= 1;
        } else {
            *look_ups -= 1;
            self.open(now, group);
        }
    }

    fn open(&mut self, now: Time, group: usize) {
        let at = self.connections.len();
        let origin = self.groups[group].origin;
        let encrypted = self.page.origins[origin as usize].encrypted;
        let version = if encrypted { self.browser.http } else { HttpVersion::H1 };
        let protocol = version.protocol();
        let heads = self.browser.heads;
        let heads = if encrypted { heads } else { heads.in_clear() };
        let overhead = tls::record_overhead(self.browser.tls);
        let record = |most| encrypted.then_some((most, overhead));
        self.connections.push(Connection {
            group,
            stage: Stage::Connecting,
            resumed: false,
            protocol,
            up: Pipe::new(record(16_384)),
            down: Pipe::new(record(self.browser.record_bytes)),
            server: Server::new(protocol),
            alarm: None,
            coding: protocol.coding(&self.heads, heads),
            opened_session: false,
            outbox: Vec::new(),
            chain: Chain::default(),
            busy: 0,
            used: Time::ZERO,
        });
        self.rows.push(ConnectionRow::new(at as u32, origin, encrypted, version, now));
        self.groups[group].connections.push(at);
        self.actions.push_back(Action::Connect { connection: at as u32, origin });
    }

    pub(super) fn hello(&mut self, at: usize) {
        if self.connections[at].stage != Stage::Securing {
            return;
        }
        let group = &self.groups[self.connections[at].group];
        let resumed = group.ticket && self.browser.resume;
        self.connections[at].resumed = resumed;
        let padding = self.noise.below(4);
        let bytes = self.handshake(at).client_hello(padding);
        self.client_raw(at, Message::Hello, bytes);
    }

    pub(super) fn handshake(&self, at: usize) -> tls::Handshake<'_> {
        tls::Handshake {
            version: self.browser.tls,
            http: self.browser.http,
            host: &self.page.origins[self.rows[at].origin as usize].host,
            resumed: self.connections[at].resumed,
            hello: &self.browser.hello,
        }
    }

    /// The connection can accept requests.
    pub(super) fn ready(&mut self, now: Time, at: usize) {
        self.connections[at].stage = Stage::Ready;
        let group = self.connections[at].group;
        if self.connections[at].protocol.is_multiplexed() {
            self.schedules[self.groups[group].origin as usize] = true;
            if self.groups[group].session.is_none() {
                self.groups[group].session = Some(at);
                // Gives up the connects of the other requests, the oldest first.
                let spare = self.groups[group].waiting.len().saturating_sub(1);
                let coming: Vec<usize> = self.groups[group].connections.clone();
                let coming = coming
                    .into_iter()
                    .filter(|&other| !matches!(self.connections[other].stage, Stage::Ready | Stage::Closed));
                let coming: Vec<usize> = coming.take(spare).collect();
                let Group { look_ups, given_up, .. } = &mut self.groups[group];
                let unopened = (spare - coming.len()).min(*look_ups);
                *look_ups -= unopened;
                *given_up += unopened;
                for other in coming {
                    self.close(now, other);
                }
            }
        }
        self.dispatch(now, group);
    }

    pub(super) fn close(&mut self, now: Time, at: usize) {
        self.connections[at].stage = Stage::Closed;
        self.rows[at].closed = Some(now);
        self.actions.push_back(Action::Close { connection: at as u32 });
    }
}
