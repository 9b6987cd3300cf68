//! The user's own congestion control: a C file outside the program, compiled on request and loaded into this
//! process.
//!
//! It includes `cc.h`. Only a C compiler must be installed: the headers are embedded here. The file's name is
//! the algorithm's name, as in congestion/algorithms.

use crate::{Algorithm, Refusal, dialect, floats};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};
use wirepaint_bpf_build::{Compilation, shared_library};

include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// Longest name in bytes that the kernel accepts.
const NAME_MAX: usize = 15;

/// True if a name means a file, not an algorithm that ships.
pub fn is_file(name: &str) -> bool {
    name.ends_with(".c")
}

/// Text of an algorithm's C source: one that ships, or a file.
pub fn source(name: &str) -> Result<String, Refusal> {
    if is_file(name) {
        return fs::read_to_string(name)
            .map_err(|error| Refusal::File { message: format!("{name}: {error}") });
    }
    crate::find(name).map(|algorithm| text(SOURCES, &format!("{}.c", algorithm.name())).to_owned())
}

/// Scripts that ship: file names and texts.
pub fn scripts() -> &'static [(&'static str, &'static str)] {
    SCRIPTS
}

fn text(table: &[(&str, &'static str)], file: &str) -> &'static str {
    table.iter().find(|(name, _)| *name == file).expect("compiled from the same folder").1
}

/// Files that were loaded: name and text, and the full path of the first with this text.
static LOADED: Mutex<Loaded> = Mutex::new(BTreeMap::new());

/// Path and algorithm by name and text.
type Loaded = BTreeMap<(String, String), (PathBuf, &'static Algorithm)>;

/// The key that finds an algorithm again: its name, or the full path of the user's own file.
pub fn name_or_path(algorithm: &'static Algorithm) -> String {
    let loaded = LOADED.lock().expect("no holder panics");
    let file = loaded.values().find(|(_, found)| std::ptr::eq(*found, algorithm));
    file.map_or_else(|| algorithm.name().to_owned(), |(path, _)| path.display().to_string())
}

/// The algorithm of a C file. A text is compiled once per process and stays loaded.
pub(crate) fn load(path: &Path) -> Result<&'static Algorithm, Refusal> {
    let refuse = |message: String| Refusal::File { message };
    let explain = |error: std::io::Error| refuse(format!("{}: {error}", path.display()));
    let name = name_of(path).map_err(refuse)?;
    let key = (name.to_owned(), fs::read_to_string(path).map_err(explain)?);
    let mut loaded = LOADED.lock().expect("no holder panics");
    if let Some((_, algorithm)) = loaded.get(&key) {
        return Ok(algorithm);
    }
    if let Some((line, column, word)) = floats::first(&key.1) {
        let accepted = "integers, such as hundredths (ss_grow_pct): the kernel has no floating point";
        let place = format!("{}:{line}:{column}", path.display());
        return Err(refuse(format!("{place}: error: floating point, {word}; accepted: {accepted}")));
    }
    if let Some((line, header)) = dialect::foreign_header(&key.1) {
        let accepted = "\"cc.h\", or \"cc_group.h\": the kernel has no other";
        let place = format!("{}:{line}", path.display());
        return Err(refuse(format!("{place}: error: it includes {header:?}; accepted: {accepted}")));
    }
    let folder = Unpacked::new().map_err(refuse)?;
    let library = folder.path.join("library.so");
    let asked = Compilation {
        source: path,
        include: &[&folder.path],
        macros: &[("CC_NAME", name)],
        output: &library,
    };
    shared_library(&asked).map_err(refuse)?;
    let compiled = fs::read(&library).map_err(explain)?;
    let mutable = dialect::mutable_variable(&compiled).map_err(|error| refuse(error.to_string()))?;
    if let Some(variable) = mutable {
        let (line, column) = dialect::place(&key.1, &variable).unwrap_or((1, 1));
        let place = format!("{}:{line}:{column}", path.display());
        let accepted =
            "the connection's state (inet_csk_ca), constants and CC_PARAM: connections share no variable";
        return Err(refuse(format!("{place}: error: a global variable, {variable}; accepted: {accepted}")));
    }
    let algorithm = open(&library, name).map_err(|why| refuse(format!("{}: {why}", path.display())))?;
    loaded.insert(key, (fs::canonicalize(path).map_err(explain)?, algorithm));
    Ok(algorithm)
}

/// The name of a file's algorithm: its stem. It becomes part of C identifiers and a name in the kernel.
pub fn name_of(path: &Path) -> Result<&str, String> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let plain = stem.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain && stem.starts_with(|c: char| c.is_ascii_lowercase()) && stem.len() <= NAME_MAX {
        return Ok(stem);
    }
    let accepted = format!("1 to {NAME_MAX} characters of a-z, A-Z, 0-9 and _, a small letter first");
    Err(format!("{}: the name {stem:?}; accepted: {accepted}", path.display()))
}

fn open(library: &Path, name: &str) -> Result<&'static Algorithm, String> {
    // SAFETY: the library has no initialisers but those that the user's own file gives it.
    let library = unsafe { libloading::Library::new(library) }.map_err(|error| error.to_string())?;
    let symbol = format!("cc_algorithm_{name}\0");
    // SAFETY: the embedded headers give this symbol the type that `Algorithm` mirrors.
    let found = unsafe { library.get::<*const Algorithm>(symbol.as_bytes()) };
    let pointer = *found.map_err(|_| "it has no CC_REGISTER".to_owned())?;
    std::mem::forget(library);
    // SAFETY: a constant of a library that is never unloaded.
    let algorithm = unsafe { &*pointer };
    algorithm.complete()?;
    Ok(algorithm)
}

/// The headers in a temporary folder, which is removed with this value.
pub struct Unpacked {
    /// The folder.
    pub path: PathBuf,
}

impl Unpacked {
    /// Writes the headers.
    pub fn new() -> Result<Unpacked, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("wirepaint-cc-{}-{number}", process::id()));
        let explain = |error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir(&path).map_err(explain)?;
        let folder = Unpacked { path: path.clone() };
        for (file, text) in HEADERS {
            fs::write(path.join(file), text).map_err(explain)?;
        }
        Ok(folder)
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.path);
    }
}
