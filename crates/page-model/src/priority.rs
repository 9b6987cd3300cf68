//! Urgency of requests: five levels, and what a browser says of them on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Priorities of a request, least first (the levels of DevTools).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Priority {
    /// Beacons and prefetches.
    VeryLow,
    /// Images, asynchronous scripts.
    Low,
    /// The first images, scripts after them.
    Medium,
    /// Scripts, fetches, visible images.
    High,
    /// Documents, stylesheets, fonts.
    VeryHigh,
}

impl Priority {
    /// The name that DevTools uses.
    pub fn name(self) -> &'static str {
        match self {
            Priority::VeryLow => "VeryLow",
            Priority::Low => "Low",
            Priority::Medium => "Medium",
            Priority::High => "High",
            Priority::VeryHigh => "VeryHigh",
        }
    }

    /// Urgency of RFC 9218, 0 first.
    pub fn urgency(self) -> u8 {
        Priority::VeryHigh as u8 - self as u8
    }
}
