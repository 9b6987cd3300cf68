//! The page's process: documents, scripts, stylesheets, layout, and the time of each request.
//!
//! A model of Blink's loading. One main thread does one task after another:
//!
//! - The preload scanner sees all text that has arrived, even while the parser waits, and requests what the
//!   elements name. It does not see frames, stylesheets whose media query does not hold, nor what scripts
//!   and stylesheets name.
//! - The parser stops at a script until that has run. A script runs once the stylesheets before it have
//!   arrived. Asynchronous scripts run when they arrive, deferred ones after the parser's end, before
//!   DOMContentLoaded.
//! - Until the body begins, requests below high priority wait while others are under way ([`Document::admit`]).
//! - Style and layout wait for the body and all stylesheets met so far. They cost time for each element that
//!   is new or that a new stylesheet affects. Style requests images of style rules. It discovers fonts, whose
//!   requests leave after the layout. Layout raises images in the view port; the first paint follows.
//! - The load event waits for every resource, unless the page says otherwise ([`Holds`]): for fetches of
//!   scripts until they are requested, for all others until they have arrived.
//!
//! - DEVIATION: the only geometry is lines of inline boxes ([`paints`]); for other images the page states
//!   their visible part. Lazy images are requested when the parser meets them.
//! - DEVIATION: frames of other sites have no process of their own; their work shares the main thread.
//! - DEVIATION: the cost of scripts depends on their size or is stated by the page; their effects are not
//!   known.

use crate::agenda::Agenda;
use crate::browser::{Browser, Compute};
use crate::document::{Block, Document, Item};
use crate::links::Links;
use crate::noise::Noise;
use crate::page::{Cause, Element, Holds, Kind, Page, Resource};
use crate::priority::Priority;
use std::collections::VecDeque;
use std::sync::Arc;
use wirepaint_units::{Duration, Time};

mod layout;
mod modules;
mod paints;
mod requests;
mod scripts;

/// A request of the page to the network process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// A request.
    Ask(u32, Priority),
    /// Raises a request's priority.
    Raise(u32, Priority),
    /// The page is loaded and every request answered.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// Passes a wish to the network process.
    Tell(Wish),
    /// The page's process commits a document.
    Commit(usize),
    /// The preload scanner handles text that has arrived.
    Chunk(usize),
    /// The parser handles it.
    Parse(usize),
    /// A resource other than a document or script has arrived.
    Finish(u32),
    /// A script runs.
    Run(u32),
    /// A script's timer, or the end of a fetch, requests a resource.
    Make(u32),
    /// Computes the elements' styles.
    Style(usize),
    /// Lays them out and paints them.
    Layout(usize),
    /// A document's inline script runs.
    Inline(usize, usize),
    /// Handlers of DOMContentLoaded.
    ContentLoaded(usize),
    Load,
}

/// Until when the load event waits for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    Finished,
    Discovered,
    Never,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// The document that requests it; `None` for the navigation.
    owner: Option<usize>,
    /// What the load event waits for.
    holds_load: Hold,
    discovered: Option<Time>,
    priority: Priority,
    /// A script's timer for it is set.
    planned: bool,
    /// Its effects that others wait for have happened.
    acted: bool,
    /// Priority with which it counts as under way.
    admitted: Option<Priority>,
    /// Time of its last byte.
    last_byte: Option<Time>,
    /// When it had its effect: a script has run, a stylesheet was applied, and so on.
    finished: Option<Time>,
}

impl State {
    fn holds(&self) -> bool {
        self.holds_load != Hold::Never
    }
}

/// Resources that must arrive before a resource is requested.
fn waits_for(by: Option<usize>, resource: &Resource) -> impl Iterator<Item = usize> {
    let all = is_scripted(resource) && !resource.after_first;
    let also = if all { &resource.also[..] } else { &[] };
    by.into_iter().chain(also.iter().map(|&also| also as usize))
}

/// The page's process of one visit.
#[derive(Debug)]
pub struct Renderer {
    page: Arc<Page>,
    links: Arc<Links>,
    browser: Arc<Browser>,
    noise: Noise,
    states: Vec<State>,
    documents: Vec<Document>,
    /// The document of a resource, when it is one.
    document_of: Vec<Option<usize>>,
    agenda: Agenda<Task>,
    tasks: VecDeque<Task>,
    /// Wishes not yet passed to the network process; they precede the other tasks.
    untold: VecDeque<Wish>,
    running: Option<Task>,
    /// Work of the task that has just begun, until the caller takes it; see [`Renderer::ran`].
    pub job: Option<Duration>,
    /// Resources that the load event waits for.
    awaited: usize,
    /// All resources that have not finished.
    unfinished: usize,
    /// Modules that only a script requested and whose imports have not all arrived.
    modules: Vec<u32>,
    /// Requests that follow the load event, with their delays.
    after_load: Vec<(u32, Duration)>,
    started: Time,
    loaded: Option<Time>,
    /// Wishes for the network process.
    pub wishes: VecDeque<Wish>,
}

