//! Lengths of strings and literal fields in HPACK (RFC 7541), with Huffman codes.

/// Names of HPACK's static table that answers and conditional requests use (RFC 7541, appendix A).
const STATIC_NAMES: &[&str] = &[
    "accept-ranges",
    "access-control-allow-origin",
    "age",
    "allow",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expires",
    "if-modified-since",
    "if-none-match",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "vary",
    "via",
];
/// Fields that the server's encoder does not index, because their values rarely repeat.
const NOT_KEPT: &[&str] = &["age", "content-length", "etag", "location", "set-cookie"];

/// Whether the server's encoder indexes fields of this name.
pub(crate) fn is_kept(name: &str) -> bool {
    !NOT_KEPT.contains(&name)
}

/// Bytes of a field as a literal; `name` in lower case.
pub(crate) fn literal(name: &str, value: &str) -> u32 {
    1 + if STATIC_NAMES.contains(&name) { 0 } else { string_bytes(name) } + string_bytes(value)
}

/// Bits of HPACK's Huffman code for a character (RFC 7541, appendix B; rare ones rounded).
const fn huffman_bits(byte: u8) -> u8 {
    match byte {
        b'0'..=b'2' | b'a' | b'c' | b'e' | b'i' | b'o' | b's' | b't' => 5,
        b' ' | b'%' | b'-' | b'.' | b'/' | b'3'..=b'9' | b'=' | b'A' | b'_' => 6,
        b'b' | b'd' | b'f' | b'g' | b'h' | b'l' | b'm' | b'n' | b'p' | b'r' | b'u' => 6,
        b'&' | b'*' | b',' | b';' | b'X' | b'Z' => 8,
        b':' | b'B'..=b'Y' | b'j' | b'k' | b'q' | b'v'..=b'z' => 7,
        b'!' | b'"' | b'(' | b')' | b'?' => 10,
        b'\'' | b'+' | b'|' => 11,
        b'#' | b'>' => 12,
        b'$' | b'@' | b'[' | b']' | b'~' => 13,
        _ => 15,
    }
}

/// The same for all characters: the heads of a page have tens of thousands.
static HUFFMAN_BITS: [u8; 256] = {
    let mut bits = [0; 256];
    let mut byte = 0;
    while byte < bits.len() {
        bits[byte] = huffman_bits(byte as u8);
        byte += 1;
    }
    bits
};

/// Bytes of a string with its length in HPACK.
pub(crate) fn string_bytes(text: &str) -> u32 {
    let bits = text.bytes().map(|byte| u32::from(HUFFMAN_BITS[usize::from(byte)])).sum::<u32>();
    let coded = bits.div_ceil(8).min(text.len() as u32);
    coded + if coded < 127 { 1 } else { 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huffman_codes_have_the_lengths_of_the_rfc() {
        // RFC 7541, C.4.1: "www.example.com" takes 12 bytes; C.6.1: "private" 5, the date 22.
        assert_eq!(string_bytes("www.example.com"), 1 + 12);
        assert_eq!(string_bytes("private"), 1 + 5);
        assert_eq!(string_bytes("Mon, 21 Oct 2013 20:13:21 GMT"), 1 + 22);
    }
}
