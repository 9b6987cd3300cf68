//! Which recorded response answers a request.
//!
//! 1. The same method and address. 2. Else a pattern that a rehearsal of the page found. 3. Else the
//!    same method, host and path with the query that has most in common: most equal parameters, then
//!    most equal parameter names, then one that has not been used yet, then the longest common
//!    beginning. Pages put random numbers and times into queries; Mahimahi and Web Page Replay match
//!    them in this spirit. 4. Else nothing.
//!
//! Responses recorded for one address are used in order of recording; the last one is repeated.

use serde::Serialize;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

/// How a request was matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Matched {
    /// By the exact address.
    Exact,
    /// By a pattern of the page.
    Pattern,
    /// By another query of the same path.
    Query,
    /// Not at all.
    None,
}

/// The parts of an address that matching uses. The fragment is left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// `scheme://host[:port]` in lower case without the scheme's own port.
    pub origin: String,
    /// Path, at least `/`.
    pub path: String,
    /// The part behind the question mark.
    pub query: Option<String>,
}

impl Target {
    /// Reads an absolute http or https address; `None` for anything else.
    pub fn parse(url: &str) -> Option<Target> {
        let (scheme, rest) = url.split_once("://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        Target::new(scheme, &rest[..end], &rest[end..])
    }

    /// Builds a target from a scheme, an authority, and path with query.
    pub fn new(scheme: &str, authority: &str, path_and_query: &str) -> Option<Target> {
        let scheme = scheme.to_ascii_lowercase();
        let own_port = match scheme.as_str() {
            "http" => ":80",
            "https" => ":443",
            _ => return None,
        };
        let authority = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
        let host = authority.strip_suffix(own_port).unwrap_or(&authority).trim_end_matches(':');
        if host.is_empty() {
            return None;
        }
        let without_fragment = path_and_query.split('#').next().unwrap_or_default();
        let (path, query) = match without_fragment.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (without_fragment, None),
        };
        let path = if path.is_empty() { "/" } else { path };
        Some(Target { origin: format!("{scheme}://{host}"), path: path.to_owned(), query })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.origin, self.path)?;
        self.query.as_ref().map_or(Ok(()), |query| write!(f, "?{query}"))
    }
}

/// Responses recorded for one method and address.
#[derive(Debug)]
pub struct Group {
    query: Option<String>,
    /// Indexes of the responses in order of recording.
    pub responses: Vec<usize>,
    used: Cell<usize>,
}

impl Group {
    /// Takes the next response.
    pub fn take(&self) -> usize {
        let turn = self.used.get();
        self.used.set(turn + 1);
        self.responses[turn.min(self.responses.len() - 1)]
    }
}

/// All recorded addresses.
#[derive(Debug, Default)]
pub struct Index {
    by_path: HashMap<Key, Vec<Group>>,
    patterns: Vec<Pattern>,
}

/// An address with `*` for any text, and the address that was recorded for it.
#[derive(Debug)]
struct Pattern {
    method: String,
    text: String,
    group: Group,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    method: String,
    origin: String,
    path: String,
}

impl Key {
    fn new(method: &str, target: &Target) -> Key {
        Key { method: method.to_owned(), origin: target.origin.clone(), path: target.path.clone() }
    }
}

impl Index {
    /// Adds the response with this index; call in order of recording.
    pub fn add(&mut self, method: &str, target: &Target, response: usize) {
        let groups = self.by_path.entry(Key::new(method, target)).or_default();
        match groups.iter_mut().find(|group| group.query == target.query) {
            Some(group) => group.responses.push(response),
            None => groups.push(Group {
                query: target.query.clone(),
                responses: vec![response],
                used: Cell::new(0),
            }),
        }
    }

    /// Adds a pattern of the addresses that the response with this index answers too.
    pub fn add_pattern(&mut self, method: &str, pattern: &Target, response: usize) {
        let group = Group { query: None, responses: vec![response], used: Cell::new(0) };
        self.patterns.push(Pattern { method: method.to_owned(), text: pattern.to_string(), group });
    }

    /// The recorded responses that answer a request. A HEAD that was not recorded is answered as GET.
    pub fn find(&self, method: &str, target: &Target) -> Option<(&Group, Matched)> {
        let groups = self.by_path.get(&Key::new(method, target)).map_or(&[][..], Vec::as_slice);
        if let Some(group) = groups.iter().find(|group| group.query == target.query) {
            return Some((group, Matched::Exact));
        }
        let text = target.to_string();
        let fits = |pattern: &&Pattern| pattern.method == method && fits(&pattern.text, &text);
        // Of several that fit, takes the least used one.
        let fitting = self.patterns.iter().filter(fits).min_by_key(|pattern| pattern.group.used.get());
        if let Some(pattern) = fitting {
            return Some((&pattern.group, Matched::Pattern));
        }
        if groups.is_empty() && method == "HEAD" {
            return self.find("GET", target);
        }
        let asked = target.query.as_deref().unwrap_or_default();
        // Of equal ones the first recorded wins: `max_by_key` keeps the last, hence the reversal.
        let best = groups.iter().rev().max_by_key(|group| likeness(asked, group));
        best.map(|group| (group, Matched::Query))
    }
}

