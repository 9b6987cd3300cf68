//! The catalogue's browsers, for tests: the product gets them with its run description.

use crate::browser::Browser;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Chromium 156.
///
/// # Panics
///
/// If the entry is none.
pub fn chromium() -> Browser {
    read(include_str!("../../../python/wirepaint/catalog/browsers/chromium-156.toml"))
}

/// A browser's entry: sections of numbers, each with its source.
#[derive(Deserialize)]
struct Entry {
    browser: BTreeMap<String, toml::Value>,
}

fn read(text: &str) -> Browser {
    let entry: Entry = toml::from_str(text).expect("a browser's entry");
    let browser = toml::Value::Table(entry.browser.into_iter().map(|(key, of)| (key, plain(of))).collect());
    browser.try_into().expect("the numbers of a browser")
}

/// `{ value = V, from = SOURCE }` as V, at any depth.
fn plain(value: toml::Value) -> toml::Value {
    match value {
        toml::Value::Table(mut table) if table.contains_key("from") => {
            table.remove("value").expect("a value beside its source")
        }
        toml::Value::Table(table) => {
            toml::Value::Table(table.into_iter().map(|(key, of)| (key, plain(of))).collect())
        }
        other => other,
    }
}
