//! Files and images that are embedded into a prompt.
//!
//! Read before anything is started. Invariant: what is read is bounded; an agent is sent no kind of content that it does not
//! take. Every agent takes text and links (ACP), so a file can always be told to it, an image cannot.

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

/// A file of the person's.
#[derive(Debug)]
pub(super) struct Attachment {
    kind: Kind,
    /// The path as the person named it.
    path: PathBuf,
    /// Without links.
    whole: PathBuf,
    bytes: Vec<u8>,
    /// Of an image.
    mime: &'static str,
}

/// The kinds of attachments that an agent takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Takes<'a> {
    /// Its capabilities.
    pub(super) capabilities: &'a Value,
    /// The directories of the session, where they are on this machine: what it can read by itself.
    pub(super) roots: &'a [PathBuf],
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
    let mime = match kind {
        Kind::File => "",
        Kind::Image => image_type(&bytes).ok_or_else(|| wrong(&"not a PNG, JPEG, GIF or WebP image"))?,
    };
    Ok(Attachment { kind, path: path.to_owned(), whole, bytes, mime })
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
    /// The content block for an agent, or why there is none.
    pub(super) fn block(&self, takes: Takes<'_>) -> Result<Value, String> {
        let capabilities = &takes.capabilities["promptCapabilities"];
        match self.kind {
            Kind::Image if capabilities["image"] == true => Ok(
                json!({"type": "image", "mimeType": self.mime, "data": BASE64.encode(&self.bytes), "uri": self.uri()}),
            ),
            Kind::Image => Err(self.refusal("images")),
            Kind::File if capabilities["embeddedContext"] == true => Ok(self.resource()),
            Kind::File if takes.roots.iter().any(|root| self.whole.starts_with(root)) => Ok(self.link()),
            Kind::File => self.text().ok_or_else(|| {
                self.refusal(
                    "files in a prompt, and this one is neither text nor in a directory of the session",
                )
            }),
        }
    }

    fn refusal(&self, what: &str) -> String {
        format!("{} {}: the agent takes no {what}", self.kind.flag(), self.path.display())
    }

    fn uri(&self) -> String {
        format!("file://{}", percent_encode(self.whole.as_os_str().as_bytes(), PATH))
    }

    /// ACP's embedded resource: text, or what is none as Base64.
    fn resource(&self) -> Value {
        let resource = match std::str::from_utf8(&self.bytes) {
            Ok(text) => json!({"uri": self.uri(), "mimeType": "text/plain", "text": text}),
            Err(_) => json!({"uri": self.uri(), "blob": BASE64.encode(&self.bytes)}),
        };
        json!({"type": "resource", "resource": resource})
    }

    /// A link, for an agent that reads the file by itself.
    fn link(&self) -> Value {
        let name = self.whole.file_name().unwrap_or_default().to_string_lossy();
        json!({"type": "resource_link", "uri": self.uri(), "name": name, "size": self.bytes.len()})
    }

    /// The text of it below its name.
    fn text(&self) -> Option<Value> {
        let text = std::str::from_utf8(&self.bytes).ok()?;
        Some(json!({"type": "text", "text": format!("{}:\n\n{text}", self.path.display())}))
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
        let all = read_all(&[text.clone(), binary], &[image]).expect("all are good");
        let capabilities = json!({"promptCapabilities": {"embeddedContext": true, "image": true}});
        let takes = Takes { capabilities: &capabilities, roots: &[] };
        let blocks: Vec<Value> = all.iter().map(|one| one.block(takes).expect("it is taken")).collect();
        let [text_block, binary, image] = &blocks[..] else { panic!("three were given") };
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

    // quirk no-embedded-context (agents): a file is a link in the session's directories, else text below its name; images and
    // binary files elsewhere are refused
    #[test]
    fn an_agent_that_takes_no_resources_is_told_of_files() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = std::fs::canonicalize(dir.path()).expect("it is there").join("work");
        std::fs::create_dir(&root).expect("a directory");
        let write = |path: PathBuf, bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("it is writable");
            path
        };
        let inside = write(root.join("a b.bin"), b"\xff\x00");
        let outside = write(dir.path().join("notes.txt"), b"hi\n");
        let binary = write(dir.path().join("b.bin"), b"\xff\x00");
        let image = write(root.join("c.gif"), b"GIF89a...");
        let all = read_all(&[inside.clone(), outside.clone(), binary], &[image]).expect("all are good");
        let roots = [root];
        let takes = Takes { capabilities: &json!({}), roots: &roots };
        let blocks: Vec<_> = all.iter().map(|one| one.block(takes)).collect();
        let uri = format!("file://{}", inside.display()).replace(' ', "%20");
        let link = json!({"type": "resource_link", "uri": uri, "name": "a b.bin", "size": 2});
        assert_eq!(blocks[0], Ok(link));
        let text = format!("{}:\n\nhi\n", outside.display());
        assert_eq!(blocks[1], Ok(json!({"type": "text", "text": text})));
        let refused = |at: usize| blocks[at].clone().expect_err("it is not taken");
        assert!(refused(2).contains("takes no files in a prompt"), "{}", refused(2));
        assert!(refused(3).ends_with("takes no images"), "{}", refused(3));
    }
}
