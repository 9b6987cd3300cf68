//! Compiles C with the machine's compilers: to BPF objects for build scripts, and at run time for the user's
//! own congestion control.
//!
//! Sources that ship are compiled when wirepaint is built and embedded in the program, so running it needs no
//! clang. A crate whose build script calls [`compile`] must depend on libbpf-sys, whose build provides
//! libbpf's headers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Names of clang that are tried; Debian's packages are clang and clang-14.
const CLANGS: [&str; 10] = [
    "clang", "clang-14", "clang-15", "clang-16", "clang-17", "clang-18", "clang-19", "clang-20", "clang-21",
    "clang-22",
];

/// A request to a compiler.
pub struct Compilation<'a> {
    /// The C file; messages name it as it is given here.
    pub source: &'a Path,
    /// Folders of headers.
    pub include: &'a [&'a Path],
    /// Macros and their values.
    pub macros: &'a [(&'a str, &'a str)],
    /// File to write.
    pub output: &'a Path,
}

/// Compiles to a BPF object. Panics, and so ends the build, with the cause.
pub fn compile(source: &Path, include: &[&Path], macros: &[(&str, &str)], output: &Path) {
    println!("cargo:rerun-if-changed={}", source.display());
    println!("cargo:rerun-if-env-changed=CLANG");
    let libbpf = PathBuf::from(env::var_os("DEP_BPF_INCLUDE").expect("the crate depends on libbpf-sys"));
    let include: Vec<&Path> = [&*libbpf].into_iter().chain(include.iter().copied()).collect();
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let asked = Compilation { source, include: &include, macros, output };
    if let Err(message) = bpf_object(&asked, &architecture) {
        panic!("{message}");
    }
}

/// Compiles to a BPF object for a machine of an architecture (as [`env::consts::ARCH`] names it).
pub fn bpf_object(asked: &Compilation, architecture: &str) -> Result<(), String> {
    let architecture = match architecture {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        "powerpc64" => "powerpc",
        "riscv64" => "riscv",
        other => return Err(format!("BPF programs are not built for {other}")),
    };
    let clang = clang().ok_or(
        "clang is missing; it compiles congestion controls for the kernel. Debian: apt-get install clang-14",
    )?;
    let mut command = Command::new(clang);
    command.args(["-target", "bpf", "-mcpu=v3", "-g", "-O2", "-std=gnu11", "-Wall", "-Werror"]);
    command.arg(format!("-D__TARGET_ARCH_{architecture}")).arg("-c");
    run(command, asked)
}

/// Compiles to a shared library of this machine.
pub fn shared_library(asked: &Compilation) -> Result<(), String> {
    let compiler = env::var("CC").into_iter().chain(["cc".into(), "gcc".into()]).find(|name| runs(name));
    let compiler = compiler
        .or_else(clang)
        .ok_or("a C compiler is missing; it compiles the file for the simulator and the scripts. Debian: apt-get install gcc")?;
    let mut command = Command::new(compiler);
    // Without start files, whose variables cannot be told from the file's own.
    command.args(["-shared", "-nostartfiles", "-fPIC", "-O2", "-std=gnu11", "-Wall", "-Werror"]);
    run(command, asked)
}

fn run(mut command: Command, asked: &Compilation) -> Result<(), String> {
    command.env("LC_ALL", "C").args(asked.macros.iter().map(|(name, value)| format!("-D{name}={value}")));
    for folder in asked.include {
        command.arg("-I").arg(folder);
    }
    command.arg(asked.source).arg("-o").arg(asked.output);
    let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(first_error(&String::from_utf8_lossy(&done.stderr), asked.source))
}

/// The line with which a compiler names the first fault: `mine.c:12:9: error: ...`.
fn first_error(messages: &str, source: &Path) -> String {
    let error = messages.lines().find(|line| line.contains("error: "));
    let last = || messages.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("the compiler failed");
    let line = error.unwrap_or_else(last).trim();
    let source = source.display().to_string();
    if line.contains("Cannot select") && (line.contains(" sdiv ") || line.contains(" srem ")) {
        let function = messages.lines().find_map(|line| line.trim().strip_prefix("In function: "));
        let function = function.map_or_else(String::new, |name| format!(" in {name}"));
        return format!("{source}: error: signed division{function}; accepted: unsigned, such as (u32)a / b");
    }
    if line.contains(&source) {
        return line.to_owned();
    }
    // A fault in a macro of a header: where the file uses it.
    let used =
        messages.lines().find(|line| line.starts_with(&source) && line.contains("in expansion of macro"));
    match (used.and_then(|line| line.split_once(": note: ")), line.split_once("error: ")) {
        (Some((place, _)), Some((_, what))) => format!("{place}: error: {what}"),
        _ => format!("{source}: {line}"),
    }
}

fn runs(name: &str) -> bool {
    Command::new(name).arg("--version").output().is_ok_and(|done| done.status.success())
}

/// The first clang that runs; if `$CLANG` is set, only that.
fn clang() -> Option<String> {
    match env::var("CLANG") {
        Ok(chosen) => Some(chosen).filter(|name| runs(name)),
        Err(_) => CLANGS.into_iter().find(|name| runs(name)).map(str::to_owned),
    }
}

/// Stems of the C files of a folder, in order: the folder is the registry.
pub fn stems(folder: &Path) -> Vec<String> {
    let files = files(folder, "c");
    files.iter().map(|path| path.file_stem().expect("it has a name").to_string_lossy().into_owned()).collect()
}

/// Files of a folder with an ending, in order.
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("the folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .collect();
    files.sort();
    files
}

/// Rust source of a table `static NAME: &[(&str, &str)]` of files by their names, with their texts.
pub fn embedded(name: &str, files: &[PathBuf]) -> String {
    let mut table = format!("static {name}: &[(&str, &str)] = &[\n");
    for path in files {
        println!("cargo:rerun-if-changed={}", path.display());
        let file = path.file_name().expect("it has a name").to_string_lossy();
        let path = fs::canonicalize(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        table += &format!("    ({file:?}, include_str!({path:?})),\n");
    }
    table + "];\n"
}

#[cfg(test)]
mod tests {
    use super::first_error;
    use std::path::Path;

    #[test]
    fn the_first_error_is_named_with_its_place() {
        let messages =
            "In file included from mine.c:2:\nmine.c:12:9: error: no member\nmine.c:13:1: error: x\n";
        assert_eq!(first_error(messages, Path::new("mine.c")), "mine.c:12:9: error: no member");
        let macro_ = "In file included from mine.c:1:\n/t/cc_native.h:9:2: error: static assertion failed: \"x\"\n\
            /t/cc_native.h:5:2: note: in expansion of macro 'CC_PARAM_'\n\
            mine.c:7:1: note: in expansion of macro 'CC_PARAM'\n";
        assert_eq!(
            first_error(macro_, Path::new("mine.c")),
            "mine.c:7:1: error: static assertion failed: \"x\""
        );
        let division = "fatal error: error in backend: Cannot select: 0x1: i32 = sdiv 0x2, 0x3\n  \
            0x2: i32 = and\nIn function: mine_cong_avoid\n";
        assert_eq!(
            first_error(division, Path::new("mine.c")),
            "mine.c: error: signed division in mine_cong_avoid; accepted: unsigned, such as (u32)a / b"
        );
        assert_eq!(first_error("ld: cannot find -lx\n", Path::new("mine.c")), "mine.c: ld: cannot find -lx");
    }
}
