//! The split performance-enhancing proxy (HTTP-AE): a remote side near the users, a ground side near the servers.
//!
//! ```text
//! visit ─► remote ═ inner connections, opened before the visits ═ ground ─► Fetcher ─► servers
//!             answers from what came            Scheduler: who sends next
//! ```
//!
//! The remote side ends the browser's connections. A request goes to the ground side, which fetches the answer. When
//! it is the page's document, the ground side fetches what the page will ask for, too, and sends it ahead
//! ([`ahead`]). Frames of answers go over the inner connections in the order of the scheduler ([`line`]).
//!
//! What is sent ahead and not asked for takes at most a quarter of `buffer_bytes` at the remote side, one answer half of
//! that: the ground side sends no more until the browser asks for some of it. When a user turns to another page, both
//! sides forget what was not asked for. Sizes, limits and choices are those of the testbed's proxy (`crates/proxy`).
//!
//! - DEVIATION: the ground side begins to fetch ahead while such answers take less than that quarter at both sides
//!   together; the real one begins at once and reads no more.
//! - DEVIATION: the inner connections are opened at the time 0 of the run; a request that comes earlier than they
//!   are established waits.
//! - DEVIATION: the remote side hands an asked answer on as it comes, and counts it as gone.
//! - DEVIATION: credits of the remote side take their bytes and bound nothing: the ground side knows what the other holds.
//! - DEVIATION: a request's body crosses as it comes. The testbed's proxy has 64 KiB of it under way at most.
//! - DEVIATION: an origin has at most 32 connections. The testbed's proxy bounds what it fetches ahead so, and asks at
//!   once what browsers ask for.
//! - DEVIATION: what was fetched ahead serves the browser's request in any case. The testbed's proxy compares the fields
//!   of the two requests that it was chosen by.

mod ahead;
mod coding;
mod line;

use crate::app::App;
use crate::fabric::EndpointId;
use crate::fetch::{Came, Fetcher, Pool};
use crate::post::{Post, Request};
use crate::relay::Legs;
use crate::visited::Visited;
use crate::world::{AppId, ConnectionId, Dial, World};
use coding::Coded;
use line::{Line, Message};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use wirepaint_http_model::Priority;
use wirepaint_pep_model::{PepSchedule, Scheduler, Wanted};
use wirepaint_run::{Ahead, Compression, Pep as Settings};
use wirepaint_units::Time;

/// The ground side's connections to servers.
const POOL: Pool = Pool { idle: None, per_origin: 32, request_bytes: 0, head_read: 4 * 1024 };

/// Answers that nobody had asked the ground side of a PEP for when it began to send them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AheadSummary {
    /// How many have come in part at least.
    pub answers: usize,
    /// Their bytes between the sides.
    pub bytes: u64,
    /// How many of them no browser asked for by the end.
    pub unused_answers: usize,
    /// The bytes of these.
    pub unused_bytes: u64,
}

/// Both sides.
pub struct Pep {
    app: AppId,
    visits: Rc<BTreeMap<AppId, Visited>>,
    /// What it fetches ahead.
    fetches: Ahead,
    compression: Compression,
    buffer_bytes: u64,
    /// How the inner connections are opened, until they are.
    dials: Vec<Dial>,
    lines: Vec<Line>,
    scheduler: Scheduler,
    fetcher: Fetcher,
    /// By number; the scheduler knows them by it.
    answers: Vec<Answer>,
    numbers: BTreeMap<Request, u32>,
    /// Answers of which the ground side has more than the scheduler knows.
    backlog: BTreeSet<u32>,
    /// Bytes that the ground side has, or has sent, of answers that nobody asked for; those that the scheduler knows.
    unasked: u64,
    unasked_offered: u64,
    /// Bytes that the ground side has and has not sent of answers that a browser asked for.
    held: u64,
    /// Requests that are fetched ahead once there is room for them, each with the number of documents and style
    /// sheets before it.
    later: VecDeque<(Request, u32)>,
    /// How many requests and promises there were: they take the connections of their class by turns.
    requests: usize,
    promises: usize,
    /// Requests that the remote side has read: who asked.
    askers: BTreeMap<Request, Asker>,
    /// What browsers said of requests that the ground side has read.
    priorities: BTreeMap<Request, Priority>,
}

