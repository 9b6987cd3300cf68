//! For build scripts: compiles C to BPF objects with the machine's clang.
//!
//! clang is needed to build, never to run: the objects are embedded in the program. The crate
//! that compiles must depend on libbpf-sys, whose build provides libbpf's headers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Names under which clang is looked for; Debian's packages are clang and clang-14.
const NAMES: [&str; 10] = [
    "clang", "clang-14", "clang-15", "clang-16", "clang-17", "clang-18", "clang-19", "clang-20", "clang-21",
    "clang-22",
];

/// Compiles `source` to the BPF object `output`, with the include folders and macros given.
/// Panics, and so ends the build, with the cause.
pub fn compile(source: &Path, include: &[&Path], macros: &[(&str, &str)], output: &Path) {
    println!("cargo:rerun-if-changed={}", source.display());
    println!("cargo:rerun-if-env-changed=CLANG");
    let libbpf = env::var_os("DEP_BPF_INCLUDE").expect("the crate depends on libbpf-sys");
    let arch = match env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it").as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        "powerpc64" => "powerpc",
        "riscv64" => "riscv",
        other => panic!("BPF programs are not built for {other}"),
    };
    let mut command = Command::new(clang());
    command.args(["-target", "bpf", "-mcpu=v3", "-g", "-O2", "-std=gnu11", "-Wall", "-Werror"]);
    command.arg(format!("-D__TARGET_ARCH_{arch}"));
    command.args(macros.iter().map(|(name, value)| format!("-D{name}={value}")));
    command.arg("-I").arg(libbpf);
    for folder in include {
        command.arg("-I").arg(folder);
    }
    command.arg("-c").arg(source).arg("-o").arg(output);
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    if !done.status.success() {
        panic!("{}:\n{}", source.display(), String::from_utf8_lossy(&done.stderr));
    }
}

/// The first clang that runs, or the one of `$CLANG`.
fn clang() -> PathBuf {
    let runs =
        |name: &str| Command::new(name).arg("--version").output().is_ok_and(|done| done.status.success());
    if let Ok(chosen) = env::var("CLANG") {
        assert!(runs(&chosen), "CLANG={chosen} does not run");
        return chosen.into();
    }
    NAMES.into_iter().find(|name| runs(name)).map(PathBuf::from).unwrap_or_else(|| {
        panic!("clang is missing; it compiles the congestion controls for the kernel. Debian: apt-get install clang-14")
    })
}

/// Stems of the C files of a folder, in order: the folder is the registry.
pub fn stems(folder: &Path) -> Vec<String> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut stems: Vec<String> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("the folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
        .map(|path| path.file_stem().expect("it has a name").to_string_lossy().into_owned())
        .collect();
    stems.sort();
    stems
}
