//! Which answers a proxy compresses.

/// Whether a body of this `content-type` is text: images, fonts and media are compressed already.
pub fn is_text(content_type: &str) -> bool {
    const TYPES: [&str; 8] = [
        "application/javascript",
        "application/json",
        "application/manifest+json",
        "application/wasm",
        "application/x-javascript",
        "application/xhtml+xml",
        "application/xml",
        "image/svg+xml",
    ];
    let name = content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    name.starts_with("text/") || TYPES.contains(&name.as_str())
}
