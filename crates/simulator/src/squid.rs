//! Squid where it answers requests itself: plain HTTP, and https that it ends. Elsewhere it relays
//! ([`relay`](crate::relay)).
//!
//! An answer comes from the cache, or from the server while it arrives. What a cache may keep is a fact of the page
//! (`cacheable`). A warm cache has all of that from a first visit of the same pages.
//!
//! - DEVIATION: an answer is a hit once it has come whole; squid may serve one of which it has the head.
//! - DEVIATION: squid reads a server's answer as fast as it comes; the real one waits for a slow client when it is
//!   16 KiB ahead of it (`read_ahead_gap`).

use crate::app::App;
use crate::fabric::EndpointId;
use crate::fetch::{Fetcher, Pool};
use crate::post::{Post, Request};
use crate::relay::Legs;
use crate::visited::Visited;
use crate::world::{AppId, World};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use wirepaint_run::{Cache as Place, Squid as Settings};
use wirepaint_units::{Duration, Time};

/// Bytes that squid adds to the head of an answer: `X-Cache: MISS from wirepaint`, `X-Cache-Lookup: MISS from
/// wirepaint:3128`, `Via: 1.1 wirepaint (squid/5.7)`, `Connection: keep-alive`.
pub const HEAD_BYTES: u64 = 30 + 42 + 32 + 24;
/// Its connections to servers. It adds `Via`, `X-Forwarded-For` and `Cache-Control: max-age=259200` to requests. The
/// testbed's configuration closes idle ones after 2 s, and nothing limits their number.
const POOL: Pool = Pool {
    idle: Some(Duration::from_secs(2)),
    per_origin: usize::MAX,
    request_bytes: 32 + 28 + 31,
    head_read: u64::MAX,
};

/// A squid.
pub struct Squid {
    app: AppId,
    cache: Cache,
    fetcher: Fetcher,
    visits: Rc<BTreeMap<AppId, Visited>>,
    /// Who waits for answers that are being fetched.
    askers: BTreeMap<Request, AppId>,
}

/// The cache: addresses and sizes, the one used last at the end.
struct Cache {
    most_bytes: u64,
    held: VecDeque<(String, u64)>,
}

impl Cache {
    /// Whether an answer is there.
    fn has(&mut self, url: &str) -> bool {
        let Some(at) = self.held.iter().position(|(held, _)| held == url) else { return false };
        let used = self.held.remove(at).expect("found there");
        self.held.push_back(used);
        true
    }

    /// Keeps an answer; those that were not used for longest make room.
    fn keep(&mut self, url: &str, bytes: u64) {
        if bytes > self.most_bytes || self.has(url) {
            return;
        }
        self.held.push_back((url.to_owned(), bytes));
        while self.held.iter().map(|(_, bytes)| bytes).sum::<u64>() > self.most_bytes {
            self.held.pop_front();
        }
    }
}

impl Squid {
    /// A squid before the first request; `legs` are its ways to the servers.
    pub fn new(app: AppId, settings: &Settings, legs: Legs, visits: Rc<BTreeMap<AppId, Visited>>) -> Squid {
        let most_bytes = if settings.cache == Place::None { 0 } else { settings.cache_bytes };
        let mut cache = Cache { most_bytes, held: VecDeque::new() };
        if settings.warm {
            for visited in visits.values() {
                for resource in visited.page().resources.iter().filter(|resource| resource.cacheable) {
                    cache.keep(&resource.url, resource.answer_bytes());
                }
            }
        }
        let fetcher = Fetcher::new(app, POOL, legs, visits.clone());
        Squid { app, cache, fetcher, visits, askers: BTreeMap::new() }
    }

    fn pass_on(&mut self, world: &mut World) {
        while let Some(came) = self.fetcher.came() {
            let asker = self.askers[&came.request];
            let answer = Post::Answer { request: came.request, bytes: came.bytes, served_by: "cache miss" };
            world.post(self.app, asker, answer);
            if came.last {
                self.askers.remove(&came.request);
                let resource = self.visits[&came.request.visit].resource(came.request.resource);
                if resource.cacheable {
                    self.cache.keep(&resource.url, resource.answer_bytes());
                }
            }
        }
    }
}

impl App for Squid {
    fn next(&self) -> Option<Time> {
        self.fetcher.next()
    }

    fn wake(&mut self, world: &mut World) {
        self.fetcher.wake(world);
        self.pass_on(world);
    }

    fn activity(&mut self, world: &mut World, endpoint: EndpointId) {
        self.fetcher.activity(world, endpoint);
        self.pass_on(world);
    }

    fn told(&mut self, world: &mut World, from: AppId, post: Post) {
        match post {
            Post::Ask { request, .. } => {
                let resource = self.visits[&request.visit].resource(request.resource);
                if resource.cacheable && self.cache.has(&resource.url) {
                    let bytes = resource.answer_bytes();
                    world.post(self.app, from, Post::Answer { request, bytes, served_by: "cache hit" });
                } else {
                    self.askers.insert(request, from);
                    self.fetcher.ask(world, request);
                }
            }
            Post::Answer { request, bytes, .. } => self.fetcher.answered(world, request, bytes),
        }
        self.pass_on(world);
    }

    fn is_over(&self) -> bool {
        false
    }
}
