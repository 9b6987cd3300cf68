//! One visit of one page: a browser and its servers above byte streams that the caller carries.
//!
//! Time is passed in. After every call, [`Visit::poll`] until it answers `None`, then call
//! [`Visit::timeout`] at [`Visit::next_timeout`]. Calling `timeout` early is harmless. Contents are
//! never carried, only lengths: what bytes mean is known on both sides of a connection because both
//! live here. The bytes of an [`Action`] must arrive at the other side in order, each exactly once.

use crate::agenda::Agenda;
use crate::headers::Headers;
use crate::links::Links;
use crate::network::{Network, Note};
use crate::noise::Noise;
use crate::page::{Cause, Page};
use crate::priority::Priority;
use crate::renderer::{Renderer, Wish};
use crate::rows::{Object, Rows};
use crate::server::Backlog;
use crate::settings::Settings;
use std::sync::Arc;
use wirepaint_units::{Duration, Time};

/// What the caller has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Open a connection to an origin of the page; answer by [`Visit::connected`].
    Connect {
        /// Number of the new connection; they are given from 0 on.
        connection: u32,
        /// Position of the origin.
        origin: u32,
    },
    /// The client writes.
    ClientWrite {
        /// Which connection.
        connection: u32,
        /// How many bytes.
        bytes: u64,
    },
    /// The server writes.
    ServerWrite {
        /// Which connection.
        connection: u32,
        /// How many bytes.
        bytes: u64,
    },
    /// The client closes; nothing more is wanted of the connection.
    Close {
        /// Which connection.
        connection: u32,
    },
    /// The page is loaded and every request answered.
    Done,
}

/// What passes between the browser's processes.
#[derive(Clone, Copy, Debug)]
enum Event {
    Ask(u32, Priority),
    Raise(u32, Priority),
    Told(Note),
}

/// What of a page is the same for each of its visits: compute it once.
#[derive(Clone, Debug)]
pub struct Prepared {
    page: Arc<Page>,
    headers: Arc<Headers>,
    links: Arc<Links>,
}

impl Prepared {
    /// Prepares a page that [`Page::check`] accepts.
    pub fn new(page: Page) -> Prepared {
        let (headers, links) = (Arc::new(Headers::new(&page)), Arc::new(Links::new(&page)));
        Prepared { page: Arc::new(page), headers, links }
    }

    /// The page.
    pub fn page(&self) -> &Page {
        &self.page
    }
}

/// A visit.
#[derive(Debug)]
pub struct Visit {
    page: Arc<Page>,
    settings: Settings,
    network: Network,
    renderer: Renderer,
    agenda: Agenda<Event>,
    /// The network process is busy until then.
    network_free: Time,
    noise: Noise,
    done: bool,
}

impl Visit {
    /// A visit that has not begun. The same seed, page, settings and arrivals give the same visit.
    pub fn new(prepared: &Prepared, settings: Settings, seed: u64) -> Visit {
        let Prepared { page, headers, links } = prepared.clone();
        let noise = |stream| Noise::new(seed, stream, settings.compute_noise_percent);
        Visit {
            network: Network::new(page.clone(), headers, settings.clone(), noise(1)),
            renderer: Renderer::new(page.clone(), links, settings.compute.clone(), noise(2)),
            noise: noise(3),
            page,
            settings,
            agenda: Agenda::default(),
            network_free: Time::ZERO,
            done: false,
        }
    }

    /// Navigation start.
    pub fn start(&mut self, now: Time) {
        self.renderer.start(now);
        self.exchange(now);
    }

    /// The client's side of a connection is established.
    pub fn connected(&mut self, now: Time, connection: u32) {
        self.network.connected(now, connection);
        self.exchange(now);
    }

