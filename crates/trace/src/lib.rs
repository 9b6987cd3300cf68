//! The one vocabulary of what happened in a run.
//!
//! Both back ends write the tables declared in [`schema`], so a metric cannot tell which of them
//! a trace came from. A table is one Parquet file named after it in the run's folder. Times are
//! integer nanoseconds from the run's epoch, sizes are bytes, windows are segments; a column that
//! a back end cannot know is null, never invented.
//!
//! Start at [`schema::TABLES`]; write with [`TableWriter`], or with [`Collected`] where nobody keeps the files.

mod collected;
mod digest;
pub mod schema;
mod value;
mod writer;

pub use collected::{Collected, Rows, Streams};
pub use digest::RowsDigest;
pub use schema::Row;
pub use value::Value;
pub use writer::{TableWriter, TraceError};

/// Builds a row by the names of its columns from values of mixed types.
#[macro_export]
macro_rules! row {
    ($($table:ident)::+ { $($column:ident: $value:expr),* $(,)? }) => {
        $($table)::+ { $($column: $crate::Value::from($value)),* }
    };
}
