//! One visit of one page: a browser and its servers above byte streams that the caller carries.
//!
//! Time is passed in. After every call, call [`Visit::poll`] until it returns `None`, then [`Visit::timeout`]
//! at [`Visit::next_timeout`]. Calling `timeout` early is harmless. Contents are never carried, only lengths:
//! both sides of a connection live here and know the meaning of the bytes. The bytes of an [`Action`] must
//! arrive at the other side in order, each exactly once.

use crate::action::Action;
use crate::agenda::Agenda;
use crate::browser::{Browser, Compute};
use crate::headers::heads;
use crate::heard::Heard;
use crate::links::Links;
use crate::machine::{Machine, Thread};
use crate::network::{EndsAtProxy, NetworkProcess, Note, STREAM, Work};
use crate::noise::Noise;
use crate::page::{Cause, Kind, Page, Resource};
use crate::priority::Priority;
use crate::renderer::{Renderer, Wish};
use crate::rows::{ObjectRow, Rows};
use crate::server::Backlog;
use std::sync::Arc;
use wirepaint_http_model::{Heads, HttpVersion, RequestHeads};
use wirepaint_units::{Duration, Time};

/// Messages between the browser's processes.
#[derive(Clone, Copy, Debug)]
enum Event {
    Ask(u32, Priority),
    Raise(u32, Priority),
    Told(Note),
}

/// The effect of a thread's work.
#[derive(Clone, Copy, Debug)]
enum Job {
    /// The main thread's task has ended.
    Ran,
    /// The network process has prepared a request.
    Ask(u32, Priority),
    /// The network process has taken note of a new priority.
    Raise(u32, Priority),
    /// The network process reads a connection.
    Read(u32),
    /// The network process has passed something on.
    Tell(Note),
    Network(Work),
}

/// Least work of other threads that becomes a job.
const PIECE: Duration = Duration::from_micros(500);

/// State of a page that all of its visits share; compute it once.
#[derive(Clone, Debug)]
pub struct Prepared {
    page: Arc<Page>,
    heads: Arc<Heads>,
    links: Arc<Links>,
}

impl Prepared {
    /// Prepares a page that [`Page::check`] accepts.
    pub fn new(page: Page) -> Prepared {
        let (heads, links) = (Arc::new(heads(&page)), Arc::new(Links::new(&page)));
        Prepared { page: Arc::new(page), heads, links }
    }

    /// The page.
    pub fn page(&self) -> &Page {
        &self.page
    }

    /// Bytes of a request in HTTP/1.1, with its body; `client` are the fields that its browser adds.
    pub fn plain_request(&self, resource: u32, client: RequestHeads) -> u64 {
        let asked = &self.page.resources[resource as usize];
        let encrypted = self.page.origins[asked.origin as usize].encrypted;
        let client = if encrypted { client } else { client.in_clear() };
        let mut coding = HttpVersion::H1.protocol().coding(&self.heads, client);
        coding.request(&self.heads, resource) + asked.post_bytes
    }

    /// Bytes of the head of an answer in HTTP/1.1.
    pub fn plain_head(&self, resource: u32) -> u64 {
        let mut coding = HttpVersion::H1.protocol().coding(&self.heads, RequestHeads::default());
        coding.answer(&self.heads, resource)
    }
}

/// A visit.
#[derive(Debug)]
pub struct Visit {
    page: Arc<Page>,
    browser: Arc<Browser>,
    network: NetworkProcess,
    renderer: Renderer,
    agenda: Agenda<Event>,
    machine: Machine<Job>,
    /// Bytes per connection that arrived while the network process was busy.
    unread: Vec<u64>,
    /// Work of reading, not yet given to the network process.
    reading: Duration,
    /// Work of other threads, not yet given to them.
    beside: Duration,
    noise: Noise,
    /// A script or stylesheet was requested.
    code: bool,
    done: bool,
}

impl Visit {
    /// A visit that has not begun, with numbers that [`Browser::check`] accepts. The same seed, page,
    /// browser and arrivals give the same visit.
    pub fn new(prepared: &Prepared, mut browser: Browser, seed: u64) -> Visit {
        let Prepared { page, heads, links } = prepared.clone();
        if let Some(processor) = page.processor_ns {
            browser.compute = browser.compute.on(processor);
        }
        let browser = Arc::new(browser);
        let noise = |stream| Noise::new(seed, stream, browser.compute_noise_percent);
        Visit {
            network: NetworkProcess::new(page.clone(), heads, browser.clone(), noise(1)),
            renderer: Renderer::new(page.clone(), links, browser.clone(), noise(2)),
            noise: noise(3),
            page,
            machine: Machine::new(browser.compute.cores, browser.compute.aside_threads),
            browser,
            agenda: Agenda::default(),
            unread: Vec::new(),
            reading: Duration::ZERO,
            beside: Duration::ZERO,
            code: false,
            done: false,
        }
    }

