//! Parts of a body: a recorded 206, cut to the requested range (RFC 9110, section 14).
//!
//! A recording without 206 is always sent whole. One with 206 answers any range within a recorded part,
//! because players request other ranges on other networks.

/// A recorded or answered `content-range: bytes first-last/total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// First byte.
    pub first: u64,
    /// Last byte, included.
    pub last: u64,
    /// Size of the whole; `None` when unknown (`*`).
    pub total: Option<u64>,
}

impl ContentRange {
    /// Reads a header value; `None` if it is no satisfied byte range.
    pub fn parse(value: &str) -> Option<ContentRange> {
        let (part, total) = value.trim().strip_prefix("bytes ")?.split_once('/')?;
        let (first, last) = part.split_once('-')?;
        let range = ContentRange {
            first: first.trim().parse().ok()?,
            last: last.trim().parse().ok()?,
            total: if total == "*" { None } else { Some(total.parse().ok()?) },
        };
        (range.first <= range.last && range.total.is_none_or(|total| range.last < total)).then_some(range)
    }

    /// Bytes in the range.
    pub fn length(&self) -> u64 {
        self.last - self.first + 1
    }

    /// True when the range is everything.
    pub fn is_whole(&self) -> bool {
        self.first == 0 && self.total == Some(self.length())
    }
}

impl std::fmt::Display for ContentRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "bytes {}-{}/", self.first, self.last)?;
        match self.total {
            Some(total) => write!(f, "{total}"),
            None => f.write_str("*"),
        }
    }
}

/// A request's `range: bytes=...` with one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// From a byte to another, included, or to the end.
    From(u64, Option<u64>),
    /// The last N bytes.
    Last(u64),
}

impl Wanted {
    /// Reads a header value; `None` for several ranges or anything else, which the server ignores as RFC 9110
    /// allows.
    pub fn parse(value: &str) -> Option<Wanted> {
        let (first, last) = value.trim().strip_prefix("bytes=")?.split_once('-')?;
        let number = |text: &str| text.trim().parse::<u64>();
        match (first.trim().is_empty(), last.trim().is_empty()) {
            (true, false) => number(last).ok().map(Wanted::Last),
            (false, true) => number(first).ok().map(|first| Wanted::From(first, None)),
            (false, false) => {
                let (first, last) = (number(first).ok()?, number(last).ok()?);
                (first <= last).then_some(Wanted::From(first, Some(last)))
            }
            (true, true) => None,
        }
    }

    /// The part of `recorded` that answers this; `None` if its first byte lies outside.
    pub fn within(self, recorded: ContentRange) -> Option<ContentRange> {
        let (first, last) = match self {
            Wanted::From(first, last) => (first, last.unwrap_or(recorded.last)),
            Wanted::Last(count) => (recorded.total?.saturating_sub(count), recorded.total?.checked_sub(1)?),
        };
        let fits = recorded.first <= first && first <= recorded.last;
        fits.then(|| ContentRange { first, last: last.min(recorded.last), ..recorded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_within_the_recorded_part_is_cut_out_of_it() {
        let recorded = ContentRange::parse("bytes 100-199/1000").unwrap();
        assert_eq!(recorded.length(), 100);
        assert!(!recorded.is_whole());
        let cut = Wanted::parse("bytes=150-").unwrap().within(recorded).unwrap();
        assert_eq!(cut.to_string(), "bytes 150-199/1000");
        assert_eq!(Wanted::parse("bytes=100-120").unwrap().within(recorded).unwrap().length(), 21);
        assert_eq!(Wanted::parse("bytes=0-").unwrap().within(recorded), None);
        assert_eq!(Wanted::parse("bytes=-5").unwrap().within(recorded), None);
    }

    #[test]
    fn the_end_of_a_whole_recording_can_be_asked_for() {
        let recorded = ContentRange::parse("bytes 0-999/1000").unwrap();
        assert!(recorded.is_whole());
        let cut = Wanted::parse("bytes=-10").unwrap().within(recorded).unwrap();
        assert_eq!(cut.to_string(), "bytes 990-999/1000");
    }

    #[test]
    fn nonsense_is_no_range() {
        for text in ["bytes=", "bytes=-", "bytes=5-2", "bytes=a-b", "lines=1-2", "bytes=0-1,5-6"] {
            assert_eq!(Wanted::parse(text), None, "{text}");
        }
        for text in ["bytes */5", "bytes 5-2/9", "bytes 0-9/5", "0-1/2", "bytes 0-18446744073709551615/*x"] {
            assert_eq!(ContentRange::parse(text), None, "{text}");
        }
    }
}