impl Renderer {
    /// The state before the navigation.
    pub fn new(page: Arc<Page>, links: Arc<Links>, browser: Arc<Browser>, noise: Noise) -> Renderer {
        let count = page.resources.len();
        let mut documents = Vec::new();
        let mut document_of = vec![None; count];
        let mut states: Vec<State> = Vec::with_capacity(count);
        for (number, resource) in page.resources.iter().enumerate() {
            let number = number as u32;
            let by = resource.cause.map(|cause| cause.by() as usize);
            let owner = by.and_then(|by| document_of[by].or(states[by].owner));
            states.push(State {
                owner,
                holds_load: match resource.kind {
                    _ if links[number].root == 0 => Hold::Finished,
                    _ if matches!(resource.holds_load, Holds::Asked | Holds::Never) => Hold::Never,
                    _ if resource.after_load || waits_for(by, resource).any(|by| !states[by].holds()) => {
                        Hold::Never
                    }
                    Kind::Data => Hold::Discovered,
                    _ if resource.holds_load == Holds::Begun => Hold::Discovered,
                    Kind::Media | Kind::Other if is_scripted(resource) => Hold::Discovered,
                    _ => Hold::Finished,
                },
                discovered: None,
                priority: Priority::Low,
                planned: false,
                acted: false,
                admitted: None,
                last_byte: None,
                finished: None,
            });
            if resource.kind == Kind::Html && links[number].redirect.is_none() {
                document_of[number as usize] = Some(documents.len());
                documents.push(Document::new(&page, &links, number, browser.requests_before_body));
            }
        }
        Renderer {
            awaited: states.iter().filter(|state| state.holds_load != Hold::Never).count(),
            unfinished: count,
            page,
            links,
            browser,
            noise,
            states,
            documents,
            document_of,
            agenda: Agenda::default(),
            tasks: VecDeque::new(),
            untold: VecDeque::new(),
            running: None,
            job: None,
            modules: Vec::new(),
            after_load: Vec::new(),
            started: Time::ZERO,
            loaded: None,
            wishes: VecDeque::new(),
        }
    }

    /// Navigation start.
    pub fn start(&mut self, now: Time) {
        self.started = now;
        self.discover(now, 0);
    }

    /// `bytes` of a document's body have arrived.
    pub fn data(&mut self, resource: u32, bytes: u64) {
        let Some(number) = self.document_of[resource as usize] else { return };
        let this = &self.page.resources[resource as usize];
        let document = &mut self.documents[number];
        document.transferred += bytes;
        let all = u128::from(this.wire_bytes.max(1));
        let share = u128::from(this.decoded_bytes) * u128::from(document.transferred) / all;
        document.available = (share as u64).min(this.decoded_bytes);
        self.chunk(number);
    }

    /// A resource has arrived in full; `last_byte` is the time at the network process.
    pub fn arrived(&mut self, now: Time, resource: u32, last_byte: Time) {
        let at = resource as usize;
        self.states[at].last_byte = Some(last_byte);
        if let (Some(owner), Some(priority)) = (self.states[at].owner, self.states[at].admitted) {
            self.documents[owner].over(priority);
            self.release(owner);
        }
        if let Some(target) = self.links[resource].redirect {
            self.finished(now, resource);
            self.discover(now, target);
        } else if let Some(number) = self.document_of[at] {
            let document = &mut self.documents[number];
            document.complete = true;
            document.available = self.page.resources[at].decoded_bytes;
            self.chunk(number);
        } else if self.page.resources[at].kind == Kind::Js {
            self.script_came(now, resource);
        } else {
            self.queue(Task::Finish(resource));
        }
    }

    /// When the load event fired.
    pub fn load_event(&self) -> Option<Time> {
        self.loaded
    }

    /// When to call [`Renderer::timeout`].
    pub fn next_timeout(&self) -> Option<Time> {
        self.agenda.next()
    }

    /// Handles the tasks that are due.
    pub fn timeout(&mut self, now: Time) {
        while let Some((_, task)) = self.agenda.due(now) {
            self.queue(task);
        }
    }

    /// The main thread has done [`Renderer::job`].
    pub fn ran(&mut self, now: Time) {
        if let Some(task) = self.running.take() {
            self.perform(now, task);
        }
        self.next_task();
    }

