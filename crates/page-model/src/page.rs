//! A page as a browser meets it: its resources, and what makes the browser ask for each.

use crate::priority::Priority;
use crate::refused::Refused;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use wirepaint_units::Duration;

/// Longest time that is accepted: of each KiB of 100 MB, in 1024ths of a nanosecond, it fits 64 bits.
pub(crate) const MOST_TIME: Duration = Duration::from_secs(60);

/// A page. `resources[0]` is the navigation; a cause comes before its effects.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Who answers.
    pub origins: Vec<Origin>,
    /// Requests, in an order in which causes come first.
    pub resources: Vec<Resource>,
    /// Paints of which rehearsals of the page tell more than the model.
    #[serde(default)]
    pub paints: Paints,
    /// Time of a fixed piece of work on the machine that rehearsed the page: the browser is of that machine, as
    /// the page's own times are. Without it the browser's times stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_ns: Option<Duration>,
}

/// What paints of a page follow, where it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Paints {
    /// The first contentful paint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Follows>,
    /// The largest contentful paint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Follows>,
}

/// A time that follows the latest of several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Follows {
    /// Resources: their last bytes.
    pub by: Vec<u32>,
    /// True when `by` are scripts and their last runs count, not their last bytes.
    #[serde(default)]
    pub run: bool,
    /// Time after the latest of them.
    pub after_ns: Duration,
}

/// One address and port, and whom it answers for.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PageOrigin")]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Host name.
    pub host: String,
    /// Address of the server.
    pub address: Ipv4Addr,
    /// Port of the server.
    pub port: u16,
    /// True for TLS.
    pub encrypted: bool,
}

/// One request and its answer.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resource {
    /// HTTP method.
    #[serde(default = "get")]
    pub method: String,
    /// Full address.
    pub url: String,
    /// Position of its origin.
    pub origin: u32,
    /// Requests to an origin share its connections when this number is the same. A browser keeps
    /// requests without credentials, and those of another site's frames, on connections of their own.
    #[serde(default)]
    pub pool: u32,
    /// HTTP status.
    pub status: u16,
    /// How the page uses it.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Headers of the answer.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// Bytes of the body on the wire, after content-encoding.
    pub wire_bytes: u64,
    /// Bytes of the body before content-encoding.
    pub decoded_bytes: u64,
    /// Bytes of the body in gzip of level 6, where a proxy may compress it; null where it does not or that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gzip_bytes: Option<u64>,
    /// What the browser's cache holds of it as the visit begins; null for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<Cached>,
    /// Bytes of the request's body.
    #[serde(default)]
    pub post_bytes: u64,
    /// Time the server takes between the request's last byte and the answer's first.
    #[serde(default)]
    pub think_ns: Duration,
    /// True when a shared cache answers with it without asking its server again (RFC 9111), soon after it was fetched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cacheable: bool,
    /// What asks for it; null for the navigation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Of one that a script asks for: further resources that must have had their effect before, as `cause.by`
    /// must; its delay counts from the last byte of the latest. Of a module: further modules that import it;
    /// the first to come asks for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<u32>,
    /// True when the first of `cause.by` and `also` asks for it, not the latest.
    #[serde(default)]
    pub after_first: bool,
    /// True when its delay counts from the last run of the scripts `cause.by` and `also`, not from their last byte.
    #[serde(default)]
    pub after_run: bool,
    /// True when it is not asked for before DOMContentLoaded of the page's own document.
    #[serde(default)]
    pub after_content_loaded: bool,
    /// The priority with which the browser asks for it, where it is known; else its kind and place decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// The page's own word on its priority (`fetchpriority`): true for high, false for low.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub urgent: Option<bool>,
    /// True for an image that paints in the first view port.
    #[serde(default)]
    pub in_viewport: bool,
    /// Of an image whose place in the page's own document is given: what the largest contentful paint
    /// counts of it, in CSS pixels of the first view port; 0 for nothing.
    #[serde(default)]
    pub area: u64,
    /// Of an image or frame in the [`InlineFlow`] of the page's own document: its box.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline_box: Option<InlineBox>,
    /// True when it is asked for after the load event, which then does not wait for it.
    #[serde(default)]
    pub after_load: bool,
    /// Whether the load event waits for it.
    #[serde(default)]
    pub holds_load: Holds,
    /// Time that the main thread spends on it once it has arrived; null for what is usual for its
    /// type and size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_ns: Option<Duration>,
    /// Of a document: what its text holds beside the elements that ask for resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Document>,
}

