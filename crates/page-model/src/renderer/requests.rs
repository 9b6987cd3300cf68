//! The page's requests: the discovery of a resource, and its effects.

use super::{Hold, Renderer, State, Task, Wish};
use crate::page::{Cause, Holds, Kind};
use wirepaint_units::{Duration, Time};

impl Renderer {
    /// The page discovers a resource, and requests it.
    pub(super) fn discover(&mut self, now: Time, resource: u32) {
        if self.meet(now, resource) {
            self.ask(resource);
        }
    }

    /// The page discovers a resource; false if it has before.
    pub(super) fn meet(&mut self, now: Time, resource: u32) -> bool {
        let page = self.page.clone();
        let this = &page.resources[resource as usize];
        let State { discovered, owner, .. } = self.states[resource as usize];
        let root = self.links[resource].root;
        if discovered.is_some() {
            return false;
        }
        let priority = match owner {
            None => self.browser.priorities.html,
            Some(owner) if root == resource => {
                let document = &mut self.documents[owner];
                let place = if let Some(Cause::Markup { at, .. }) = this.cause { at } else { 0 };
                let repeated = document.repeated_images.iter().filter(|&&at| at < place).count() as u32;
                document.seen.initial(&self.browser.priorities, this, repeated)
            }
            Some(_) => self.states[root as usize].priority,
        };
        let state = &mut self.states[resource as usize];
        (state.discovered, state.priority) = (Some(now), priority);
        let scripted = matches!(this.cause, Some(Cause::Script { .. }));
        let fetched = this.kind == Kind::Data || (scripted && matches!(this.kind, Kind::Media | Kind::Other));
        if this.holds_load == Holds::Asked && self.loaded.is_none() && root != 0 && !fetched {
            state.holds_load = Hold::Finished;
            self.awaited += 1;
        }
        if state.holds_load == Hold::Discovered {
            self.let_go();
        }
        if let Some(owner) = owner
            && self.links[resource].imported
            && root == resource
        {
            // Whatever waits for the importing stylesheet waits for this one too.
            self.documents[owner].sheets += 1;
        }
        true
    }

    /// The page requests a resource that it has discovered.
    pub(super) fn ask(&mut self, resource: u32) {
        let State { owner, priority, .. } = self.states[resource as usize];
        let Some(owner) = owner else {
            self.wishes.push_back(Wish::Ask(resource, priority));
            return;
        };
        self.documents[owner].held.push(resource);
        self.release(owner);
        if self.documents[owner].laid_out.is_some() {
            self.raise_visible(resource);
        }
    }

    /// Requests held-back resources within the loader's limits, the most urgent first.
    pub(super) fn release(&mut self, number: usize) {
        let mut held = std::mem::take(&mut self.documents[number].held);
        held.sort_by_key(|&resource| std::cmp::Reverse(self.states[resource as usize].priority));
        held.retain(|&resource| {
            let state = &mut self.states[resource as usize];
            // The loader does not hold back fetches and media.
            if !matches!(self.page.resources[resource as usize].kind, Kind::Data | Kind::Media) {
                if !self.documents[number].admit(state.priority) {
                    return true;
                }
                state.admitted = Some(state.priority);
            }
            let priority = state.priority;
            self.tell(Wish::Ask(resource, priority));
            false
        });
        self.documents[number].held = held;
    }

    /// The effects of a resource that has run or arrived.
    pub(super) fn effects(&mut self, now: Time, resource: u32) {
        let mut chain = resource;
        loop {
            self.states[chain as usize].acted = true;
            let links = self.links.clone();
            for &child in &links[chain].children {
                self.effect(now, resource, child);
            }
            match self.page.resources[chain as usize].cause {
                Some(Cause::Redirect { by }) => chain = by,
                _ => return,
            }
        }
    }

    pub(super) fn effect(&mut self, now: Time, parent: u32, child: u32) {
        if self.states[child as usize].discovered.is_some() {
            return;
        }
        let owner = self.states[child as usize].owner;
        match (self.page.resources[child as usize].cause, owner) {
            (Some(Cause::Style { .. }), Some(owner)) => {
                self.documents[owner].styled.push(child);
                self.want_layout(owner);
            }
            (Some(Cause::Script { after_ns, .. }), _) => self.script_asks(now, parent, child, after_ns),
            (Some(Cause::Markup { by, .. }), _) if self.document_of[by as usize].is_some() => {}
            (Some(Cause::Redirect { .. }), _) => {}
            _ => self.discover(now, child),
        }
    }

    /// A script requests a resource, `after` the last byte of its cause, or of the latest that it waits for.
    pub(super) fn script_asks(&mut self, now: Time, parent: u32, child: u32, after: Duration) {
        let page = self.page.clone();
        let this = &page.resources[child as usize];
        let cause = this.cause.map(Cause::by);
        let others = if this.after_first { &[][..] } else { &this.also };
        if !this.after_first && cause.iter().chain(others).any(|&by| !self.states[by as usize].acted) {
            return;
        }
        let content_loaded = self.base().and_then(|document| document.content_loaded);
        if this.after_content_loaded && content_loaded.is_none() {
            return;
        }
        let waits = this.after_load || this.after_content_loaded || !others.is_empty();
        if after == Duration::ZERO && !waits {
            return self.discover(now, child);
        }
        // The document with the script may still be arriving; at its end this is called again.
        let Some(mut from) = self.states[parent as usize].last_byte else { return };
        for &also in others {
            let Some(end) = self.states[self.links[also].tail as usize].last_byte else { return };
            from = from.max(end);
        }
        if this.after_run {
            from = now;
        }
        if this.after_content_loaded {
            from = content_loaded.unwrap_or(from);
        }
        if std::mem::replace(&mut self.states[child as usize].planned, true) {
            return;
        }
        if this.after_load && self.loaded.is_none() {
            self.after_load.push((child, after));
        } else {
            self.agenda.at(now.max(from + after), Task::Make(child));
        }
    }

    /// DOMContentLoaded of the page's own document.
    pub(super) fn content_loaded(&mut self, now: Time) {
        let page = self.page.clone();
        for (child, this) in page.resources.iter().enumerate() {
            let asked = self.states[child].planned || self.states[child].discovered.is_some();
            if let Some(Cause::Script { by, after_ns }) = this.cause
                && this.after_content_loaded
                && !asked
            {
                self.script_asks(now, self.links[by].tail, child as u32, after_ns);
            }
        }
    }

    pub(super) fn finished(&mut self, now: Time, resource: u32) {
        let state = &mut self.states[resource as usize];
        if state.finished.replace(now).is_some() {
            return;
        }
        self.unfinished -= 1;
        if state.holds_load == Hold::Finished {
            self.let_go();
        }
        self.check_done();
    }

    /// The load event waits for one resource less.
    pub(super) fn let_go(&mut self) {
        self.awaited -= 1;
        if self.awaited == 0 {
            self.queue(Task::Load);
        }
    }

    pub(super) fn check_done(&mut self) {
        if self.unfinished == 0 && self.loaded.is_some() {
            self.wishes.push_back(Wish::Done);
        }
    }
}
