//! Costs of the hooks of loaded congestion controls, if the kernel keeps BPF run-time statistics.

use crate::Loaded;
use libbpf_rs::Object;
use serde::Serialize;
use std::os::fd::{AsFd, AsRawFd};

/// Runs of one hook of one instance, and the time they took.
#[derive(Debug, Serialize)]
pub struct HookCost {
    /// Name of the instance.
    pub name: String,
    /// Name of the hook's program.
    pub hook: String,
    /// Number of runs.
    pub runs: u64,
    /// Run time in nanoseconds, including the kernel's own measurement.
    pub ns: u64,
}

impl Loaded {
    /// The hooks that ran while statistics were on (`BPF_ENABLE_STATS`, kernel.bpf_stats_enabled).
    pub fn costs(&self) -> Vec<HookCost> {
        self.names
            .iter()
            .zip(&self.objects)
            .flat_map(|(name, object)| hooks(name, object))
            .filter(|cost| cost.runs > 0)
            .collect()
    }
}

fn hooks(name: &str, object: &Object) -> impl Iterator<Item = HookCost> {
    object.progs().map(move |program| {
        let mut info = libbpf_sys::bpf_prog_info::default();
        let mut size = size_of_val(&info) as u32;
        // SAFETY: the descriptor is open, and info and size describe each other. A refusal leaves
        // info zero.
        unsafe { libbpf_sys::bpf_prog_get_info_by_fd(program.as_fd().as_raw_fd(), &mut info, &mut size) };
        HookCost {
            name: name.to_owned(),
            hook: program.name().to_string_lossy().into_owned(),
            runs: info.run_cnt,
            ns: info.run_time_ns,
        }
    })
}
