//! What a flow transfers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wirepaint_units::{BitRate, Duration, Time};

/// What a flow transfers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum FlowKind {
    /// As much as TCP lets through.
    Bulk {
        /// Bytes; null for no end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
    },
    /// Writes of equal size at equal intervals.
    Cbr {
        /// Bytes of a write.
        write_bytes: u32,
        /// Payload rates, each from its time on, in order of time; rate 0 is idle.
        rates: Vec<RateFrom>,
    },
    /// The receiver asks, the sender answers, again and again.
    RequestResponse {
        /// Bytes of a request.
        request_bytes: u64,
        /// Bytes of an answer.
        response_bytes: u64,
        /// Number of exchanges; null for no end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        count: Option<u64>,
        /// Time between the last byte of an answer and the next request.
        #[serde(default)]
        pause_ns: Duration,
    },
}

/// A rate from a time on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateFrom {
    /// From when, counted as the flow's `start_ns`.
    pub at_ns: Time,
    /// The rate of payload.
    pub bit_per_s: BitRate,
}

impl FlowKind {
    /// Refuses values that are not accepted: key, found value, accepted values.
    pub fn check(&self) -> Result<(), (&'static str, String, &'static str)> {
        let refuse = |key, found: String, accepted| Err((key, found, accepted));
        match self {
            FlowKind::Bulk { bytes: Some(0) } => {
                refuse("kind.bytes", "0".to_owned(), "at least 1, or null for no end")
            }
            FlowKind::Cbr { write_bytes: 0, .. } => refuse("kind.write_bytes", "0".to_owned(), "at least 1"),
            FlowKind::Cbr { rates, .. } if rates.is_empty() || !rates.is_sorted_by_key(|rate| rate.at_ns) => {
                refuse("kind.rates", format!("{} rates", rates.len()), "at least one, in order of time")
            }
            FlowKind::Cbr { write_bytes, rates }
                if rates.iter().any(|rate| too_fast(rate.bit_per_s, *write_bytes)) =>
            {
                refuse(
                    "kind.rates",
                    "more than a write a nanosecond".to_owned(),
                    "a lower rate, or larger writes",
                )
            }
            FlowKind::RequestResponse { request_bytes, response_bytes, count, .. }
                if *request_bytes == 0 || *response_bytes == 0 || *count == Some(0) =>
            {
                refuse("kind", "a size or count of 0".to_owned(), "at least 1")
            }
            _ => Ok(()),
        }
    }
}

fn too_fast(rate: BitRate, write_bytes: u32) -> bool {
    rate.transmission_time(u64::from(write_bytes)) == Duration(0)
}
