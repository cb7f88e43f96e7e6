//! The files of the inspector, as they are sent.
//!
//! `cargo xtask inspector` writes `pages.tar`: every file is compressed for itself, so that it is sent as it lies there, and
//! neither a build nor an installation needs Node.js. Invariant: no request changes what is here, and no path leads out of it.

use crate::media;
use bytes::Bytes;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// Written by `cargo xtask inspector`, and by nothing else.
const PACKED: &[u8] = include_bytes!("../pages.tar");
/// What a file that lies there compressed is called besides.
const COMPRESSED: &str = ".gz";
/// The page that loads the others.
pub const FIRST: &str = "/";
const INDEX: &str = "index.html";
/// Files below it have a hash of their content in their names.
const HASHED: &str = "assets/";

/// A file as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its bytes.
    pub body: Bytes,
    /// They are compressed with gzip.
    pub is_compressed: bool,
    /// Its media type, with the encoding of text.
    pub media_type: &'static str,
    /// Its strong entity tag, in quotes.
    pub etag: String,
    /// What is at this path never changes.
    pub is_immutable: bool,
}

impl Page {
    fn new(path: &str, body: Bytes, is_compressed: bool, is_immutable: bool) -> Self {
        let etag = format!("\"{}\"", HEXLOWER.encode(&Sha256::digest(&body)[..16]));
        Self { body, is_compressed, media_type: media::type_of(path), etag, is_immutable }
    }
}

/// Where the pages are.
#[derive(Clone, Debug, Default)]
pub enum Pages {
    /// In this program.
    #[default]
    BuiltIn,
    /// In a directory, whose files are read anew for each request: for work on the pages.
    Directory(Arc<Path>),
}

impl Pages {
    /// The files below a directory.
    pub fn in_directory(directory: PathBuf) -> Self {
        Self::Directory(directory.into())
    }

    /// What is at the path of an address; [`FIRST`] is the first page. Reads a file if the pages are in a directory.
    pub fn get(&self, path: &str) -> Option<Page> {
        let name = path.strip_prefix('/')?;
        let name = if name.is_empty() { INDEX } else { name };
        match self {
            Self::BuiltIn => BUILT_IN.get(name).cloned(),
            Self::Directory(directory) => {
                let is_below = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
                let body = is_below.then(|| std::fs::read(directory.join(name)).ok()).flatten()?;
                Some(Page::new(name, body.into(), false, false))
            }
        }
    }
}

static BUILT_IN: LazyLock<BTreeMap<String, Page>> = LazyLock::new(|| {
    // A test reads it; nothing else writes it.
    unpack(PACKED).unwrap_or_default()
});

/// The files of an archive by their names.
fn unpack(packed: &'static [u8]) -> io::Result<BTreeMap<String, Page>> {
    let mut pages = BTreeMap::new();
    for entry in tar::Archive::new(packed).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        let mut body = Vec::new();
        entry.read_to_end(&mut body)?;
        let name = path.strip_suffix(COMPRESSED);
        let (name, is_compressed) = (name.unwrap_or(&path).to_owned(), name.is_some());
        let page = Page::new(&name, body.into(), is_compressed, name.starts_with(HASHED));
        pages.insert(name, page);
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    // inspector: one committed file has all pages, the first one loads the others by paths that never change
    #[test]
    fn the_pages_are_packed() {
        let pages = unpack(PACKED).expect("an archive");
        let first = Pages::BuiltIn.get(FIRST).expect("the first page");
        assert_eq!((first.media_type, first.is_compressed), ("text/html; charset=utf-8", false));
        assert!(!first.is_immutable);
        let text = String::from_utf8(first.body.to_vec()).expect("text");
        let loaded: Vec<&str> = text
            .split(['"', '\''])
            .filter(|part| part.starts_with("/assets/") || part.starts_with("./assets/"))
            .map(|part| part.trim_start_matches('.'))
            .collect();
        assert!(!loaded.is_empty(), "{text}");
        for path in loaded {
            let page = Pages::BuiltIn.get(path).unwrap_or_else(|| panic!("{path} is not packed"));
            assert!(page.is_immutable && page.is_compressed, "{path}");
            assert!(page.body.starts_with(&[0x1f, 0x8b]), "{path}");
        }
        for (path, page) in &pages {
            assert_ne!(page.media_type, media::UNKNOWN, "{path}");
        }
    }

    // inspector: ACPD_WEB_DIR serves a folder while developing; no path leads out of it
    #[test]
    fn a_directory_is_served_and_nothing_beside_it() {
        let place = tempfile::tempdir().expect("a directory");
        let web = place.path().join("web");
        std::fs::create_dir_all(web.join("assets")).expect("a directory");
        std::fs::write(web.join(INDEX), "first").expect("written");
        std::fs::write(web.join("assets/a.js"), "1").expect("written");
        std::fs::write(place.path().join("secret"), "no").expect("written");
        let pages = Pages::in_directory(web.clone());
        let of = |path: &str| pages.get(path).map(|page| String::from_utf8_lossy(&page.body).into_owned());
        assert_eq!(of("/").as_deref(), Some("first"));
        assert_eq!(of("/assets/a.js").as_deref(), Some("1"));
        let before = pages.get("/").map(|page| page.etag);
        std::fs::write(web.join(INDEX), "second").expect("written");
        assert_eq!(of("/").as_deref(), Some("second"));
        assert_ne!(pages.get("/").map(|page| page.etag), before);
        for path in
            ["/../secret", "/assets/../../secret", "//etc/passwd", "/none", "/assets", "assets/a.js", ""]
        {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
