//! Who sends next between the two sides of a performance-enhancing proxy (HTTP-AE), and what they compress.
//!
//! The ground side of the real proxy asks [`Scheduler`], and so does the simulator's. It knows users, service
//! classes, answers and connections as numbers; it opens no socket and reads no clock.
//!
//! ```text
//! Scheduler ─► arrival   the paper's: connections by turns, first come, first served
//!     │   └──► fair      classes by share, users by deficit round robin, answers by priority
//!     ├──────► policy    what the run description says
//!   all ─────► answer    an answer and its turns
//! texts                  which answers are compressed
//! ```

mod answer;
mod arrival;
mod fair;
mod policy;
mod scheduler;
mod texts;

pub use answer::{Grant, LARGE_FRAME, SMALL_FRAME, Wanted};
pub use policy::{PepClass, PepSchedule, Policy};
pub use scheduler::Scheduler;
pub use texts::is_text;
