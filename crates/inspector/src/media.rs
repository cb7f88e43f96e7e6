//! The media types of what pages are made of.

/// What no browser shows or runs.
pub(crate) const UNKNOWN: &str = "application/octet-stream";

/// By the end of its name.
pub(crate) fn type_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, end)| end) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("json" | "webmanifest") => "application/json",
        _ => UNKNOWN,
    }
}
