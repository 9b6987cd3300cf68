//! Requests before they have a connection: held back, then in the group of their origin.

use super::{Connection, Event, Group, NetworkProcess, Progress, Stage};
use crate::browser::Browser;
use crate::page::Cached;
use wirepaint_units::Time;

impl NetworkProcess {
    /// The group of a request, which may be new.
    pub(super) fn group(&mut self, request: u32) -> usize {
        let resource = &self.page.resources[request as usize];
        let address = self.page.origins[resource.origin as usize].address;
        let same = |group: &Group| {
            group.pool == resource.pool
                && (group.origin == resource.origin
                    || self.browser.coalesce
                        && group.session.is_some()
                        && self.page.origins[group.origin as usize].address == address)
        };
        if let Some(found) = self.groups.iter().position(same) {
            return found;
        }
        self.groups.push(Group {
            origin: resource.origin,
            pool: resource.pool,
            waiting: Vec::new(),
            look_ups: 0,
            given_up: 0,
            connections: Vec::new(),
            session: None,
            ticket: false,
        });
        self.groups.len() - 1
    }

    /// Starts requests that are held back, by priority, within the limits.
    pub(super) fn start_delayed(&mut self, now: Time) {
        if self.delayed.is_empty() {
            return;
        }
        let Browser { connections_per_origin, pipeline, delayable_requests, .. } = *self.browser;
        let per_origin = usize::from(connections_per_origin) * usize::from(pipeline);
        self.delayed.sort_by_key(|&request| std::cmp::Reverse(self.transfers[request as usize].priority));
        let mut left = std::mem::take(&mut self.delayed);
        left.retain(|&request| {
            let transfer = &self.transfers[request as usize];
            if transfer.delayable {
                let origin = self.groups[transfer.group].origin;
                let under_way = self.transfers.iter().filter(|other| {
                    other.delayable && matches!(other.stage, Progress::Waiting | Progress::OnWire)
                });
                let (mut all, mut here) = (0, 0);
                for other in under_way {
                    all += 1;
                    here += usize::from(self.groups[other.group].origin == origin);
                }
                if all >= delayable_requests || here >= per_origin {
                    return true;
                }
            }
            self.queue(now, request);
            false
        });
        self.delayed = left;
    }

    pub(super) fn queue(&mut self, now: Time, request: u32) {
        let transfer = &mut self.transfers[request as usize];
        if self.page.resources[request as usize].cached == Some(Cached::Fresh) {
            transfer.stage = Progress::OnWire;
            let read = self.noise.vary(self.browser.compute.cache_ns);
            self.agenda.at(now + read, Event::FromCache(request));
            return;
        }
        transfer.stage = Progress::Waiting;
        transfer.queued = Some(now);
        let group = transfer.group;
        self.groups[group].waiting.push(request);
        self.dispatch(now, group);
        self.connect_as_needed(now, group);
    }

    /// Puts waiting requests on connections that accept one.
    pub(super) fn dispatch(&mut self, now: Time, group: usize) {
        if let Some(session) = self.groups[group].session {
            for request in std::mem::take(&mut self.groups[group].waiting) {
                self.send(now, session, request);
            }
            return;
        }
        // The pipeline that begins in this call, of a browser that does not add to one under way.
        let mut begun = None;
        while !self.groups[group].waiting.is_empty() {
            let Browser { pipeline, pipeline_grows, .. } = *self.browser;
            // Prefer the connection used last, whose window is open; unused connections come last.
            let free = |&at: &usize| {
                let connection = &self.connections[at];
                let most = if connection.used == Time::ZERO { 1 } else { pipeline };
                let joins = connection.busy == 0 || pipeline_grows || begun == Some(at);
                connection.stage == Stage::Ready && connection.busy < most && joins
            };
            let key = |&at: &usize| {
                let Connection { busy, used, .. } = self.connections[at];
                (begun != Some(at), busy, std::cmp::Reverse(used))
            };
            let Some(at) = self.groups[group].connections.iter().copied().filter(free).min_by_key(key) else {
                return;
            };
            if !pipeline_grows {
                begun = (self.connections[at].used != Time::ZERO).then_some(at);
            }
            let request = self.next_waiting(group);
            self.send(now, at, request);
        }
    }

    /// The oldest waiting request of the highest priority.
    fn next_waiting(&mut self, group: usize) -> u32 {
        let waiting = &self.groups[group].waiting;
        let urgency = |&at: &usize| self.transfers[waiting[at] as usize].priority.urgency();
        let best = (0..waiting.len()).min_by_key(urgency).expect("the caller has looked");
        self.groups[group].waiting.remove(best)
    }
}
