//! Floating point in a C file, which the kernel has not: found in the text, so that the place is named before
//! any compiler sees it.

use std::iter::Peekable;
use std::str::CharIndices;

/// The first floating-point type or constant of a C text: line and column, both from 1, and the word.
///
/// Comments and literals of text do not count; macros do, whether they are used or not.
pub(crate) fn first(text: &str) -> Option<(usize, usize, &str)> {
    let mut rest = text.char_indices().peekable();
    while let Some((at, letter)) = rest.next() {
        match letter {
            '/' if text[at..].starts_with("//") => while rest.next_if(|(_, next)| *next != '\n').is_some() {},
            '/' if text[at..].starts_with("/*") => {
                let end = text[at + 2..].find("*/").map_or(text.len(), |found| at + 2 + found + 2);
                while rest.next_if(|(place, _)| *place < end).is_some() {}
            }
            '"' | '\'' => quoted(letter, &mut rest),
            _ if letter.is_ascii_alphanumeric() || letter == '_' || is_fraction(&text[at..]) => {
                let word = word(text, at);
                while rest.next_if(|(place, _)| *place < at + word.len()).is_some() {}
                if is_floating(word) {
                    let line_begins = text[..at].rfind('\n').map_or(0, |found| found + 1);
                    return Some((text[..at].matches('\n').count() + 1, at - line_begins + 1, word));
                }
            }
            _ => {}
        }
    }
    None
}

fn quoted(quote: char, rest: &mut Peekable<CharIndices>) {
    while let Some((_, letter)) = rest.next() {
        match letter {
            '\\' => _ = rest.next(),
            // A literal ends with its line: what is left open is an apostrophe, such as that of an #error.
            '\n' => return,
            _ if letter == quote => return,
            _ => {}
        }
    }
}

fn is_fraction(text: &str) -> bool {
    text.strip_prefix('.').is_some_and(|digits| digits.starts_with(|c: char| c.is_ascii_digit()))
}

/// The identifier or number that begins here; a number may have a point and a signed exponent (C11 6.4.8).
fn word(text: &str, at: usize) -> &str {
    let number = !text[at..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let mut before = ' ';
    let end = text[at..].find(|letter: char| {
        let sign = matches!(letter, '+' | '-') && matches!(before, 'e' | 'E' | 'p' | 'P');
        before = letter;
        !(letter.is_ascii_alphanumeric() || letter == '_' || number && (letter == '.' || sign))
    });
    &text[at..end.map_or(text.len(), |end| at + end)]
}

fn is_floating(word: &str) -> bool {
    if !word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return matches!(word, "float" | "double" | "_Complex" | "__float128")
            || ["_Float", "_Decimal"].iter().any(|begin| word.starts_with(begin));
    }
    let hexadecimal = word.starts_with("0x") || word.starts_with("0X");
    let exponent = if hexadecimal { ['p', 'P'] } else { ['e', 'E'] };
    word.contains('.') || word.contains(exponent)
}

#[cfg(test)]
mod tests {
    use super::first;

    #[test]
    fn a_floating_constant_or_type_is_found_with_its_place() {
        assert_eq!(first("u32 x;\n\tx = 3 * 1.5;\n"), Some((2, 10, "1.5")));
        assert_eq!(first("static double gain;"), Some((1, 8, "double")));
        assert_eq!(first("x = (u32)(y *.5f);"), Some((1, 14, ".5f")));
        assert_eq!(first("x = 1e3;"), Some((1, 5, "1e3")));
        assert_eq!(first("x = 2E-3;"), Some((1, 5, "2E-3")));
        assert_eq!(first("x = 0x1p4;"), Some((1, 5, "0x1p4")));
        assert_eq!(first("#define GAIN 2.885\n"), Some((1, 14, "2.885")));
        assert_eq!(first("x = 1.f;"), Some((1, 5, "1.f")));
        assert_eq!(first("x = 0x.8p-1L;"), Some((1, 5, "0x.8p-1L")));
        assert_eq!(first("_Decimal32 x;"), Some((1, 1, "_Decimal32")));
        assert_eq!(first("#error don't\nx = 1.5;"), Some((2, 5, "1.5")));
        assert_eq!(first("char *text = \"in two \\\nlines 0.7\"; x = 1.5;"), Some((2, 17, "1.5")));
    }

    #[test]
    fn integers_members_comments_and_texts_are_none() {
        for text in [
            "x = 0x1eE + 10UL + 1'000;",
            "p->a.b = s.e5;",
            "/* by 1.5 */ // double\nx = 1;",
            "CC_REGISTER(\"keeps 0.7 \\\"float\\\"\", .ssthresh = CC_OP(f))",
            "u32 doubled = floats[2];",
            "c = '.'; d = '\\''; e = 5;",
            "x = a[1] - b;",
        ] {
            assert_eq!(first(text), None, "{text}");
        }
    }

    #[test]
    fn a_shipped_control_has_none() {
        for algorithm in crate::algorithms() {
            let source = crate::external::source(algorithm.name()).expect("it ships");
            assert_eq!(first(&source), None, "{}", algorithm.name());
        }
    }
}