/// Who waits for an answer.
#[derive(Clone, Copy, Debug)]
struct Asker {
    app: AppId,
    /// Inner connection on which the remote side speaks of it.
    line: usize,
}

/// An answer on its way through both sides.
#[derive(Debug)]
struct Answer {
    request: Request,
    coded: Coded,
    /// Documents and style sheets before it; 0 for one that a browser asked for first.
    depth: u32,
    /// The scheduler knows it.
    scheduled: bool,
    /// Inner connection on which the ground side promised it, if it did.
    line: usize,
    /// Coded bytes that the ground side has, has told the scheduler of, and has sent.
    fetched: u64,
    offered: u64,
    sent: u64,
    /// The ground side knows that the browser wants it.
    wanted: bool,
    /// The user turned to another page before.
    gone: bool,
    /// The remote side knows that it comes ahead.
    promised: bool,
    /// Coded bytes that the remote side has in order, and those behind gaps: number by offset.
    come: u64,
    behind: BTreeMap<u64, u64>,
    /// In how many parts the remote side holds what it has not handed on, and the bytes of the last one.
    parts: usize,
    last_part: u64,
    /// Bytes of the body that it has handed on, once the head was.
    given: Option<u64>,
}

/// The remote side joins bytes that wait to parts of at most so many.
const JOINED: u64 = 4 * 1024;

impl Answer {
    /// The ground side fetched it before it knew that a browser wants it.
    fn was_ahead(&self) -> bool {
        self.depth > 0
    }

    /// The remote side has `bytes` more.
    fn hold(&mut self, bytes: u64) {
        if self.parts > 0 && self.last_part + bytes <= JOINED {
            self.last_part += bytes;
        } else {
            (self.parts, self.last_part) = (self.parts + 1, bytes);
        }
    }
}

impl Pep {
    /// Both sides before the first visit. `dials` are the inner connections, those of class 0 first.
    pub fn new(
        app: AppId,
        settings: &Settings,
        dials: Vec<Dial>,
        legs: Legs,
        visits: Rc<BTreeMap<AppId, Visited>>,
    ) -> Pep {
        Pep {
            app,
            fetches: settings.ahead,
            compression: settings.compression,
            buffer_bytes: settings.buffer_bytes,
            dials,
            lines: Vec::new(),
            scheduler: Scheduler::new(settings.policy()),
            fetcher: Fetcher::new(app, POOL, legs, visits.clone()),
            visits,
            answers: Vec::new(),
            numbers: BTreeMap::new(),
            backlog: BTreeSet::new(),
            unasked: 0,
            unasked_offered: 0,
            held: 0,
            later: VecDeque::new(),
            requests: 0,
            promises: 0,
            askers: BTreeMap::new(),
            priorities: BTreeMap::new(),
        }
    }

    /// What the remote side got ahead.
    pub fn ahead(&self) -> AheadSummary {
        let mut ahead = AheadSummary::default();
        for answer in self.answers.iter().filter(|answer| answer.was_ahead() && answer.come > 0) {
            ahead.answers += 1;
            ahead.bytes += answer.come;
            if !self.askers.contains_key(&answer.request) {
                ahead.unused_answers += 1;
                ahead.unused_bytes += answer.come;
            }
        }
        ahead
    }

