//! Compiles every congestion/algorithms/NAME.c to a BPF object and embeds it, and libbpf's headers.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../congestion");
    let include = root.join("include");
    println!("cargo:rerun-if-changed={}", include.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));

    let mut table = String::from("static OBJECTS: &[(&str, &[u8])] = &[\n");
    for name in wirepaint_bpf_build::stems(&root.join("algorithms")) {
        let source = root.join("algorithms").join(format!("{name}.c"));
        let object = out.join(format!("{name}.bpf.o"));
        wirepaint_bpf_build::compile(&source, &[&include], &[("CC_NAME", &name)], &object);
        table += &format!("    ({name:?}, include_bytes!({object:?})),\n");
    }
    table += "];\n";
    // Headers that a user's own file needs at run time.
    let libbpf = PathBuf::from(env::var_os("DEP_BPF_INCLUDE").expect("the crate depends on libbpf-sys"));
    let headers = ["bpf_core_read.h", "bpf_endian.h", "bpf_helper_defs.h", "bpf_helpers.h", "bpf_tracing.h"]
        .map(|file| libbpf.join("bpf").join(file));
    table += &wirepaint_bpf_build::embedded("LIBBPF_HEADERS", &headers);
    fs::write(out.join("objects.rs"), table).expect("OUT_DIR can be written");
}