fn get() -> String {
    "GET".to_owned()
}

/// A stored answer in the browser's cache (RFC 9111). A page of a visit with a warm cache says it of each resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cached {
    /// It is used without a request.
    Fresh,
    /// A conditional request asks whether it may be used; the answer is a 304 with the resource's headers.
    Stale,
}

/// How a page uses a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A document or a frame.
    Html,
    /// A stylesheet.
    Css,
    /// A script.
    Js,
    /// An image.
    Image,
    /// A font.
    Font,
    /// Audio or video.
    Media,
    /// A fetch, a post, a beacon.
    Data,
    /// Anything else.
    Other,
}

/// Whether the load event waits for a resource. It never waits for the answer to a fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// Yes: what leads to it, a script that runs or a frame that is held open, holds the event back as well.
    #[default]
    Always,
    /// If it has been asked for by then.
    Asked,
    /// Until it is asked for: what leads to it holds the event back, its answer does not.
    Begun,
    /// No.
    Never,
}

/// Places in a document's text, as offsets into the decoded bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Where the body begins.
    pub body_at: u64,
    /// Elements in the body, taken as evenly spread.
    #[serde(default)]
    pub elements: u64,
    /// What style, layout and paint cost the main thread for each of them; null for what is usual.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout_ns_per_element: Option<Duration>,
    /// What style alone costs of that; null for the usual share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub style_ns_per_element: Option<Duration>,
    /// What its first style takes beyond that, waiting for a CPU.
    #[serde(default)]
    pub style_wait_ns: Duration,
    /// What its first layout takes beyond that, waiting for the browser's own process, which looks for fonts;
    /// null for what is usual where style rules name font families.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout_wait_ns: Option<Duration>,
    /// True when its style rules name font families.
    #[serde(default)]
    pub names_fonts: bool,
    /// True when it is synthesised: the first script in it prepares all that its own scripts would ask for.
    #[serde(default)]
    pub driver: bool,
    /// Where scripts without an address stand, in order.
    #[serde(default)]
    pub inline_scripts: Vec<u64>,
    /// What each of them takes of the main thread, as far as it is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inline_ns: Vec<Duration>,
    /// What handlers of DOMContentLoaded take.
    #[serde(default)]
    pub content_loaded_ns: Duration,
    /// What handlers of the load event take.
    #[serde(default)]
    pub load_ns: Duration,
    /// Where images stand that an earlier element names too.
    #[serde(default)]
    pub repeated_images: Vec<u64>,
    /// The largest text that the first view port shows, in CSS pixels; 0 without any.
    #[serde(default)]
    pub text_area: u64,
    /// The most CSS pixels that an image may cover of which nobody knows where it stands, since a script
    /// puts it there; 0 without any.
    #[serde(default)]
    pub unplaced_area: u64,
    /// Lines of inline boxes; null where places are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<InlineFlow>,
}

/// Lines that inline boxes fill one after another, in CSS pixels: those of the text in its order, then
/// those that scripts append.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InlineFlow {
    /// Top of the first line.
    pub top: u64,
    /// What of the first line is taken.
    pub used: u64,
    /// Length of a line.
    pub width: u64,
    /// Space that a line takes below its highest box.
    pub descent: u64,
    /// Height of the view port.
    pub viewport: u64,
}

