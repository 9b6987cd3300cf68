//! Limits of heads, on connections with browsers and origins and between the sides.

/// Most fields of a head.
pub const FIELDS_LIMIT: usize = 256;
/// Largest head in bytes, as it was on a connection.
pub const HEAD_LIMIT: usize = 64 * 1024;