    /// Connections end at a proxy that answers in the servers' place. Call it before [`Visit::start`].
    pub fn end_at_proxy(&mut self, ends: EndsAtProxy) {
        self.network.end_at_proxy(ends);
    }

    /// The proxy has the head of the answer to a request of [`Action::Ask`], and `bytes` more of its body.
    pub fn supplied(&mut self, now: Time, request: u32, bytes: u64) {
        self.network.supplied(now, request, bytes);
        self.exchange(now);
    }

    /// Navigation start.
    pub fn start(&mut self, now: Time) {
        self.aside(now, self.browser.compute.aside_visit_ns);
        self.renderer.start(now);
        self.exchange(now);
    }

    /// The client's side of a connection is established.
    pub fn connected(&mut self, now: Time, connection: u32) {
        self.aside(now, self.browser.compute.aside_connection_ns);
        self.network.connected(now, connection);
        self.exchange(now);
    }

    /// `bytes` more have arrived in order at the client.
    pub fn client_received(&mut self, now: Time, connection: u32, bytes: u64) {
        let at = connection as usize;
        self.unread.resize(self.unread.len().max(at + 1), 0);
        let due = self.unread[at] > 0;
        self.unread[at] += bytes;
        if !due && bytes < self.browser.read_bytes && !self.machine.is_busy(Thread::Network) {
            // Too small for its own job; its cost is added to the next one.
            self.reading = self.reading + self.reading_of(bytes);
            self.read(now, connection);
            self.exchange(now);
        } else if !due {
            self.plan_read(now, connection);
        }
    }

    /// What a real server has sent has arrived at the client.
    pub(crate) fn heard(&mut self, now: Time, connection: u32, heard: &[Heard]) {
        let bytes = self.network.hear(connection, heard);
        self.client_received(now, connection, bytes);
    }

    /// The next request, with its connection, that a real server left without an answer.
    pub(crate) fn unanswered(&mut self) -> Option<(u32, u32)> {
        self.network.unanswered.pop_front()
    }

    /// `bytes` more have arrived in order at the server.
    pub fn server_received(&mut self, now: Time, connection: u32, bytes: u64) {
        self.network.server_received(now, connection, bytes);
        self.exchange(now);
    }

    /// The state of the server's send buffer has changed. Call when it took bytes and when an ACK arrived.
    pub fn server_acknowledged(&mut self, now: Time, connection: u32, backlog: Backlog) {
        self.network.server_acknowledged(now, connection, backlog);
    }

    /// The next action for the caller.
    pub fn poll(&mut self) -> Option<Action> {
        self.network.actions.pop_front()
    }