/// A box in a [`InlineFlow`], in CSS pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InlineBox {
    /// Width.
    pub width: u64,
    /// Height.
    pub height: u64,
    /// Space on each side of it.
    pub margin: u64,
    /// True when its size is known before it has come.
    pub reserved: bool,
}

/// What makes the browser ask for a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Cause {
    /// The answer of resource `by` redirects to it.
    Redirect {
        /// The redirecting resource.
        by: u32,
    },
    /// An element in the text of document `by`.
    Markup {
        /// The document.
        by: u32,
        /// Offset of the element in the decoded document.
        at: u64,
        /// What kind of element.
        element: Element,
    },
    /// Stylesheet or module `by` imports it.
    Import {
        /// The stylesheet or module.
        by: u32,
    },
    /// An element is styled with it by stylesheet `by`: asked for when the page is laid out.
    Style {
        /// The stylesheet; a document for a style sheet within its text.
        by: u32,
    },
    /// A script asks for it, at the earliest `after_ns` after the last byte of `by` has arrived.
    Script {
        /// The script, the document whose text holds the script, or the data that it waited for.
        by: u32,
        /// Time from the cause's last byte to the request.
        #[serde(default)]
        after_ns: Duration,
    },
}

impl Cause {
    /// The causing resource.
    pub fn by(self) -> u32 {
        match self {
            Cause::Redirect { by }
            | Cause::Markup { by, .. }
            | Cause::Import { by }
            | Cause::Style { by }
            | Cause::Script { by, .. } => by,
        }
    }
}

/// How an element of a document loads what it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Element {
    /// A stylesheet: scripts after it and the first paint wait for it.
    Stylesheet,
    /// A script at which the parser stops.
    Script,
    /// A script that runs when it has come.
    AsyncScript,
    /// A script that runs when the document is parsed; modules too.
    DeferredScript,
    /// An image.
    Image,
    /// An image or frame that is asked for when it comes near the view port.
    Lazy,
    /// A frame.
    Frame,
    /// A preload: asked for as early as the scanner sees it, used by something else.
    Preload,
    /// Anything else that neither the parser nor the first paint waits for.
    Other,
}

impl Resource {
    /// Bytes of the body that the browser gets, as they are on the wire; some answers have none (RFC 9110, 6.4.1).
    pub fn body_bytes(&self) -> u64 {
        let bodiless = self.method == "HEAD" || matches!(self.status, 204 | 304);
        if bodiless { 0 } else { self.wire_bytes }
    }

    /// Bytes of the answer's body on the wire: none where the body comes from the cache.
    pub fn answer_bytes(&self) -> u64 {
        if self.cached.is_some() { 0 } else { self.body_bytes() }
    }

    /// The status of the answer on the wire.
    pub fn answer_status(&self) -> u16 {
        if self.cached == Some(Cached::Stale) { 304 } else { self.status }
    }

    /// The fields that make its request conditional (RFC 9110, 13.1), from the validators of the stored answer.
    pub fn conditions(&self) -> Vec<(&'static str, &str)> {
        if self.cached != Some(Cached::Stale) {
            return Vec::new();
        }
        let condition = |name: &str| match name.to_ascii_lowercase().as_str() {
            "etag" => Some("if-none-match"),
            "last-modified" => Some("if-modified-since"),
            _ => None,
        };
        self.headers.iter().filter_map(|(name, value)| Some((condition(name)?, value.as_str()))).collect()
    }

    /// True for what is parsed while it comes: documents, and scripts (Chromium's script streaming) of which the
    /// page does not say what they take, since that is said of all threads.
    pub fn is_parsed_as_it_comes(&self) -> bool {
        self.kind == Kind::Html || (self.kind == Kind::Js && self.compute_ns.is_none())
    }
}

