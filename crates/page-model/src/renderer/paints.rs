//! The first view port: its urgent images, and the largest contentful paint.
//!
//! A candidate of the largest contentful paint is a text or an image whose visible part is larger than all
//! painted before it (W3C Largest Contentful Paint). An image counts once it has arrived in full, at its
//! place at that time.
//!
//! - DEVIATION: only the largest text is known; it is painted with the first paint.
//! - DEVIATION: a frame in the view port counts when it has arrived; on the testbed the view port is then
//!   complete at the last change of the picture.

use super::{Renderer, State, Wish};
use crate::page::{Cause, Follows, InlineBox, InlineFlow, Kind, Resource};
use crate::rows;
use std::cmp::Reverse;
use wirepaint_units::Time;

impl Renderer {
    /// The milestones of the page so far.
    pub fn milestones(&self, objects: &[rows::ObjectRow]) -> rows::PageRow {
        let document = self.base();
        let paints = &self.page.paints;
        let laid_out = document.and_then(|document| document.laid_out);
        let first_paint = match &paints.first {
            Some(follows) => self.following(follows),
            None => laid_out.map(|at| at + self.browser.compute.paint_ns),
        };
        let visible = objects.iter().filter(|object| object.in_viewport);
        let last = visible.filter_map(|object| self.shown(object, first_paint)).max();
        let largest = match &paints.largest {
            Some(follows) => self.following(follows).max(first_paint),
            None => first_paint.and_then(|first_paint| self.largest(first_paint)),
        };
        rows::PageRow {
            navigation_start: self.started,
            base: document.map_or(0, |document| document.resource),
            first_paint,
            largest_contentful_paint: largest,
            viewport_complete: first_paint.max(largest).max(last),
            dom_content_loaded: document.and_then(|document| document.content_loaded),
            load_event: self.loaded,
        }
    }

    /// When a resource that follows others arrives; `None` while one of them is missing.
    fn following(&self, follows: &Follows) -> Option<Time> {
        let mut latest = self.started;
        for &by in &follows.by {
            let state = &self.states[self.links[by].tail as usize];
            latest = latest.max(if follows.run { state.finished? } else { state.last_byte? });
        }
        Some(latest + follows.after_ns)
    }

    /// When an object in the view port was shown: an image element when it was painted, others when they had
    /// arrived. (The testbed's browser reports no paint of style rules' images.)
    fn shown(&self, object: &rows::ObjectRow, first_paint: Option<Time>) -> Option<Time> {
        let link = &self.links[object.resource];
        let [root, tail] = [link.root, link.tail].map(|number| &self.page.resources[number as usize]);
        let is_element = tail.kind == Kind::Image && !matches!(root.cause, Some(Cause::Style { .. }));
        let come = self.come(object.resource).filter(|_| is_element);
        let painted = come.map(|come| come + self.browser.compute.paint_ns).max(first_paint);
        object.last_byte.max(painted)
    }

    /// Raises an image under way that the view port shows.
    pub(super) fn raise_visible(&mut self, resource: u32) {
        let visible = self.browser.priorities.visible;
        let state = &self.states[resource as usize];
        let loading = state.discovered.is_some() && state.last_byte.is_none();
        if loading && state.priority < visible && self.is_visible(resource) {
            self.states[resource as usize].priority = visible;
            self.tell(Wish::Raise(resource, visible));
        }
    }

    /// True for an image that begins in the first view port, in the present state of the page.
    pub fn is_visible(&self, resource: u32) -> bool {
        let Resource { inline_box, in_viewport, kind, .. } = &self.page.resources[resource as usize];
        match (self.flow(), inline_box) {
            (Some(flow), Some(_)) if *kind == Kind::Image => {
                let top = self.tops(flow, None).into_iter().find(|&(other, _)| other == resource);
                top.is_some_and(|(_, top)| top < flow.viewport)
            }
            _ => *in_viewport,
        }
    }