    /// Its inner connections.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.lines.iter().map(Line::connection)
    }

    // ---- the remote side ------------------------------------------------------------------------

    /// A browser asks, or asks with another priority.
    fn asked(&mut self, world: &mut World, from: AppId, request: Request, priority: Priority) {
        let number = self.numbers.get(&request).copied();
        let promised = number.map(|number| &self.answers[number as usize]).filter(|answer| answer.promised);
        let known = self.askers.get(&request).map(|asker| asker.line).or(promised.map(|answer| answer.line));
        let line = known.unwrap_or_else(|| self.line(request.visit, self.requests));
        self.askers.insert(request, Asker { app: from, line });
        if known.is_some() {
            self.lines[line].want(world, request, priority);
        } else {
            self.requests += 1;
            let bytes = self.handed_over(request, false);
            self.lines[line].ask(world, bytes, request, priority);
        }
        if let Some(number) = number {
            self.give(world, number, 0);
        }
    }

    /// An answer will be sent ahead.
    fn promised(&mut self, world: &mut World, number: u32) {
        self.answers[number as usize].promised = true;
        self.give(world, number, 0);
    }

    /// The inner connection of a request or promise by its number.
    fn line(&self, visit: AppId, number: usize) -> usize {
        let per_class = self.scheduler.policy().connections;
        self.visits[&visit].class * per_class + number % per_class
    }

    /// Bytes of an answer have come. Those over several connections come in any order.
    fn came(&mut self, world: &mut World, number: u32, offset: u64, bytes: u64) {
        let answer = &mut self.answers[number as usize];
        answer.behind.insert(offset, bytes);
        let before = answer.come;
        while let Some(bytes) = answer.behind.remove(&answer.come) {
            answer.come += bytes;
            answer.hold(bytes);
        }
        let is_head = before == 0 && answer.come > 0;
        self.give(world, number, usize::from(is_head));
    }

    /// Hands on what came of an answer to who asked for it, and tells the ground side of each part, beside `credits`.
    fn give(&mut self, world: &mut World, number: u32, credits: usize) {
        let parts = self.hand_on(world, number);
        let answer = &self.answers[number as usize];
        let asker = self.askers.get(&answer.request).filter(|_| !answer.was_ahead());
        let line = asker.map_or(answer.line, |asker| asker.line);
        self.lines[line].credit(world, parts + credits);
    }

    /// Hands on what came of an answer to who asked for it. Returns in how many parts it was held.
    fn hand_on(&mut self, world: &mut World, number: u32) -> usize {
        let answer = &mut self.answers[number as usize];
        let Some(asker) = self.askers.get(&answer.request) else { return 0 };
        if answer.was_ahead() && !answer.promised {
            return 0;
        }
        let Some(body) = answer.coded.body_of(answer.come) else { return 0 };
        let given = answer.given.unwrap_or(0);
        if answer.given.is_none() || body > given {
            answer.given = Some(body);
            let served_by = if answer.was_ahead() { "ahead" } else { "pep" };
            let post = Post::Answer { request: answer.request, bytes: body - given, served_by };
            world.post(self.app, asker.app, post);
        }
        std::mem::take(&mut answer.parts)
    }

    // ---- the ground side ------------------------------------------------------------------------

    /// A request has come from the remote side.
    fn wanted(&mut self, world: &mut World, request: Request, priority: Priority) {
        self.priorities.insert(request, priority);
        let wanted = Wanted::Asked(priority);
        if let Some(&number) = self.numbers.get(&request) {
            let answer = &mut self.answers[number as usize];
            if answer.scheduled {
                self.scheduler.want(number, wanted);
            }
            if !answer.gone && !std::mem::replace(&mut answer.wanted, true) {
                self.unasked -= answer.fetched;
                self.unasked_offered -= answer.offered;
                self.held += answer.fetched - answer.sent;
            }
            return;
        }
        let page = self.visits[&request.visit].prepared.clone();
        if ahead::is_navigation(page.page(), request.resource) {
            self.forget(request.visit);
            if self.fetches == Ahead::Rehearsed && request.resource == 0 {
                self.plan_ahead(ahead::rehearsed(page.page()), request.visit, 1);
            }
        }
        self.later.retain(|(later, _)| *later != request);
        self.fetch(world, request, 0, 0);
    }

    /// The user of a visit turns to its page: drops what nobody asked for of the user's earlier pages.
    fn forget(&mut self, visit: AppId) {
        let user = self.visits[&visit].user;
        let visits = &self.visits;
        let is_other = |other: AppId| other != visit && visits[&other].user == user;
        self.later.retain(|(request, _)| !is_other(request.visit));
        for (number, answer) in (0..).zip(&mut self.answers) {
            if !answer.wanted && is_other(answer.request.visit) && !std::mem::replace(&mut answer.gone, true)
            {
                self.scheduler.remove(number);
                self.backlog.remove(&number);
                self.unasked -= answer.fetched;
                self.unasked_offered -= answer.offered;
            }
        }
    }

    /// Puts resources of a visit on the list of what is fetched ahead, those that are new.
    fn plan_ahead(&mut self, resources: Vec<u32>, visit: AppId, depth: u32) {
        for resource in resources {
            let request = Request { visit, resource };
            let is_planned = self.later.iter().any(|(later, _)| *later == request);
            if !self.numbers.contains_key(&request) && !is_planned {
                self.later.push_back((request, depth));
            }
        }
    }

    fn fetch(&mut self, world: &mut World, request: Request, depth: u32, line: usize) {
        self.numbers.insert(request, self.answers.len() as u32);
        self.answers.push(Answer {
            request,
            coded: Coded::new(&self.visits[&request.visit], request.resource, self.compression),
            depth,
            scheduled: false,
            line,
            fetched: 0,
            offered: 0,
            sent: 0,
            wanted: depth == 0,
            gone: false,
            promised: false,
            come: 0,
            behind: BTreeMap::new(),
            parts: 0,
            last_part: 0,
            given: None,
        });
        self.fetcher.ask(world, request);
    }

    /// Bytes of a request as one side hands it over to the other.
    fn handed_over(&self, request: Request, made_up: bool) -> u64 {
        let Request { visit, resource } = request;
        let visited = &self.visits[&visit];
        line::handed_over(visited.request(resource, 0), visited.is_encrypted(resource), made_up)
    }

    /// Fetches a resource before a browser asks, and tells the remote side.
    fn fetch_ahead(&mut self, world: &mut World, request: Request, depth: u32) {
        self.promises += 1;
        let line = self.line(request.visit, self.promises);
        let bytes = self.handed_over(request, true);
        self.lines[line].promise(self.answers.len() as u32, bytes);
        self.fetch(world, request, depth, line);
    }

    /// More of an answer has come from its server.
    fn fetched(&mut self, Came { request, bytes, last }: Came) {
        let number = self.numbers[&request];
        let answer = &mut self.answers[number as usize];
        if answer.gone {
            return;
        }
        let visited = &self.visits[&request.visit];
        if !std::mem::replace(&mut answer.scheduled, true) {
            let priority = self.priorities.get(&request).copied().unwrap_or_default();
            let wanted = if answer.wanted { Wanted::Asked(priority) } else { Wanted::Ahead };
            self.scheduler.add(number, visited.user, visited.class, wanted);
        }
        let before = answer.coded.body_come();
        let fetched = answer.coded.more(bytes);
        *if answer.wanted { &mut self.held } else { &mut self.unasked } += fetched - answer.fetched;
        answer.fetched = fetched;
        self.backlog.insert(number);
        let page = visited.page();
        let is_read_along = match answer.depth {
            0 => ahead::is_navigation(page, request.resource),
            depth => depth < ahead::DEPTH,
        };
        if self.fetches != Ahead::None && is_read_along {
            let come = before..answer.coded.body_come();
            let (found, depth) = (ahead::named(page, request.resource, come, last), answer.depth + 1);
            self.plan_ahead(found, request.visit, depth);
        }
    }

    /// Does all that can be done.
    fn progress(&mut self, world: &mut World) {
        // To read again after a pause brings more.
        loop {
            while let Some(came) = self.fetcher.came() {
                self.fetched(came);
            }
            self.send_on(world);
            self.fetcher.pause(world, self.held >= self.buffer_bytes);
            if !self.fetcher.has_come() {
                break;
            }
        }
    }

    /// Fetches ahead, offers and sends as much as there is room for.
    fn send_on(&mut self, world: &mut World) {
        while self.unasked < self.buffer_bytes / 4
            && let Some((request, depth)) = self.later.pop_front()
        {
            self.fetch_ahead(world, request, depth);
        }
        self.offer();
        self.send(world);
    }

    /// Offers the scheduler what the remote side has room for.
    fn offer(&mut self) {
        for number in std::mem::take(&mut self.backlog) {
            let answer = &mut self.answers[number as usize];
            let all = answer.fetched - answer.offered;
            let of_all = (self.buffer_bytes / 4).saturating_sub(self.unasked_offered);
            let room = (self.buffer_bytes / 8).saturating_sub(answer.offered).min(of_all);
            let bytes = if answer.wanted { all } else { all.min(room) };
            if !answer.wanted {
                self.unasked_offered += bytes;
            }
            answer.offered += bytes;
            self.scheduler.offer(number, bytes);
            if answer.offered == answer.coded.all() {
                self.scheduler.finish(number);
            }
            if bytes < all {
                self.backlog.insert(number);
            }
        }
    }

    /// Sends as long as a connection takes something.
    fn send(&mut self, world: &mut World) {
        loop {
            let mut room: Vec<bool> = self.lines.iter().map(|line| line.has_room(world)).collect();
            let mut sent = false;
            while let Some(grant) = self.scheduler.pick(world.now.0, |line| room[line]) {
                let answer = &mut self.answers[grant.answer as usize];
                let offset = answer.sent;
                answer.sent += grant.bytes;
                if answer.wanted {
                    self.held -= grant.bytes;
                }
                let line = &mut self.lines[grant.connection];
                line.send(grant.answer, offset, grant.bytes);
                room[grant.connection] = line.has_room(world);
                sent = true;
            }
            self.lines.iter_mut().for_each(|line| line.flush(world));
            if !sent {
                break;
            }
        }
    }
}