/// True when `text` is `pattern` with any text for each `*`.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn likeness(asked: &str, group: &Group) -> (usize, usize, bool, usize) {
    let recorded = group.query.as_deref().unwrap_or_default();
    let names = |query: &str| -> HashSet<String> {
        query.split('&').map(|pair| pair.split('=').next().unwrap_or_default().to_owned()).collect()
    };
    let pairs: HashSet<&str> = recorded.split('&').filter(|pair| !pair.is_empty()).collect();
    (
        asked.split('&').collect::<HashSet<_>>().intersection(&pairs).count(),
        names(asked).intersection(&names(recorded)).count(),
        group.used.get() == 0,
        asked.bytes().zip(recorded.bytes()).take_while(|(a, b)| a == b).count(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Target {
        Target::parse(url).unwrap()
    }

    fn index(urls: &[&str]) -> Index {
        let mut index = Index::default();
        for (i, url) in urls.iter().enumerate() {
            index.add("GET", &target(url), i);
        }
        index
    }

    fn ask(index: &Index, url: &str) -> Option<(usize, Matched)> {
        index.find("GET", &target(url)).map(|(group, matched)| (group.take(), matched))
    }

    #[test]
    fn addresses_are_compared_without_default_port_case_of_host_and_fragment() {
        assert_eq!(target("HTTPS://Example.org:443/A#x").to_string(), "https://example.org/A");
        assert_eq!(target("http://example.org").to_string(), "http://example.org/");
        assert_eq!(target("http://example.org:8080?a").to_string(), "http://example.org:8080/?a");
        for bad in ["data:text/plain,x", "/x", "ftp://a/", "http:///x", ""] {
            assert_eq!(Target::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_repeated_address_is_answered_in_order_and_the_last_one_again() {
        let index = index(&["http://a/", "http://a/x", "http://a/"]);
        let turns: Vec<_> = (0..4).map(|_| ask(&index, "http://a/").unwrap().0).collect();
        assert_eq!(turns, [0, 2, 2, 2]);
    }

    #[test]
    fn the_query_with_most_equal_parameters_answers() {
        let index = index(&["http://a/x?u=1&t=5", "http://a/x?u=2&t=6", "http://a/y"]);
        assert_eq!(ask(&index, "http://a/x?t=99&u=2"), Some((1, Matched::Query)));
        assert_eq!(ask(&index, "http://a/x?u=1&t=5"), Some((0, Matched::Exact)));
        assert_eq!(ask(&index, "http://a/y?anything"), Some((2, Matched::Query)));
        assert_eq!(ask(&index, "http://a/z"), None);
        assert_eq!(ask(&index, "https://a/y"), None);
    }

    #[test]
    fn random_numbers_use_up_the_recorded_ones_before_one_is_used_again() {
        let index = index(&["http://a/p?r=123", "http://a/p?r=456", "http://a/p?r=789"]);
        assert_eq!(ask(&index, "http://a/p?r=459"), Some((1, Matched::Query)));
        assert_eq!(ask(&index, "http://a/p?r=458"), Some((0, Matched::Query)));
        assert_eq!(ask(&index, "http://a/p?r=457"), Some((2, Matched::Query)));
        assert_eq!(ask(&index, "http://a/p?r=455"), Some((1, Matched::Query)));
    }

    #[test]
    fn a_pattern_answers_addresses_whose_paths_vary() {
        let mut index = index(&["http://a/t/1?x=1", "http://a/t/2?x=2", "http://a/x?u=1"]);
        index.add_pattern("GET", &target("http://a/t/*?x=*"), 0);
        index.add_pattern("GET", &target("http://a/t/*?x=*"), 1);
        assert_eq!(ask(&index, "http://a/t/7?x=9"), Some((0, Matched::Pattern)));
        assert_eq!(ask(&index, "http://a/t/8?x=9"), Some((1, Matched::Pattern)));
        assert_eq!(ask(&index, "http://a/t/2?x=2"), Some((1, Matched::Exact)));
        assert_eq!(ask(&index, "http://a/t/7"), None);
        assert_eq!(ask(&index, "http://a/x?u=2"), Some((2, Matched::Query)));
        for (pattern, text, fit) in [("a*b", "ab", true), ("a*b", "aXbXb", true), ("a*ba", "aba", true)] {
            assert_eq!(fits(pattern, text), fit, "{pattern} {text}");
        }
        assert!(!fits("ab*ba", "aba") && !fits("ab", "abc") && !fits("*x*", "aba"));
    }

    #[test]
    fn a_head_is_answered_as_the_get_it_stands_for_but_a_post_is_not() {
        let index = index(&["http://a/"]);
        assert!(index.find("HEAD", &target("http://a/")).is_some());
        assert!(index.find("POST", &target("http://a/")).is_none());
    }
}
