//! The priority of a request when the browser discovers it, and whether it is incremental.

use crate::page::{Cause, Element, Kind, Resource};
use crate::priority::Priority;

/// True for kinds that Chromium marks as incremental (RFC 9218, `i`).
pub fn incremental(kind: Kind) -> bool {
    matches!(kind, Kind::Html | Kind::Image | Kind::Data | Kind::Media)
}

/// Number of a document's first images that are raised above the others.
const FIRST_IMAGES: u32 = 5;
/// Images of fewer bytes than this are too small to be raised: about 100 by 100 pixels.
const SMALL_IMAGE_BYTES: u64 = 1_000;

/// A document's earlier requests, as far as they affect the next priority.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    images: u32,
    raised: u32,
}

impl Seen {
    /// Priority of a request when the browser discovers it. Call once per request, in order. `repeated`:
    /// number of elements before it that named an image again.
    pub fn initial(&mut self, resource: &Resource, repeated: u32) -> Priority {
        let element = match resource.cause {
            Some(Cause::Markup { element, .. }) => Some(element),
            _ => None,
        };
        let usual = match resource.kind {
            Kind::Html | Kind::Css => Priority::VeryHigh,
            Kind::Font if element == Some(Element::Preload) => Priority::High,
            Kind::Font => Priority::VeryHigh,
            Kind::Js => match element {
                Some(Element::Script) if self.images == 0 => Priority::High,
                Some(Element::Script) => Priority::Medium,
                Some(Element::Preload) => Priority::High,
                _ => Priority::Low,
            },
            Kind::Data => Priority::High,
            Kind::Image => {
                let first = element == Some(Element::Image)
                    && self.raised + repeated < FIRST_IMAGES
                    && resource.wire_bytes >= SMALL_IMAGE_BYTES;
                self.images += u32::from(element.is_some());
                self.raised += u32::from(first);
                if first { Priority::Medium } else { Priority::Low }
            }
            Kind::Media | Kind::Other => Priority::Low,
        };
        match resource.urgent {
            _ if resource.priority.is_some() => resource.priority.unwrap_or(usual),
            Some(true) => usual.max(Priority::High),
            Some(false) => usual.min(Priority::Low),
            None => usual,
        }
    }
}
