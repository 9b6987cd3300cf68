//! Pages of runs, prepared for their visits.

use crate::error::Error;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use wirepaint_page_model::{Page, Prepared};
use wirepaint_run::RunError;

/// Pages by name, each prepared once for all of its visits.
pub type Pages = BTreeMap<String, Prepared>;

/// Checks and prepares pages. Errors name `place`.
pub fn prepare(pages: BTreeMap<String, Page>, place: &Path) -> Result<Pages, Error> {
    let prepared = pages.into_iter().map(|(name, page)| {
        page.check()
            .map_err(|e| Error::value(place, format!("pages.{name}.{}", e.key), e.found, e.accepted))?;
        Ok((name, Prepared::new(page)))
    });
    prepared.collect()
}

/// Pages that several runs share, as JSON.
pub(crate) struct Shared {
    text: String,
    prepared: OnceLock<Pages>,
}

impl Shared {
    pub fn new(text: &str) -> Shared {
        Shared { text: text.to_owned(), prepared: OnceLock::new() }
    }

    /// The pages. Errors name `place`.
    pub fn pages(&self, place: &Path) -> Result<&Pages, Error> {
        if let Some(known) = self.prepared.get() {
            return Ok(known);
        }
        let read = serde_json::from_str(&self.text)
            .map_err(|source| RunError::Json { path: place.to_owned(), source })?;
        let pages = prepare(read, place)?;
        Ok(self.prepared.get_or_init(|| pages))
    }
}