    /// When to call [`Visit::timeout`].
    pub fn next_timeout(&self) -> Option<Time> {
        let Visit { network, renderer, machine, agenda, .. } = self;
        [network.next_timeout(), renderer.next_timeout(), machine.next(), agenda.next()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does what is due by `now`.
    pub fn timeout(&mut self, now: Time) {
        while let Some((_, job)) = self.machine.due(now) {
            match job {
                Job::Ran => self.renderer.ran(now),
                Job::Ask(request, priority) => {
                    self.aside(now, Duration(self.browser.compute.aside_request_ns.0 / 2));
                    self.network.ask(now, request, priority);
                }
                Job::Raise(request, priority) => self.network.raise(now, request, priority),
                Job::Read(connection) => {
                    self.read(now, connection);
                    if self.unread[connection as usize] > 0 {
                        self.plan_read(now, connection);
                    }
                }
                Job::Tell(note) => self.agenda.at(now + self.browser.compute.pass_ns, Event::Told(note)),
                Job::Network(work) => self.network.worked(now, work),
            }
            // The following work shares the cores from now on.
            self.exchange(now);
        }
        while let Some((_, event)) = self.agenda.due(now) {
            match event {
                Event::Ask(request, priority) => {
                    let code = matches!(self.page.resources[request as usize].kind, Kind::Js | Kind::Css);
                    let first = code && !std::mem::replace(&mut self.code, true);
                    let Compute { request_ns, first_code_ns, .. } = self.browser.compute;
                    let work =
                        self.noise.vary(request_ns + if first { first_code_ns } else { Duration::ZERO });
                    self.machine.give(now, Thread::Network, work, Some(Job::Ask(request, priority)));
                }
                Event::Raise(request, priority) => {
                    // Behind its request, which the network process may not have prepared yet.
                    let raise = Some(Job::Raise(request, priority));
                    self.machine.give(now, Thread::Network, Duration::ZERO, raise);
                }
                Event::Told(Note::Data(request, bytes)) => {
                    self.aside_of_bytes(now, self.parsing_of(request, bytes));
                    self.renderer.data(request, bytes);
                }
                Event::Told(Note::Done(request)) => {
                    self.aside(now, Duration(self.browser.compute.aside_request_ns.0 / 2));
                    let last_byte = self.network.transfers[request as usize].last_byte.unwrap_or(now);
                    self.renderer.arrived(now, request, last_byte);
                }
            }
        }
        self.network.timeout(now);
        self.renderer.timeout(now);
        self.exchange(now);
    }

    /// True when a connection carries many requests at once: the server then bounds its unsent bytes
    /// ([`crate::unsent_bound`]).
    pub fn is_multiplexed(&self, connection: u32) -> bool {
        self.network.is_multiplexed(connection)
    }

    /// When the load event fired.
    pub fn load_event(&self) -> Option<Time> {
        self.renderer.load_event()
    }

    /// True once the page is loaded and every request answered.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The rows so far.
    pub fn rows(&self) -> Rows {
        let mut objects: Vec<ObjectRow> = self
            .renderer
            .requests()
            .map(|(resource, discovered, priority)| {
                let transfer = &self.network.transfers[resource as usize];
                let cause = self.page.resources[resource as usize].cause;
                ObjectRow {
                    resource,
                    in_viewport: self.renderer.is_visible(resource),
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

    /// Queues a job for the network process to read a connection.
    fn plan_read(&mut self, now: Time, connection: u32) {
        let work = self.reading_of(self.unread[connection as usize].min(self.browser.read_bytes));
        let reading = std::mem::take(&mut self.reading);
        let read = Some(Job::Read(connection));
        self.machine.give_behind(
            now,
            Thread::Network,
            reading + work,
            read,
            self.browser.messages_before_reading,
        );
    }

    fn reading_of(&self, bytes: u64) -> Duration {
        Duration(self.browser.compute.receive_ns_per_kib.0 * bytes / 1024)
    }

    /// The network process reads a connection.
    fn read(&mut self, now: Time, connection: u32) {
        let unread = &mut self.unread[connection as usize];
        let bytes = (*unread).min(self.browser.read_bytes);
        *unread -= bytes;
        self.aside_of_bytes(now, Duration(self.browser.compute.aside_ns_per_kib.0 * bytes / 1024));
        self.network.actions.push_back(Action::ClientRead { connection, stream: STREAM, bytes });
        self.network.client_received(now, connection, bytes);
    }

    /// Work of other threads on arrived bytes. It is little for each piece, so several pieces share a job.
    fn aside_of_bytes(&mut self, now: Time, work: Duration) {
        self.beside = self.beside + work;
        if self.beside >= PIECE {
            let work = std::mem::take(&mut self.beside);
            self.aside(now, work);
        }
    }

    /// Work that nothing waits for.
    fn aside(&mut self, now: Time, work: Duration) {
        let threads = self.browser.compute.aside_threads;
        for number in 0..threads {
            let share = Duration(work.0 / u64::from(threads));
            self.machine.give(now, Thread::Aside(number), share, None);
        }
    }

    /// Work of threads other than the main thread on `bytes` more of a script.
    fn parsing_of(&self, request: u32, bytes: u64) -> Duration {
        let Resource { kind, decoded_bytes, wire_bytes, .. } = &self.page.resources[request as usize];
        if *kind != Kind::Js {
            return Duration::ZERO;
        }
        let whole =
            u128::from(self.browser.compute.aside_js_ns_per_kib.0) * u128::from(*decoded_bytes) / 1024;
        Duration((whole * u128::from(bytes) / u128::from((*wire_bytes).max(1))) as u64)
    }

    /// Passes messages between the processes.
    fn exchange(&mut self, now: Time) {
        while let Some(note) = self.network.notes.pop_front() {
            match note {
                Note::Data(..) => self.agenda.at(now + self.browser.compute.pass_ns, Event::Told(note)),
                Note::Done(_) => {
                    let work = self.noise.vary(self.browser.compute.respond_ns);
                    let reading = std::mem::take(&mut self.reading);
                    self.machine.give(now, Thread::Network, reading + work, Some(Job::Tell(note)));
                }
            }
        }
        while let Some((thread, time, work)) = self.network.works.pop_front() {
            let job = work.map(Job::Network);
            match thread {
                Thread::Network => {
                    self.machine.give_behind(now, thread, time, job, self.browser.messages_before_reading)
                }
                _ => self.machine.give(now, thread, time, job),
            }
        }
        if let Some(time) = self.renderer.job.take() {
            self.machine.give(now, Thread::Main, time, Some(Job::Ran));
        }
        let compute = &self.browser.compute;
        while let Some(wish) = self.renderer.wishes.pop_front() {
            match wish {
                Wish::Ask(request, priority) => {
                    let first = request == 0;
                    let pass = if first { compute.launch_ns } else { compute.pass_ns };
                    self.agenda.at(now + pass, Event::Ask(request, priority));
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
