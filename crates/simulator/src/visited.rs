//! What proxies know of a visit.

use wirepaint_http_model::RequestHeads;
use wirepaint_page_model::browser::Tls;
use wirepaint_page_model::page::{Origin, Resource};
use wirepaint_page_model::{Page, Prepared};
use wirepaint_units::Duration;

/// A visit whose requests proxies answer.
pub struct Visited {
    /// Its page.
    pub prepared: Prepared,
    /// The fields that its browser puts into its requests.
    pub heads: RequestHeads,
    /// TLS of the servers.
    pub tls: Tls,
    /// Number of the user: visits of one client have the same.
    pub user: u32,
    /// Service class of the user at a PEP.
    pub class: usize,
}

impl Visited {
    /// Its page.
    pub fn page(&self) -> &Page {
        self.prepared.page()
    }

    /// A resource.
    pub fn resource(&self, resource: u32) -> &Resource {
        &self.page().resources[resource as usize]
    }

    /// Who answers for a resource.
    pub fn origin(&self, resource: u32) -> &Origin {
        &self.page().origins[self.resource(resource).origin as usize]
    }

    /// Whether a resource is asked for over TLS.
    pub fn is_encrypted(&self, resource: u32) -> bool {
        self.origin(resource).encrypted
    }

    /// Time that the server takes.
    pub fn think(&self, resource: u32) -> Duration {
        self.resource(resource).think_ns
    }

    /// Bytes of a request in HTTP/1.1 to which a proxy adds `more`.
    pub fn request(&self, resource: u32, more: u32) -> u64 {
        self.prepared.plain_request(resource, self.heads) + u64::from(more)
    }

    /// Bytes of the head of an answer in HTTP/1.1, and of its body.
    pub fn answer(&self, resource: u32) -> (u64, u64) {
        (self.prepared.plain_head(resource), self.resource(resource).answer_bytes())
    }
}
