//! The user's own congestion control, compiled to BPF when it is loaded.
//!
//! The machine needs clang; the headers, libbpf's included, are embedded here.

use std::env::consts::ARCH;
use std::fs;
use std::path::Path;
use wirepaint_bpf_build::{Compilation, bpf_object};
use wirepaint_congestion_native::external::{Unpacked, name_of};

/// The BPF object of a C file. An error has the file, the place in it and the cause.
pub fn compile(path: &Path) -> Result<Vec<u8>, String> {
    let name = name_of(path)?;
    let folder = Unpacked::new()?;
    let libbpf = folder.path.join("bpf");
    let explain = |error: std::io::Error| format!("{}: {error}", libbpf.display());
    fs::create_dir(&libbpf).map_err(explain)?;
    for (file, text) in crate::LIBBPF_HEADERS {
        fs::write(libbpf.join(file), text).map_err(explain)?;
    }
    let object = folder.path.join("object.o");
    let asked =
        Compilation { source: path, include: &[&folder.path], macros: &[("CC_NAME", name)], output: &object };
    bpf_object(&asked, ARCH).map_err(|message| match message.contains("clang is missing") {
        true => format!("{}: {message}", path.display()),
        false => message,
    })?;
    fs::read(&object).map_err(explain)
}
