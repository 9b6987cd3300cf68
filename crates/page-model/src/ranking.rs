//! The priority of a request when the browser discovers it.

use crate::browser::Priorities;
use crate::page::{Cause, Element, Kind, Resource};
use crate::priority::Priority;

/// A document's earlier requests, as far as they affect the next priority.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    images: u32,
    raised: u32,
}

impl Seen {
    /// Priority of a request when the browser discovers it. Call once per request, in order. `repeated`:
    /// number of elements before it that named an image again.
    pub fn initial(&mut self, known: &Priorities, resource: &Resource, repeated: u32) -> Priority {
        let element = match resource.cause {
            Some(Cause::Markup { element, .. }) => Some(element),
            _ => None,
        };
        let usual = match resource.kind {
            Kind::Html => known.html,
            Kind::Css => known.css,
            Kind::Font if element == Some(Element::Preload) => known.font_preloaded,
            Kind::Font => known.font,
            Kind::Js => match element {
                Some(Element::Script) if self.images == 0 => known.script,
                Some(Element::Script) => known.script_after_image,
                Some(Element::Preload) => known.script_preloaded,
                _ => known.script_other,
            },
            Kind::Data => known.data,
            Kind::Image => {
                let first = element == Some(Element::Image)
                    && self.raised + repeated < known.first_images
                    && resource.wire_bytes >= known.small_image_bytes;
                self.images += u32::from(element.is_some());
                self.raised += u32::from(first);
                if first { known.image_first } else { known.image }
            }
            Kind::Media => known.media,
            Kind::Other => known.other,
        };
        match resource.urgent {
            _ if resource.priority.is_some() => resource.priority.unwrap_or(usual),
            Some(true) => usual.max(known.urgent),
            Some(false) => usual.min(known.idle),
            None => usual,
        }
    }
}
