//! The path in real time: moves Ethernet frames between two interfaces through the link model.
//!
//! One thread, both directions. Frames arrive through memory-mapped receive rings with the kernel's stamps,
//! pass a [`wirepaint_link_model::Link`] per direction and leave through `sendmmsg` when they are due. The
//! thread sleeps between departures and records the lateness of every packet.
//!
//! Start at [`command`] (the verb `emulate`), then `forward.rs` (the loop) and `lane.rs` (one direction).
//! [`probe`] measures a path.

mod clients;
mod clock;
mod error;
mod forward;
mod frame;
mod histogram;
mod lane;
mod port;
pub mod probe;
mod realtime;
mod recorder;
mod summary;

pub use error::Error;
use realtime::Realtime;

use std::path::Path;
use wirepaint_run::Run;
use wirepaint_run::signals::Signals;

/// The verb `emulate RUN.json`: forwards until SIGTERM or SIGINT, then writes the tables `link`
/// and `packet` and prints the summary.
///
/// Runs in the namespace that holds both interfaces of the segment.
///
/// `beside` is for a run that has others beside it: the CPU that its emulator takes. Without it that is the last one of
/// those that it may use.
pub fn command(path: &Path, beside: Option<usize>) -> Result<(), Error> {
    let run = Run::read(path)?;
    let ring_frames = if beside.is_some() { port::SMALL_RING_FRAMES } else { port::RING_FRAMES };
    let mut forwarder = forward::Forwarder::new(&run, path, ring_frames)?;
    let realtime = Realtime::begin(beside);
    let conditions = realtime.conditions.clone();
    let stop = Signals::block();
    println!("{}", serde_json::json!({"ready": true, "conditions": conditions}));
    forwarder.run(&stop)?;
    drop(realtime);
    let summary = forwarder.summary(&conditions)?;
    forwarder.write_tables(&run.trace_dir)?;
    println!("{}", serde_json::to_string(&summary).expect("a summary is plain data"));
    Ok(())
}