    /// The largest contentful paint; `None` if no paint is known, or if it may be an image of unknown place.
    pub(super) fn largest(&self, first_paint: Time) -> Option<Time> {
        let document = self.base()?.resource;
        let known = self.page.resources[document as usize].document.as_ref();
        let (text_area, unplaced_area) = known.map_or((0, 0), |known| (known.text_area, known.unplaced_area));
        let paint = self.browser.compute.paint_ns;
        let painted = |(resource, state): (&Resource, &State)| {
            let at = state.finished.filter(|_| resource.area > 0)? + paint;
            Some((resource.area, at.max(first_paint)))
        };
        let placed = self.page.resources.iter().zip(&self.states).filter_map(painted);
        let inline = self.flow().map(|flow| self.inline_paints(flow, first_paint)).unwrap_or_default();
        let candidates = std::iter::once((text_area, first_paint)).chain(placed).chain(inline);
        let (area, at) = candidates.min_by_key(|&(area, at)| (Reverse(area), at))?;
        (area >= unplaced_area.max(1)).then_some(at)
    }

    /// Visible area and time of the first paint of each image of the flow.
    fn inline_paints(&self, flow: InlineFlow, first_paint: Time) -> Vec<(u64, Time)> {
        let mut paints = Vec::new();
        for (number, resource) in self.page.resources.iter().enumerate() {
            let Some(InlineBox { width, height, .. }) = resource.inline_box else { continue };
            let come = self.come(number as u32).filter(|_| resource.kind == Kind::Image);
            let Some(at) = come.map(|come| first_paint.max(come + self.browser.compute.paint_ns)) else {
                continue;
            };
            let tops = self.tops(flow, Some(at));
            let Some(&(_, top)) = tops.iter().find(|&&(other, _)| other == number as u32) else { continue };
            paints.push((width * height.min(flow.viewport.saturating_sub(top)), at));
        }
        paints
    }

    fn flow(&self) -> Option<InlineFlow> {
        let document = self.base()?.resource;
        self.page.resources[document as usize].document.as_ref()?.flow
    }

    /// When an image or frame arrived, after redirects.
    fn come(&self, resource: u32) -> Option<Time> {
        self.states[self.links[resource].tail as usize].finished
    }

    /// The boxes of the flow that exist at `now` (`None`: at present), with the top of each.
    fn tops(&self, flow: InlineFlow, now: Option<Time>) -> Vec<(u32, u64)> {
        let before = |at: Time| now.is_none_or(|now| at <= now);
        let mut boxes: Vec<(bool, u64, u32, InlineBox)> = Vec::new();
        for (number, resource) in self.page.resources.iter().enumerate() {
            let (Some(this), Some(known)) = (resource.inline_box, self.states[number].discovered) else {
                continue;
            };
            match resource.cause {
                Some(Cause::Markup { at, .. }) => boxes.push((false, at, number as u32, this)),
                _ if before(known) => boxes.push((true, known.0, number as u32, this)),
                _ => {}
            }
        }
        boxes.sort_by_key(|&(appended, at, number, _)| (appended, at, number));
        let (mut line, mut x, mut tops) = (flow.top, flow.used, Vec::new());
        // Boxes stand on the line, which is as high as the highest box.
        let (mut highest, mut on_line) = (0, Vec::new());
        for (_, _, number, this) in boxes {
            let there = this.reserved || self.come(number).is_some_and(before);
            let (width, height) = if there { (this.width, this.height) } else { (0, 0) };
            let (width, height) = (width + 2 * this.margin, height + 2 * this.margin);
            if x > 0 && x + width > flow.width {
                tops.extend(on_line.drain(..).map(|(number, above)| (number, line + highest - above)));
                (line, x, highest) = (line + highest + flow.descent, 0, 0);
            }
            x += width;
            highest = highest.max(height);
            on_line.push((number, height - this.margin));
        }
        tops.extend(on_line.into_iter().map(|(number, above)| (number, line + highest - above)));
        tops
    }
}
