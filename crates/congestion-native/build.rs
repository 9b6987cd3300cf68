//! Compiles every congestion/algorithms/NAME.c for the host and writes the table of them, and the
//! tables of the texts: sources, headers and scripts.
//!
//! The folder is the registry: a new file is a new entry, under its own name.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../congestion");
    let include = root.join("include");
    println!("cargo:rerun-if-changed={}", include.display());
    println!("cargo:rerun-if-changed=src/layout.c");

    let compiler = || {
        let mut build = cc::Build::new();
        build.include(&include).std("gnu11").opt_level(2).extra_warnings(true).warnings_into_errors(true);
        build.flag("-Wno-unused-parameter");
        build
    };
    let names = wirepaint_bpf_build::stems(&root.join("algorithms"));
    for name in &names {
        let source = root.join("algorithms").join(format!("{name}.c"));
        compiler().define("CC_NAME", name.as_str()).file(source).compile(&format!("congestion_{name}"));
    }
    compiler().file("src/layout.c").compile("congestion_layout");

    let declarations: String =
        names.iter().map(|name| format!("    static cc_algorithm_{name}: Algorithm;\n")).collect();
    let entries: String = names
        .iter()
        .map(|name| {
            format!("    // SAFETY: the C constant has this type and is never written.\n    unsafe {{ &cc_algorithm_{name} }},\n")
        })
        .collect();
    let table = format!(
        "unsafe extern \"C\" {{\n{declarations}}}\n\n\
         static TABLE: [&Algorithm; {}] = [\n{entries}];\n",
        names.len()
    );
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("table.rs"), table).expect("OUT_DIR can be written");
    let texts = [("SOURCES", "algorithms", "c"), ("HEADERS", "include", "h"), ("SCRIPTS", "scripts", "ack")]
        .map(|(name, folder, ending)| {
            wirepaint_bpf_build::embedded(name, &wirepaint_bpf_build::files(&root.join(folder), ending))
        });
    fs::write(out.join("texts.rs"), texts.concat()).expect("OUT_DIR can be written");
}
