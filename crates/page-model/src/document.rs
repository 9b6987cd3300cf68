//! A document while it is parsed: its progress, what blocks it, what waits for it.

use crate::links::Links;
use crate::page::{Cause, Element, Page};
use crate::priority::Priority;
use crate::ranking::Seen;
use wirepaint_units::{Duration, Time};

/// An item in a document's text that matters to loading, at an offset of the decoded bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// The body begins; the loader no longer holds back requests of low priority.
    Body,
    /// An inline script, by its number.
    Inline(usize),
    /// An element that loads a resource.
    Element(u32, Element),
}

/// What the parser waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// A script that must arrive or run.
    Script(u32),
    /// The stylesheets before an inline script.
    Sheets,
    /// An inline script that must run.
    Inline,
}

/// A document of a visit.
#[derive(Debug)]
pub struct Document {
    /// Its resource.
    pub resource: u32,
    /// By offset.
    pub items: Vec<(u64, Item)>,
    /// Body bytes that have arrived, as transferred.
    pub transferred: u64,
    /// Decoded bytes that the page's process has.
    pub available: u64,
    /// Every byte has arrived.
    pub complete: bool,
    /// A task for the arrived text is queued.
    pub chunk_queued: bool,
    /// The page's process has committed it.
    pub committed: bool,
    /// Items that the preload scanner has passed.
    pub scanned: usize,
    /// Bytes that it has passed.
    pub scanned_bytes: u64,
    /// Where the body begins and the text ends, and the elements between.
    body_at: u64,
    end: u64,
    elements: u64,
    /// Cost of style, layout and paint per element, if the page states it.
    pub layout_ns_per_element: Option<Duration>,
    /// That of style alone, if the page states it.
    pub style_ns_per_element: Option<Duration>,
    /// Time that the first style waits.
    pub style_wait_ns: Duration,
    /// Time that the first layout waits for fonts, if the page states it.
    pub layout_wait_ns: Option<Duration>,
    /// Its style rules name font families.
    pub names_fonts: bool,
    /// The first script in the text is the driver of a synthesised page.
    pub driver: bool,
    /// Duration of each inline script, if known.
    pub inline_ns: Vec<Duration>,
    /// Duration of the handlers of DOMContentLoaded.
    pub content_loaded_ns: Duration,
    /// Duration of the handlers of the load event.
    pub load_ns: Duration,
    /// Handlers of DOMContentLoaded are queued.
    pub content_loading: bool,
    /// Bytes that the parser has been charged for.
    pub charged_bytes: u64,
    /// Items that the parser has passed.
    pub parsed: usize,
    /// What the parser waits for.
    pub block: Option<Block>,
    /// Stylesheets met and not finished.
    pub sheets: u32,
    /// The parser is past the body's tag.
    pub body: bool,
    /// The first script in the text has run, or there is none.
    pub scripted: bool,
    /// The parser is at the end.
    pub ended: bool,
    /// Scripts that run after the end, in order.
    pub deferred: Vec<u32>,
    /// DOMContentLoaded.
    pub content_loaded: Option<Time>,
    /// A layout is queued.
    pub layout_queued: bool,
    /// The first layout.
    pub laid_out: Option<Time>,
    /// Elements that a layout has laid out with all stylesheets that have arrived.
    pub laid_elements: u64,
    /// Resources of style rules that wait for a layout.
    pub styled: Vec<u32>,
    /// Offsets of images that were named before.
    pub repeated_images: Vec<u64>,
    /// State of its requests so far.
    pub seen: Seen,
    /// Requests held back, in order.
    pub held: Vec<u32>,
    /// Requests under way that the loader may hold back.
    pub running: u32,
    /// Those of medium priority.
    pub medium: u32,
    /// Limit of both until the body begins.
    before_body: u32,
}

impl Document {
    /// The document of `resource`.
    pub fn new(page: &Page, links: &Links, resource: u32, before_body: u32) -> Document {
        let this = &page.resources[resource as usize];
        let last = this.decoded_bytes;
        let mut items: Vec<(u64, Item)> = Vec::new();
        let known = this.document.clone().unwrap_or_default();
        let scripts = known.inline_scripts.iter().enumerate();
        items.extend(scripts.map(|(number, &at)| (at.min(last), Item::Inline(number))));
        items.push((known.body_at.min(last), Item::Body));
        for &child in &links[resource].children {
            let cause = page.resources[child as usize].cause;
            if let (Some(Cause::Markup { at, .. }), Some(element)) = (cause, links[child].element) {
                items.push((at.min(last), Item::Element(child, element)));
            }
        }
        items.sort_by_key(|&(at, _)| at);
        Document {
            resource,
            before_body,
            items,
            transferred: 0,
            available: 0,
            complete: false,
            chunk_queued: false,
            committed: false,
            scanned: 0,
            scanned_bytes: 0,
            body_at: known.body_at.min(last),
            end: last,
            elements: known.elements,
            layout_ns_per_element: known.layout_ns_per_element,
            style_ns_per_element: known.style_ns_per_element,
            style_wait_ns: known.style_wait_ns,
            layout_wait_ns: known.layout_wait_ns,
            names_fonts: known.names_fonts,
            driver: known.driver,
            inline_ns: known.inline_ns,
            content_loaded_ns: known.content_loaded_ns,
            load_ns: known.load_ns,
            content_loading: false,
            charged_bytes: 0,
            parsed: 0,
            block: None,
            sheets: 0,
            body: false,
            scripted: known.inline_scripts.is_empty(),
            ended: false,
            deferred: Vec::new(),
            content_loaded: None,
            layout_queued: false,
            laid_out: None,
            laid_elements: 0,
            styled: Vec::new(),
            repeated_images: known.repeated_images,
            seen: Seen::default(),
            held: Vec::new(),
            running: 0,
            medium: 0,
        }
    }

    /// Elements of the body that stand before an offset.
    pub fn elements_before(&self, offset: u64) -> u64 {
        let (body, before) = (self.end - self.body_at, offset.clamp(self.body_at, self.end) - self.body_at);
        (u128::from(self.elements) * u128::from(before) / u128::from(body.max(1))) as u64
    }

    /// Elements that the parser has made.
    pub fn made_elements(&self) -> u64 {
        let next = self.items.get(self.parsed).map_or(self.end, |&(at, _)| at);
        self.elements_before(next.min(self.scanned_bytes))
    }

    /// Duration of the inline script of this number.
    pub fn inline_cost(&self, number: usize) -> Duration {
        self.inline_ns.get(number).copied().unwrap_or(Duration::ZERO)
    }

    /// Whether a request of `priority` may start now. If so, counts it as under way.
    pub fn admit(&mut self, priority: Priority) -> bool {
        let medium = priority == Priority::Medium;
        let held = !self.body && priority < Priority::High && self.running >= self.before_body;
        if held && !(medium && self.medium < self.before_body) {
            return false;
        }
        self.running += 1;
        self.medium += u32::from(medium);
        true
    }

    /// A request that was admitted with `priority` is over.
    pub fn over(&mut self, priority: Priority) {
        self.running -= 1;
        self.medium -= u32::from(priority == Priority::Medium);
    }
}