impl App for Pep {
    fn next(&self) -> Option<Time> {
        if !self.dials.is_empty() {
            return Some(Time::ZERO);
        }
        let paced = self.scheduler.next().map(Time);
        [self.fetcher.next(), paced].into_iter().flatten().min()
    }

    fn wake(&mut self, world: &mut World) {
        let fair = self.scheduler.policy().schedule == PepSchedule::Fair;
        for dial in self.dials.drain(..) {
            self.lines.push(Line::open(world, dial, fair));
        }
        self.fetcher.wake(world);
        self.progress(world);
    }

    fn activity(&mut self, world: &mut World, endpoint: EndpointId) {
        if let Some(line) = self.lines.iter_mut().find(|line| line.is_at(endpoint)) {
            for message in line.activity(world, endpoint) {
                match message {
                    Message::Ask(request, priority) => self.wanted(world, request, priority),
                    Message::Promise(answer) => self.promised(world, answer),
                    Message::Bytes(answer, offset, bytes) => self.came(world, answer, offset, bytes),
                    Message::Credit => {}
                }
            }
        } else {
            self.fetcher.activity(world, endpoint);
        }
        self.progress(world);
    }

    fn told(&mut self, world: &mut World, from: AppId, post: Post) {
        match post {
            Post::Ask { request, priority } => self.asked(world, from, request, priority),
            Post::Answer { request, bytes, .. } => self.fetcher.answered(world, request, bytes),
        }
        self.progress(world);
    }

    fn is_over(&self) -> bool {
        false
    }
}