impl Page {
    /// Refuses a page whose parts do not fit together.
    pub fn check(&self) -> Result<(), Refused> {
        let refuse = |key: String, found: String, accepted: String| Err(Refused { key, found, accepted });
        if self.resources.is_empty() {
            return refuse("resources".to_owned(), "none".to_owned(), "at least the navigation".to_owned());
        }
        for (i, resource) in self.resources.iter().enumerate() {
            if resource.origin as usize >= self.origins.len() {
                let accepted = format!("a position in origins, below {}", self.origins.len());
                return refuse(format!("resources[{i}].origin"), resource.origin.to_string(), accepted);
            }
            match resource.cause {
                None if i > 0 => {
                    let accepted = "a cause; only the first resource, the navigation, has none".to_owned();
                    return refuse(format!("resources[{i}].cause"), "null".to_owned(), accepted);
                }
                Some(_) if i == 0 => {
                    let accepted = "null: the first resource is the navigation".to_owned();
                    return refuse("resources[0].cause".to_owned(), "a cause".to_owned(), accepted);
                }
                Some(cause) if cause.by() as usize >= i => {
                    let accepted = format!("a resource before it, below {i}");
                    return refuse(format!("resources[{i}].cause.by"), cause.by().to_string(), accepted);
                }
                Some(Cause::Redirect { by }) if self.redirect_of(by) != Some(i as u32) => {
                    let accepted = "a resource that redirects to no other one".to_owned();
                    return refuse(format!("resources[{i}].cause.by"), by.to_string(), accepted);
                }
                Some(Cause::Markup { by, .. }) if self.resources[by as usize].kind != Kind::Html => {
                    let accepted = "an html resource, since only documents hold elements".to_owned();
                    return refuse(format!("resources[{i}].cause.by"), by.to_string(), accepted);
                }
                _ => {}
            }
            if let Some(also) = resource.also.iter().find(|&&also| also as usize >= i) {
                let accepted = format!("resources before it, below {i}");
                return refuse(format!("resources[{i}].also"), also.to_string(), accepted);
            }
            let waits = match resource.cause {
                Some(Cause::Script { .. }) => false,
                Some(Cause::Import { .. }) => resource.after_content_loaded,
                _ => resource.after_content_loaded || !resource.also.is_empty(),
            };
            if waits {
                let found = "also or after_content_loaded".to_owned();
                let accepted = "them where the cause is a script, also where it is an import".to_owned();
                return refuse(format!("resources[{i}]"), found, accepted);
            }
        }
        for (key, paint) in [("first", &self.paints.first), ("largest", &self.paints.largest)] {
            let beyond = |by: &&u32| **by as usize >= self.resources.len();
            if let Some(by) = paint.as_ref().and_then(|paint| paint.by.iter().find(beyond)) {
                let accepted = format!("resources, below {}", self.resources.len());
                return refuse(format!("paints.{key}.by"), by.to_string(), accepted);
            }
        }
        if let Some(processor) = self.processor_ns.filter(|time| !(1..=MOST_TIME.0).contains(&time.0)) {
            let accepted = format!("1 to {} ns", MOST_TIME.0);
            return refuse("processor_ns".to_owned(), processor.0.to_string(), accepted);
        }
        let document = self.tail(0);
        if self.resources[document as usize].kind != Kind::Html {
            let found = format!("{:?}", self.resources[document as usize].kind).to_lowercase();
            let accepted = "html: what the navigation leads to".to_owned();
            return refuse(format!("resources[{document}].type"), found, accepted);
        }
        Ok(())
    }

    /// The resource that `resource` redirects to.
    pub(crate) fn redirect_of(&self, resource: u32) -> Option<u32> {
        let leads = |other: &Resource| matches!(other.cause, Some(Cause::Redirect { by }) if by == resource);
        self.resources.iter().position(leads).map(|at| at as u32)
    }

    /// The last of the resources that `resource` redirects to; itself where it does not.
    pub(crate) fn tail(&self, resource: u32) -> u32 {
        let mut tail = resource;
        while let Some(next) = self.redirect_of(tail) {
            tail = next;
        }
        tail
    }
}
