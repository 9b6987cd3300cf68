//! A document while it is parsed: how far, what stops it, what waits for it.

use crate::links::Links;
use crate::page::{Cause, Element, Page};
use crate::priority::Priority;
use crate::ranking::Seen;
use wirepaint_units::{Duration, Time};

/// Something in a document's text that matters to loading, at an offset of the decoded bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// The body begins: the loader stops holding back requests of low priority.
    Body,
    /// A script without address, by its number.
    Inline(usize),
    /// An element that loads a resource.
    Element(u32, Element),
}

/// What the parser waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// A script to come or to run.
    Script(u32),
    /// The stylesheets before an inline script.
    Sheets,
    /// An inline script to run.
    Inline,
}

/// A document of a visit.
#[derive(Debug)]
pub struct Document {
    /// Its resource.
    pub resource: u32,
    /// By offset.
    pub items: Vec<(u64, Item)>,
    /// Body bytes that have come, as transferred.
    pub transferred: u64,
    /// Decoded bytes that the page's process has.
    pub available: u64,
    /// Every byte has come.
    pub complete: bool,
    /// A task for what has come is queued.
    pub chunk_queued: bool,
    /// The page's process has taken over.
    pub committed: bool,
    /// Items that the preload scanner has passed.
    pub scanned: usize,
    /// Bytes that it has passed.
    pub scanned_bytes: u64,
    /// Where the body begins and the text ends, and the elements between.
    body_at: u64,
    end: u64,
    elements: u64,
    /// What style, layout and paint cost for each element, where its page says so.
    pub layout_ns_per_element: Option<Duration>,
    /// What the first layout waits for fonts, where its page says so.
    pub layout_wait_ns: Option<Duration>,
    /// Its style rules name font families.
    pub names_fonts: bool,
    /// The first script in the text is a synthesised page's.
    pub driver: bool,
    /// What each inline script takes, as far as it is known.
    pub inline_ns: Vec<Duration>,
    /// What handlers of DOMContentLoaded take.
    pub content_loaded_ns: Duration,
    /// What handlers of the load event take.
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
    /// Elements that it, or a later one, has laid out with all stylesheets that have come.
    pub laid_elements: u64,
    /// Resources of style rules that wait for a layout.
    pub styled: Vec<u32>,
    /// Where images stand that were named before.
    pub repeated_images: Vec<u64>,
    /// Of its requests so far.
    pub seen: Seen,
    /// Held back, in order.
    pub held: Vec<u32>,
    /// Under way, of those that the loader may hold back.
    pub running: u32,
    /// Of them, of medium priority.
    pub medium: u32,
}

/// Requests under way, of whatever priority, with which none of low priority starts before the body begins;
/// so many of medium priority may go in any case (`tight_outstanding_limit_` and `tight_medium_limit_` in
/// Chromium's blink/renderer/platform/loader/fetch/resource_load_scheduler.cc).
const TIGHT: u32 = 2;

impl Document {
    /// The document of `resource`.
    pub fn new(page: &Page, links: &Links, resource: u32) -> Document {
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

    /// What the inline script of this number takes.
    pub fn inline_cost(&self, number: usize) -> Duration {
        self.inline_ns.get(number).copied().unwrap_or(Duration::ZERO)
    }

    /// True when a request of `priority` may go now; counts it as under way.
    pub fn admit(&mut self, priority: Priority) -> bool {
        let medium = priority == Priority::Medium;
        let held = !self.body && priority < Priority::High && self.running >= TIGHT;
        if held && !(medium && self.medium < TIGHT) {
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
