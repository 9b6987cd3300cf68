//! Compiles src/probe.bpf.c to a BPF object and leaves it for embedding.

use std::path::{Path, PathBuf};

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    wirepaint_bpf_build::compile(Path::new("src/probe.bpf.c"), &[], &[], &out.join("probe.bpf.o"));
}
