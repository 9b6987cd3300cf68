//! What the kernel refuses of a C file and the host's compiler does not: found before the file runs, and named
//! with its place.

use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

/// Headers that a file may include.
const HEADERS: [&str; 2] = ["cc.h", "cc_group.h"];

/// The first header of a C text that is none of ours: its line, from 1, and the name.
pub(crate) fn foreign_header(text: &str) -> Option<(usize, &str)> {
    text.lines().enumerate().find_map(|(number, line)| {
        let directive = line.trim_start().strip_prefix('#')?.trim_start();
        let named = directive.strip_prefix("include")?.trim_start();
        let name = named[1.min(named.len())..].split(['"', '>']).next().unwrap_or_default();
        (!named.starts_with('"') || !HEADERS.contains(&name)).then_some((number + 1, name))
    })
}

/// The first variable of a library that can change: its name in C. State outside a connection would leak from
/// one visit into the next.
///
/// The library must not have the start files of C, which have variables of their own.
pub(crate) fn mutable_variable(library: &[u8]) -> Result<Option<String>, object::Error> {
    let file = object::File::parse(library)?;
    let mut variables = file.symbols().filter(|symbol| {
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        let is_mutable = section.is_some_and(|section| {
            let relocated_only = section.name().is_ok_and(|name| name.starts_with(".data.rel.ro"));
            let kinds = [
                SectionKind::Data,
                SectionKind::UninitializedData,
                SectionKind::Tls,
                SectionKind::UninitializedTls,
            ];
            kinds.contains(&section.kind()) && !relocated_only
        });
        matches!(symbol.kind(), SymbolKind::Data | SymbolKind::Tls) && symbol.size() > 0 && is_mutable
    });
    // The compiler numbers the variables of functions: name.0.
    let name = variables.find_map(|symbol| symbol.name().ok());
    Ok(name.map(|name| name.split('.').next().unwrap_or(name).to_owned()))
}

/// Line and column, both from 1, of the first place where a C text has a word.
pub(crate) fn place(text: &str, word: &str) -> Option<(usize, usize)> {
    let part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.lines().enumerate().find_map(|(number, line)| {
        let mut found = line.match_indices(word).map(|(at, _)| at);
        let at =
            found.find(|at| !line[..*at].ends_with(part) && !line[at + word.len()..].starts_with(part))?;
        Some((number + 1, at + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::{foreign_header, place};

    #[test]
    fn a_header_that_is_not_ours_is_found() {
        assert_eq!(foreign_header("#include \"cc.h\"\n # include <stdio.h>\n"), Some((2, "stdio.h")));
        assert_eq!(foreign_header("#include \"mine.h\"\n"), Some((1, "mine.h")));
        assert_eq!(foreign_header("#include <cc.h>\n"), Some((1, "cc.h")));
        assert_eq!(foreign_header("#include\n"), Some((1, "")));
        assert_eq!(foreign_header("#include \"cc_group.h\"\n// #include <math.h>\n#define A 1\n"), None);
    }

    #[test]
    fn a_word_is_found_and_not_a_part_of_one() {
        assert_eq!(place("u32 counted;\n\tu32 count;\n", "count"), Some((2, 6)));
        assert_eq!(place("counted", "count"), None);
    }
}
