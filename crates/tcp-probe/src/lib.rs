//! The sender's window as reported by the kernel: table `tcp` of the trace.
//!
//! BPF programs on the kernel's tracepoints (probe.bpf.c) record the established TCP sockets of one
//! network namespace: the server's, or the proxy's if there is one. A row is one of
//!
//! * `ack`: a segment arrived (tcp_probe). The row shows the sender before the segment's effect: its window
//!   and flight size since the previous row. An ACK's effect on the window is therefore in the next row, and
//!   `delivered` counts the segments delivered before it.
//! * `state`: the congestion state changes (tcp_cong_state_set). `state` is the new one. On entering Recovery
//!   or CWR, ssthresh is new too, and cwnd is not reduced yet.
//! * `retransmit`: a segment is sent again (tcp_retransmit_skb).
//!
//! Nothing outlives the process: its BPF links, which hold the programs, end with it.
//!
//! [`command`] is the verb `probe-tcp RUN.json`.

mod record;
mod unseen;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::DataSec;
use libbpf_rs::{AsRawLibbpf, Link, MapCore, Object, ObjectBuilder, OpenObject, RingBufferBuilder};
use record::{EVENT_END, Record};
use serde_json::json;
use std::cell::RefCell;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use unseen::Unseen;
use wirepaint_run::signals::Signals;
use wirepaint_run::{Run, RunError};
use wirepaint_trace::{TableWriter, TraceError};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/probe.bpf.o"));

/// Pause between two readings of the ring buffer, which holds 16 MiB: over 170,000 samples.
const PAUSE: Duration = Duration::from_millis(20);

/// Why the kernel's TCP could not be sampled.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The run description is wrong.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The kernel or libbpf refused.
    #[error("sampling the kernel's TCP: {0} (needs root: CAP_BPF, CAP_PERFMON; and a kernel with BTF)")]
    Kernel(#[from] libbpf_rs::Error),
    /// The table could not be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// The verb `probe-tcp RUN.json`: samples until SIGTERM or SIGINT.
///
/// Prints `{"ready": true}`, and at the end `{"samples", "lost", "skipped", "unseen"}`: rows written; samples
/// that found the ring buffer full; program runs that the kernel skipped, on the whole host, because one
/// interrupted another on its CPU (some may have been for this namespace); and connections with segments that
/// TCP processed without these programs ([`unseen`]).
pub fn command(path: &Path) -> ExitCode {
    match probe(path) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(if matches!(error, ProbeError::Run(_)) { 2 } else { 1 })
        }
    }
}

fn probe(path: &Path) -> Result<(), ProbeError> {
    let signals = Signals::block();
    let run = Run::read(path)?;
    let host = run.sender(path)?;
    let inode = *run.part(path, "hosts.namespace_inode", &host.namespace_inode)?;
    let mut table = TableWriter::create(&run.trace_dir)?;
    let probe = Probe::attach(inode)?;

    // The callback cannot return our error: the first one is kept and ends the loop.
    let sink = RefCell::new((&mut table, Unseen::default(), 0_u64, None));
    let ring = probe.map("records");
    let mut builder = RingBufferBuilder::new();
    builder.add(&ring, |bytes| {
        let (table, unseen, samples, failure) = &mut *sink.borrow_mut();
        let record = Record::read(bytes);
        unseen.count(&record);
        if record.event == EVENT_END {
            return 0;
        }
        *samples += 1;
        match table.push(&record.row(&host.name, run.epoch_ns)) {
            Ok(()) => 0,
            Err(error) => {
                *failure = Some(error);
                -1
            }
        }
    })?;
    let reader = builder.build()?;
    println!("{}", json!({"ready": true}));
    let mut stop = false;
    while !stop {
        stop = signals.wait_for(PAUSE);
        let result = reader.consume();
        if let Some(error) = sink.borrow_mut().3.take() {
            return Err(error.into());
        }
        result?;
    }
    drop(reader);
    let (_, unseen, samples, _) = sink.into_inner();
    let (lost, skipped) = (probe.overruns()?, probe.skipped());
    table.finish()?;
    let unseen = unseen.connections();
    println!("{}", json!({"samples": samples, "lost": lost, "skipped": skipped, "unseen": unseen}));
    Ok(())
}

/// The attached programs.
struct Probe {
    // Dropped first: links before the programs.
    _links: Vec<Link>,
    object: Object,
}

impl Probe {
    fn attach(inode: u32) -> Result<Probe, libbpf_rs::Error> {
        libbpf_rs::set_print(None);
        let mut open = ObjectBuilder::default().name("tcp_probe")?.open_memory(OBJECT)?;
        set_inode(&mut open, inode);
        let object = open.load()?;
        let links = object.progs_mut().map(|program| program.attach()).collect::<Result<Vec<Link>, _>>()?;
        Ok(Probe { _links: links, object })
    }

    fn map(&self, name: &str) -> libbpf_rs::Map<'_> {
        self.object.maps().find(|map| map.name() == name).expect("probe.bpf.c declares the map")
    }

    /// Samples that found the ring buffer full: `overruns` of probe.bpf.c, alone in .bss.
    fn overruns(&self) -> Result<u64, libbpf_rs::Error> {
        let bss = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let bytes = bss
            .expect("probe.bpf.c has a counter")
            .lookup(&0_u32.to_ne_bytes(), libbpf_rs::MapFlags::ANY)?
            .expect("an array has its element");
        Ok(u64::from_ne_bytes(bytes[..8].try_into().expect("the counter has 8 bytes")))
    }

    fn skipped(&self) -> u64 {
        self.object
            .progs()
            .map(|program| {
                let mut info = libbpf_sys::bpf_prog_info::default();
                let mut size = size_of_val(&info) as u32;
                // SAFETY: the descriptor is open, and info and size describe each other.
                let failed = unsafe {
                    libbpf_sys::bpf_prog_get_info_by_fd(program.as_fd().as_raw_fd(), &mut info, &mut size)
                };
                if failed == 0 { info.recursion_misses } else { 0 }
            })
            .sum()
    }
}

/// Writes the namespace's inode into the read-only data, which has no other variable.
fn set_inode(open: &mut OpenObject, inode: u32) {
    debug_assert!({
        // SAFETY: the object lives through this block and is not changed in it.
        let raw = unsafe { open.as_libbpf_object().as_ref() };
        let btf = Btf::from_bpf_object(raw).ok().flatten().expect("objects are compiled with -g");
        btf.type_by_name::<DataSec>(".rodata").is_some_and(|section| section.len() == 1)
    });
    let mut rodata = open
        .maps_mut()
        .find(|map| map.name().to_string_lossy().ends_with(".rodata"))
        .expect("probe.bpf.c has a constant");
    let bytes = rodata.initial_value_mut().expect("libbpf keeps the section");
    bytes[..4].copy_from_slice(&inode.to_ne_bytes());
}