    /// The page's requests: resource, time of discovery, priority.
    pub fn requests(&self) -> impl Iterator<Item = (u32, Time, Priority)> + '_ {
        let known =
            |(number, state): (usize, &State)| Some((number as u32, state.discovered?, state.priority));
        self.states.iter().enumerate().filter_map(known)
    }

    /// The page's own document.
    fn base(&self) -> Option<&Document> {
        self.document_of[self.links[0].tail as usize].map(|number| &self.documents[number])
    }

    // The main thread.

    fn tell(&mut self, wish: Wish) {
        self.untold.push_back(wish);
        self.next_task();
    }

    fn queue(&mut self, task: Task) {
        self.tasks.push_back(task);
        self.next_task();
    }

    fn next_task(&mut self) {
        if self.running.is_some() {
            return;
        }
        let untold = self.untold.pop_front().map(Task::Tell);
        if let Some(task) = untold.or_else(|| self.tasks.pop_front()) {
            self.running = Some(task);
            self.job = Some(self.noise.vary(self.cost(task)));
        }
    }

    fn cost(&self, task: Task) -> Duration {
        let Compute { finish_ns, js_ns, js_ns_per_kib, css_ns_per_kib, .. } = self.browser.compute;
        let finish = |resource: u32, once: Duration, per_kib: Duration| {
            let Resource { compute_ns, decoded_bytes, .. } = &self.page.resources[resource as usize];
            compute_ns.unwrap_or(finish_ns + once + Duration(per_kib.0 * decoded_bytes / 1024))
        };
        match task {
            Task::Tell(Wish::Ask(..)) => self.browser.compute.ask_ns,
            Task::Tell(_) => Duration::ZERO,
            Task::Commit(0) => self.browser.compute.commit_ns,
            Task::Commit(_) => self.browser.compute.frame_commit_ns,
            Task::Chunk(number) => {
                let Document { available, scanned_bytes, .. } = self.documents[number];
                Duration(self.browser.compute.html_ns_per_kib.0 * (available - scanned_bytes) / 1024)
            }
            Task::Parse(number) => {
                let document = &self.documents[number];
                let Document { scanned_bytes, charged_bytes, .. } = *document;
                let made = document.elements_before(scanned_bytes) - document.elements_before(charged_bytes);
                let measured = !document.inline_ns.is_empty();
                let driver = document.driver && !document.scripted && !measured;
                let driver = if driver { self.browser.compute.driver_ns.0 } else { 0 };
                Duration(self.browser.compute.html_ns_per_element.0 * made + driver)
            }
            Task::Run(resource) => {
                let all = self.unrun(resource).into_iter().map(|part| finish(part, js_ns, js_ns_per_kib).0);
                Duration(all.sum())
            }
            Task::Inline(number, script) => self.documents[number].inline_cost(script),
            Task::ContentLoaded(number) => self.documents[number].content_loaded_ns,
            Task::Finish(resource) => match self.page.resources[resource as usize].kind {
                Kind::Css => finish(resource, Duration::ZERO, css_ns_per_kib),
                _ => finish(resource, Duration::ZERO, Duration::ZERO),
            },
            Task::Make(_) => finish_ns,
            Task::Load => finish_ns + self.base().map_or(Duration::ZERO, |document| document.load_ns),
            Task::Style(number) => {
                let Document { laid_out, style_wait_ns, .. } = self.documents[number];
                let waits = if laid_out.is_none() { style_wait_ns } else { Duration::ZERO };
                self.style_cost(number) + waits
            }
            Task::Layout(number) => {
                let Document { names_fonts, laid_out, layout_wait_ns, .. } = self.documents[number];
                let usual = if names_fonts { self.browser.compute.fonts_ns } else { Duration::ZERO };
                let fonts = if laid_out.is_none() { layout_wait_ns.unwrap_or(usual) } else { Duration::ZERO };
                Duration(self.layout_cost(number).0.saturating_sub(self.style_cost(number).0)) + fonts
            }
        }
    }

    fn perform(&mut self, now: Time, task: Task) {
        match task {
            Task::Tell(wish) => self.wishes.push_back(wish),
            Task::Commit(number) => self.documents[number].committed = true,
            Task::Chunk(number) => {
                self.documents[number].chunk_queued = false;
                self.scan(now, number);
                self.tasks.push_front(Task::Parse(number));
            }
            Task::Parse(number) => {
                self.documents[number].charged_bytes = self.documents[number].scanned_bytes;
                self.parse(now, number);
                if self.documents[number].complete && self.documents[number].scripted {
                    self.effects(now, self.documents[number].resource);
                }
            }
            Task::Run(resource) => {
                for part in self.unrun(resource) {
                    self.finished(now, part);
                    self.effects(now, part);
                }
                let root = self.links[resource].root;
                if let Some(owner) = self.states[resource as usize].owner {
                    if self.documents[owner].block == Some(Block::Script(root)) {
                        self.documents[owner].block = None;
                        self.documents[owner].parsed += 1;
                    }
                    self.parse(now, owner);
                }
            }
            Task::Finish(resource) => {
                self.finished(now, resource);
                self.effects(now, resource);
                self.sheet_done(now, resource);
            }
            Task::Make(resource) => self.discover(now, resource),
            Task::Inline(number, _) => {
                self.documents[number].block = None;
                self.documents[number].parsed += 1;
                self.inline(now, number);
                self.parse(now, number);
            }
            Task::ContentLoaded(number) => {
                let resource = self.documents[number].resource;
                self.documents[number].content_loaded = Some(now);
                self.finished(now, resource);
                self.effects(now, resource);
                if number == 0 {
                    self.content_loaded(now);
                }
            }
            Task::Style(number) => self.style(now, number),
            Task::Layout(number) => self.lay_out(now, number),
            // A task in between may have requested more.
            Task::Load if self.awaited > 0 => {}
            Task::Load => {
                self.loaded = Some(now);
                for (resource, after) in std::mem::take(&mut self.after_load) {
                    self.agenda.at(now + after, Task::Make(resource));
                }
                self.check_done();
            }
        }
    }

    // Documents.

    /// Queues the parsing of a document's arrived text.
    fn chunk(&mut self, number: usize) {
        let document = &mut self.documents[number];
        if document.chunk_queued {
            return;
        }
        document.chunk_queued = true;
        if !document.committed {
            self.queue(Task::Commit(number));
        }
        self.queue(Task::Chunk(number));
    }

    /// The preload scanner.
    fn scan(&mut self, now: Time, number: usize) {
        self.documents[number].scanned_bytes = self.documents[number].available;
        while let Some(&(at, item)) = self.documents[number].items.get(self.documents[number].scanned) {
            if at > self.documents[number].available {
                return;
            }
            self.documents[number].scanned += 1;
            if let Item::Element(resource, element) = item
                && !matches!(element, Element::Frame | Element::Lazy)
                && !(element == Element::Other && self.page.resources[resource as usize].kind == Kind::Css)
            {
                self.discover(now, resource);
            }
        }
    }

    /// Runs the parser until it blocks.
    fn parse(&mut self, now: Time, number: usize) {
        loop {
            let document = &mut self.documents[number];
            if document.block == Some(Block::Sheets) && document.sheets == 0 {
                document.block = None;
            }
            if let Some(Block::Script(script)) = document.block {
                self.run_when_ready(now, number, script);
                return;
            }
            if document.block.is_some() || document.ended || !document.committed {
                break;
            }
            let Some(&(at, item)) = document.items.get(document.parsed) else {
                if document.complete {
                    self.end(now, number);
                }
                break;
            };
            if at > document.available {
                break;
            }
            match item {
                Item::Inline(_) if document.sheets > 0 => {
                    document.block = Some(Block::Sheets);
                    break;
                }
                Item::Element(script, Element::Script) => {
                    document.block = Some(Block::Script(script));
                    self.discover(now, script);
                    continue;
                }
                Item::Inline(script) if document.inline_cost(script) > Duration::ZERO => {
                    document.block = Some(Block::Inline);
                    self.queue(Task::Inline(number, script));
                    break;
                }
                Item::Inline(_) => self.inline(now, number),
                Item::Body => {
                    document.body = true;
                    self.release(number);
                    self.want_layout(number);
                }
                Item::Element(resource, element) => {
                    self.discover(now, resource);
                    let loaded = self.states[self.links[resource].tail as usize].finished.is_some();
                    let document = &mut self.documents[number];
                    match element {
                        Element::Stylesheet if !loaded => {
                            document.sheets += 1;
                        }
                        Element::DeferredScript => document.deferred.push(resource),
                        _ => {}
                    }
                }
            }
            self.documents[number].parsed += 1;
        }
        self.run_deferred(now, number);
    }

    /// The parser is at the end of the text.
    fn end(&mut self, now: Time, number: usize) {
        self.documents[number].ended = true;
        self.want_layout(number);
        if !self.documents[number].scripted {
            self.inline(now, number);
        }
    }

    /// Ends the waiting for a stylesheet.
    fn sheet_done(&mut self, now: Time, sheet: u32) {
        let Some(owner) = self.states[sheet as usize].owner else { return };
        let link = &self.links[sheet];
        let document = &mut self.documents[owner];
        let met = |(_, item): &(u64, Item)| *item == Item::Element(link.root, Element::Stylesheet);
        if !link.imported && link.element != Some(Element::Stylesheet) {
            return;
        }
        if link.imported || document.items[..document.parsed].iter().any(met) {
            document.sheets -= 1;
        }
        document.laid_elements = 0;
        self.want_layout(owner);
        self.parse(now, owner);
    }
}

fn is_scripted(resource: &Resource) -> bool {
    matches!(resource.cause, Some(Cause::Script { .. }))
}
