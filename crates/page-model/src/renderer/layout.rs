//! Styles and layouts: their costs and their requests.

use super::{Renderer, Task};
use crate::page::{Cause, Kind};
use wirepaint_units::{Duration, Time};

impl Renderer {
    pub(super) fn want_layout(&mut self, number: usize) {
        let document = &mut self.documents[number];
        if document.body && document.sheets == 0 && !document.layout_queued {
            document.layout_queued = true;
            self.queue(Task::Style(number));
        }
    }

    pub(super) fn layout_cost(&self, number: usize) -> Duration {
        let document = &self.documents[number];
        let elements = document.made_elements() - document.laid_elements;
        let each = document.layout_ns_per_element.unwrap_or(self.browser.compute.layout_ns_per_element);
        Duration(self.browser.compute.layout_ns.0 + each.0 * elements)
    }

    /// What style alone costs of that.
    pub(super) fn style_cost(&self, number: usize) -> Duration {
        let document = &self.documents[number];
        let all = self.layout_cost(number);
        match document.style_ns_per_element {
            Some(each) => Duration(each.0 * (document.made_elements() - document.laid_elements)).min(all),
            None => Duration(all.0 / self.browser.style_share),
        }
    }

    /// Requests images of style rules, and discovers fonts; no task runs between style and layout.
    pub(super) fn style(&mut self, now: Time, number: usize) {
        let document = &mut self.documents[number];
        let mut styled = std::mem::take(&mut document.styled);
        if !document.driver {
            // Rules in the text need no script to run.
            let own = &self.links[document.resource].children;
            let ruled = |&&child: &&u32| {
                let known = self.states[child as usize].discovered.is_some() || styled.contains(&child);
                let cause = self.page.resources[child as usize].cause;
                !known && matches!(cause, Some(Cause::Style { .. }))
            };
            let found: Vec<u32> = own.iter().filter(ruled).copied().collect();
            styled.extend(found);
        }
        let is_font = |&styled: &u32| self.page.resources[styled as usize].kind == Kind::Font;
        let (fonts, images): (Vec<_>, Vec<_>) = styled.into_iter().partition(is_font);
        for image in images {
            self.discover(now, image);
        }
        let met = fonts.into_iter().filter(|&font| self.meet(now, font)).collect();
        self.documents[number].styled = met;
        self.tasks.push_front(Task::Layout(number));
    }

    pub(super) fn lay_out(&mut self, now: Time, number: usize) {
        let document = &mut self.documents[number];
        document.layout_queued = false;
        document.laid_elements = document.made_elements();
        document.laid_out.get_or_insert(now);
        for font in std::mem::take(&mut document.styled) {
            self.ask(font);
        }
        // Chromium has them in no order; on the testbed the later of two was the first to be told in 8 of 9 loads.
        for at in (0..self.states.len()).rev() {
            if self.states[at].owner == Some(number) {
                self.raise_visible(at as u32);
            }
        }
    }
}
