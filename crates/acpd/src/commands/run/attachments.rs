//! Files and images that are embedded into a prompt.
//!
//! Read before anything is started. Invariant: what is read is bounded. Not here: whether the agent takes them, but for what is
//! said when it does not.

use crate::exit::Failure;
use acpd_eventlog::log_files::open_foreign;
use data_encoding::BASE64;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The most that all of them have together, in bytes: as Base64 it is still a line that a daemon takes by default.
const MOST: u64 = 32 << 20;
/// What stands for itself in the path of a URI.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What it is embedded as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Image,
}

/// A file of the person's, as a content block.
#[derive(Debug)]
pub(super) struct Attachment {
    kind: Kind,
    path: PathBuf,
    pub(super) block: Value,
}

/// Reads them all.
pub(super) fn read_all(files: &[PathBuf], images: &[PathBuf]) -> Result<Vec<Attachment>, Failure> {
    let files = files.iter().map(|path| (Kind::File, path));
    let mut left = MOST;
    files
        .chain(images.iter().map(|path| (Kind::Image, path)))
        .map(|(kind, path)| read(kind, path, &mut left))
        .collect()
}

fn read(kind: Kind, path: &Path, left: &mut u64) -> Result<Attachment, Failure> {
    let wrong =
        |why: &dyn std::fmt::Display| Failure::Usage(format!("{} {}: {why}", kind.flag(), path.display()));
    let whole = std::fs::canonicalize(path).map_err(|error| wrong(&error))?;
    if !whole.is_file() {
        return Err(wrong(&"not a file"));
    }
    let mut bytes = Vec::new();
    // One more shows whether there is more.
    let opened = open_foreign(&whole, OpenOptions::new().read(true));
    let read = opened.and_then(|file| file.take(*left + 1).read_to_end(&mut bytes));
    read.map_err(|error| wrong(&error))?;
    *left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
        wrong(&format_args!("files and images have more than {} MiB together, which is the most", MOST >> 20))
    })?;
    let uri = format!("file://{}", percent_encode(whole.as_os_str().as_bytes(), PATH));
    let block = match kind {
        Kind::File => file_block(&uri, bytes),
        Kind::Image => {
            let mime = image_type(&bytes).ok_or_else(|| wrong(&"not a PNG, JPEG, GIF or WebP image"))?;
            json!({"type": "image", "mimeType": mime, "data": BASE64.encode(&bytes), "uri": uri})
        }
    };
    Ok(Attachment { kind, path: path.to_owned(), block })
}

/// ACP's embedded resource: text, or what is none as Base64.
fn file_block(uri: &str, bytes: Vec<u8>) -> Value {
    let resource = match String::from_utf8(bytes) {
        Ok(text) => json!({"uri": uri, "mimeType": "text/plain", "text": text}),
        Err(error) => json!({"uri": uri, "blob": BASE64.encode(error.as_bytes())}),
    };
    json!({"type": "resource", "resource": resource})
}

/// By its first bytes.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

impl Kind {
    fn flag(self) -> &'static str {
        match self {
            Self::File => "--file",
            Self::Image => "--image",
        }
    }
}

impl Attachment {
    /// What to say when an agent with these capabilities does not take it.
    pub(super) fn refused(&self, capabilities: &Value) -> Option<String> {
        let (member, what) = match self.kind {
            Kind::File => ("embeddedContext", "files in a prompt"),
            Kind::Image => ("image", "images"),
        };
        let takes = capabilities["promptCapabilities"][member] == true;
        (!takes).then(|| format!("{} {}: the agent takes no {what}", self.kind.flag(), self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: files as text, or as Base64 when they are none; images by what they are, not by their names
    #[test]
    fn files_and_images_become_blocks() {
        let dir = tempfile::tempdir().expect("a directory");
        let write = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).expect("it is writable");
            path
        };
        let text = write("a b%.txt", b"hi\n");
        let binary = write("b.bin", b"\xff\x00");
        let image = write("c.txt", b"GIF89a...");
        let blocks = read_all(&[text.clone(), binary], &[image]).expect("all are good");
        let [text_block, binary, image] = blocks.iter().map(|one| &one.block).collect::<Vec<_>>()[..] else {
            panic!("three were given")
        };
        let resource = &text_block["resource"];
        assert!(
            resource["uri"]
                .as_str()
                .is_some_and(|uri| uri.starts_with("file:///") && uri.ends_with("/a%20b%25.txt"))
        );
        assert_eq!((&text_block["type"], &resource["text"]), (&json!("resource"), &json!("hi\n")));
        assert_eq!(
            (&binary["resource"]["blob"], &binary["resource"]["text"]),
            (&json!("/wA="), &Value::Null)
        );
        assert_eq!((&image["mimeType"], &image["data"]), (&json!("image/gif"), &json!("R0lGODlhLi4u")));
        for (files, images, words) in [
            (vec![dir.path().join("none")], vec![], "--file "),
            (vec![dir.path().to_owned()], vec![], "not a file"),
            (vec![], vec![text], "not a PNG, JPEG, GIF or WebP image"),
        ] {
            let failure = read_all(&files, &images).expect_err("it is wrong");
            assert!(matches!(&failure, Failure::Usage(text) if text.contains(words)), "{failure}");
        }
        let large = std::fs::File::create(dir.path().join("large")).expect("a file");
        large.set_len(MOST).expect("a hole");
        let failure =
            read_all(&[dir.path().join("large"), dir.path().join("b.bin")], &[]).expect_err("too much");
        assert!(failure.to_string().contains("more than 32 MiB together"), "{failure}");
    }
}
