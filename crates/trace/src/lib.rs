//! The one vocabulary of what happened in a run.
//!
//! Both back ends write the tables declared in [`schema`], so a metric cannot tell which of them
//! a trace came from. A table is one Parquet file named after it in the run's folder. Times are
//! integer nanoseconds from the run's epoch, sizes are bytes, windows are segments; a column that
//! a back end cannot know is null, never invented.
//!
//! Start at [`schema::TABLES`]; write with [`TableWriter`].

pub mod schema;
mod writer;

pub use writer::{TableWriter, TraceError, Value};

/// Builds one row from values of mixed types, in the order of the table's columns.
#[macro_export]
macro_rules! row {
    ($($value:expr),* $(,)?) => { &[$($crate::Value::from($value)),*] };
}
