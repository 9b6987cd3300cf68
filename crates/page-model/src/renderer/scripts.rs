//! When a document's scripts run: those that its parser waits for, the deferred ones, its own in the text.

use super::{Renderer, Task};
use wirepaint_units::{Duration, Time};

impl Renderer {
    /// Runs the script that the parser waits for, once it and the stylesheets before it have arrived.
    pub(super) fn run_when_ready(&mut self, now: Time, number: usize, script: u32) {
        let tail = self.links[script].tail;
        let state = &self.states[tail as usize];
        let queued = self.tasks.contains(&Task::Run(tail)) || self.running == Some(Task::Run(tail));
        if state.finished.is_some() {
            // It ran before the parser reached it.
            self.documents[number].block = None;
            self.documents[number].parsed += 1;
            self.parse(now, number);
        } else if state.last_byte.is_some()
            && self.documents[number].sheets == 0
            && !queued
            && self.imports_came(tail)
        {
            self.queue(Task::Run(tail));
        }
    }

    /// After the parser's end: deferred scripts in order, then DOMContentLoaded.
    pub(super) fn run_deferred(&mut self, now: Time, number: usize) {
        let document = &self.documents[number];
        if !document.ended || document.content_loaded.is_some() {
            return;
        }
        let next = document.deferred.iter().map(|&script| self.links[script].tail);
        let next = { next }.find(|&tail| self.states[tail as usize].finished.is_none());
        match next {
            Some(tail) => {
                let queued = self.tasks.contains(&Task::Run(tail)) || self.running == Some(Task::Run(tail));
                let sheets = document.sheets;
                let came = self.states[tail as usize].last_byte.is_some() && self.imports_came(tail);
                if came && sheets == 0 && !queued {
                    self.queue(Task::Run(tail));
                }
            }
            None if !document.content_loading => {
                self.documents[number].content_loading = true;
                if self.documents[number].content_loaded_ns == Duration::ZERO {
                    self.perform(now, Task::ContentLoaded(number));
                } else {
                    self.queue(Task::ContentLoaded(number));
                }
            }
            None => {}
        }
    }

    /// The document's own scripts have run: makes their immediate requests.
    pub(super) fn inline(&mut self, now: Time, number: usize) {
        if std::mem::replace(&mut self.documents[number].scripted, true) {
            return;
        }
        self.effects(now, self.documents[number].resource);
    }
}
