//! Conditional requests: what a cache asks of a stored response (RFC 9110, section 13).

use crate::headers::Fields;

/// The conditions of a request; empty for most.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// `if-none-match`.
    pub none_match: Option<String>,
    /// `if-modified-since`.
    pub modified_since: Option<String>,
}

impl Conditions {
    /// Whether the response that is stored is the recorded one. `if-none-match` decides where both are given
    /// (RFC 9110, 13.2.2).
    pub fn hold_for(&self, recorded: &Fields) -> bool {
        let value = |name| recorded.map.get(name).and_then(|value| value.to_str().ok());
        let strong = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        if let Some(tags) = &self.none_match {
            return value("etag").is_some_and(|tag| tags.split(',').any(|one| strong(one) == strong(tag)));
        }
        let date = |text: &str| httpdate::parse_http_date(text).ok();
        match (&self.modified_since, value("last-modified")) {
            (Some(since), Some(modified)) => {
                date(since).zip(date(modified)).is_some_and(|(since, modified)| modified <= since)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "Sat, 26 Oct 1985 08:15:00 GMT";
    const NEW: &str = "Mon, 24 Oct 2016 21:33:21 GMT";

    fn hold(tags: Option<&str>, since: Option<&str>, recorded: &[(&str, &str)]) -> bool {
        let recorded: Vec<_> = recorded.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        let fields = Fields::new(&recorded, std::time::SystemTime::now()).unwrap();
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Conditions { none_match: owned(tags), modified_since: owned(since) }.hold_for(&fields)
    }

    #[test]
    fn a_tag_is_compared_weakly_and_decides_over_a_date() {
        let recorded = [("ETag", "W/\"a\""), ("Last-Modified", OLD)];
        assert!(hold(Some("\"x\", \"a\""), None, &recorded));
        assert!(!hold(Some("\"b\""), Some(NEW), &recorded));
        assert!(!hold(Some("\"a\""), None, &[("Last-Modified", OLD)]));
    }

    #[test]
    fn a_date_holds_from_the_last_modification_on() {
        let recorded = [("Last-Modified", OLD)];
        assert!(hold(None, Some(OLD), &recorded) && hold(None, Some(NEW), &recorded));
        assert!(!hold(None, Some(OLD), &[("Last-Modified", NEW)]));
        assert!(!hold(None, Some("yesterday"), &recorded) && !hold(None, None, &recorded));
        assert!(!hold(None, Some(NEW), &[]));
    }
}
