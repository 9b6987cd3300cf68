//! Page visits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirepaint_units::{Duration, Time};

/// One visit of one page by one user.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Visit {
    /// Name of the user agent.
    pub user_agent: String,
    /// Name of the page.
    pub name: String,
    /// The host with the browser.
    #[serde(default = "client")]
    pub client: String,
    /// The host with all servers of the page.
    #[serde(default = "server")]
    pub server: String,
    /// Number of an earlier visit: this one begins after that one's load event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u32>,
    /// Navigation start; with `after`, counted from the end of that visit.
    #[serde(default)]
    pub start_ns: Time,
    /// When the browser gives up, counted from the navigation start.
    pub timeout_ns: Duration,
    /// Segments that its packets cross, from the server to the client. Null: all of the run, in their order;
    /// empty: a path without delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Vec<String>>,
    /// Group for reroutes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Name in `sites`: who answers (testbed only).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub site: String,
    /// What the browser's cache holds as the visit begins. A real browser is given it; a modelled one reads it in `page`.
    #[serde(default)]
    pub cache: BrowserCache,
    /// Where a real browser goes (testbed only). Null there: a light user loads `page` as `browser`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub navigation: Option<Navigation>,
    /// Name in `pages`: what the model of a browser or a light user loads.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub page: String,
    /// Name in `browsers`: the browser that the model or the light user is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub browser: String,
}

/// What the HTTP cache of a browser holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BrowserCache {
    /// Nothing.
    #[default]
    Cold,
    /// What an earlier visit of the same page left, which is not measured.
    Warm,
    /// What the earlier visits of the same user in the run left.
    Shared,
}

/// What a real browser is told of a visit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Navigation {
    /// Address of the base document.
    pub url: String,
    /// View port in CSS pixels: width, height.
    pub viewport: (u32, u32),
    /// True for a phone: touch, and the page's own scale.
    pub mobile: bool,
    /// What the page's clock shows at the navigation, in ms since 1970; null for the real time.
    pub clock_ms: Option<i64>,
    /// Seed of the page's random numbers.
    pub seed: u64,
}

pub(crate) fn client() -> String {
    "client".to_owned()
}

pub(crate) fn server() -> String {
    "server".to_owned()
}