    /// `bytes` more have arrived in order at the client.
    pub fn client_received(&mut self, now: Time, connection: u32, bytes: u64) {
        let work = Duration(self.settings.compute.receive_ns_per_kib.0 * bytes / 1024);
        self.network_free = self.network_free.max(now) + work;
        self.network.client_received(now, connection, bytes);
        self.exchange(now);
    }

    /// `bytes` more have arrived in order at the server.
    pub fn server_received(&mut self, now: Time, connection: u32, bytes: u64) {
        self.network.server_received(now, connection, bytes);
        self.exchange(now);
    }

    /// What the kernel holds at the server has changed: tell when an ACK has come.
    pub fn server_acknowledged(&mut self, now: Time, connection: u32, backlog: Backlog) {
        self.network.server_acknowledged(now, connection, backlog);
    }

    /// What the caller has to do next.
    pub fn poll(&mut self) -> Option<Action> {
        self.network.actions.pop_front()
    }

    /// When [`Visit::timeout`] has something to do.
    pub fn next_timeout(&self) -> Option<Time> {
        [self.network.next_timeout(), self.renderer.next_timeout(), self.agenda.next()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does what is due by `now`.
    pub fn timeout(&mut self, now: Time) {
        while let Some((_, event)) = self.agenda.due(now) {
            match event {
                Event::Ask(request, priority) => self.network.ask(now, request, priority),
                Event::Raise(request, priority) => self.network.raise(now, request, priority),
                Event::Told(Note::Data(request, bytes)) => self.renderer.data(now, request, bytes),
                Event::Told(Note::Done(request)) => {
                    let last_byte = self.network.transfers[request as usize].last_byte.unwrap_or(now);
                    self.renderer.arrived(now, request, last_byte);
                }
            }
        }
        self.network.timeout(now);
        self.renderer.timeout(now);
        self.exchange(now);
    }

    /// True once the page is loaded and every request answered.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// What was seen so far.
    pub fn rows(&self) -> Rows {
        let mut objects: Vec<Object> = self
            .renderer
            .requests()
            .map(|(resource, discovered, priority)| {
                let transfer = &self.network.transfers[resource as usize];
                let cause = self.page.resources[resource as usize].cause;
                Object {
                    resource,
                    priority,
                    initiator_type: match cause {
                        None => "other",
                        Some(Cause::Redirect { .. }) => "redirect",
                        Some(Cause::Script { .. }) => "script",
                        Some(_) => "parser",
                    },
                    initiator: cause.map(Cause::by),
                    connection: transfer.connection,
                    first_on_connection: transfer.first,
                    discovered,
                    queued: transfer.queued,
                    sent: transfer.sent,
                    first_byte: transfer.first_byte,
                    last_byte: transfer.last_byte,
                    encoded_bytes: transfer.encoded,
                }
            })
            .collect();
        objects.sort_by_key(|object| (object.discovered, object.resource));
        Rows {
            page: self.renderer.milestones(&objects),
            objects,
            chunks: self.network.chunks.clone(),
            connections: self.network.rows.clone(),
        }
    }

    /// Passes what the processes have to tell each other.
    fn exchange(&mut self, now: Time) {
        let compute = &self.settings.compute;
        while let Some(note) = self.network.notes.pop_front() {
            self.agenda.at(self.network_free.max(now) + compute.pass_ns, Event::Told(note));
        }
        while let Some(wish) = self.renderer.wishes.pop_front() {
            match wish {
                Wish::Ask(request, priority) => {
                    let first = request == 0;
                    let pass = if first { compute.launch_ns } else { compute.pass_ns };
                    let work = self.noise.vary(compute.request_ns);
                    self.network_free = self.network_free.max(now + pass) + work;
                    self.agenda.at(self.network_free, Event::Ask(request, priority));
                }
                Wish::Raise(request, priority) => {
                    self.agenda.at(now + compute.pass_ns, Event::Raise(request, priority));
                }
                Wish::Done => {
                    self.done = true;
                    self.network.actions.push_back(Action::Done);
                }
            }
        }
    }
}
