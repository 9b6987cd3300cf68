//! What a link of a run is called.

/// A link by segment and direction. The wire of an empty route has no segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkName {
    pub segment: String,
    pub direction: &'static str,
}

impl std::fmt::Display for LinkName {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}.{}", self.segment, self.direction)
    }
}
