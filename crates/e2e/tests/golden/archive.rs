//! Fixtures as files: directories and texts, compressed.
//!
//! Invariant: an archive holds names, bytes and modes; no owner, no time, no path of the machine it was made on.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tar::{Archive, Builder, EntryType, Header};

/// Files that are no part of what is recorded: bytes that only take up room, and where a daemon was and its configuration.
const LEFT_OUT: [&str; 3] = ["acpd.reserve", "daemon.config", "daemon.address"];

/// The file of a fixture.
pub(crate) fn path(name: &str, ending: &str) -> PathBuf {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/fixtures");
    fixtures.join(format!("{name}.{ending}.gz"))
}

/// Packs these directories below `root` with all that is recorded in them, in the order of names.
pub(crate) fn pack(root: &Path, dirs: &[&str], to: &Path) {
    let out = GzEncoder::new(File::create(to).expect("a new file"), Compression::best());
    let mut archive = Builder::new(out);
    for dir in dirs {
        add_dir(&mut archive, root, Path::new(dir));
    }
    archive.into_inner().and_then(GzEncoder::finish).expect("it is written");
}

fn add_dir(archive: &mut Builder<impl Write>, root: &Path, dir: &Path) {
    let mut header = header_of(&root.join(dir));
    header.set_entry_type(EntryType::Directory);
    header.set_size(0);
    archive.append_data(&mut header, dir, std::io::empty()).expect("it is written");
    let mut entries: Vec<_> = fs::read_dir(root.join(dir)).expect("a directory").flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (name, kind) = (dir.join(entry.file_name()), entry.file_type().expect("it is there"));
        if kind.is_dir() {
            add_dir(archive, root, &name);
        } else if kind.is_file() && !LEFT_OUT.iter().any(|left_out| name.ends_with(left_out)) {
            let content = fs::read(entry.path()).expect("it can be read");
            let mut header = header_of(&entry.path());
            header.set_size(content.len() as u64);
            archive.append_data(&mut header, &name, content.as_slice()).expect("it is written");
        }
    }
}

fn header_of(path: &Path) -> Header {
    let mut header = Header::new_ustar();
    header.set_mode(fs::metadata(path).expect("it is there").permissions().mode() & 0o777);
    header
}

/// Unpacks an archive.
pub(crate) fn unpack(from: &Path, into: &Path) {
    let mut archive = Archive::new(GzDecoder::new(File::open(from).expect("the fixture is there")));
    archive.set_preserve_mtime(false);
    archive.unpack(into).expect("it is whole");
}

/// Writes a text. The same lines stand in it again and again, far apart, as in pages and in streams: from the second time
/// on a long one is the number of the first.
pub(crate) fn write_text(text: &str, to: &Path) {
    let mut out = GzEncoder::new(File::create(to).expect("a new file"), Compression::best());
    out.write_all(referring(text).as_bytes()).and_then(|()| out.finish()).expect("it is written");
}

/// Reads a text.
pub(crate) fn read_text(from: &Path) -> String {
    let mut text = String::new();
    let file = File::open(from).expect("the fixture is there");
    GzDecoder::new(file).read_to_string(&mut text).expect("it is text");
    spelled_out(&text)
}

/// What a line of a stream has before what it shares with others.
const DATA: &str = "data: ";

fn parts(line: &str) -> (&str, &str) {
    line.split_at(if line.starts_with(DATA) { DATA.len() } else { 0 })
}

fn referring(text: &str) -> String {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        let (data, line) = parts(line);
        assert!(!line.starts_with('@'), "such a line would be taken for a number");
        out.push_str(data);
        match first.entry(line) {
            Entry::Occupied(first) if line.len() > 30 => out.push_str(&format!("@{}", first.get())),
            entry => {
                entry.or_insert(number);
                out.push_str(line);
            }
        }
        out.push('\n');
    }
    out
}

fn spelled_out(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let (data, line) = parts(line);
        let first = line.strip_prefix('@').and_then(|number| lines.get(number.parse::<usize>().ok()?));
        let line = first.map_or(line, |first| parts(first).1);
        lines.push(format!("{data}{line}"));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

// What is compared with something else than was kept shows nothing.
#[test]
fn texts_come_back() {
    let long = "{\"x\":\"0123456789 0123456789 0123456789\"}";
    let text = format!("# a\n{long}\nb\nid: 1\ndata: {long}\n\nb\n{long}\n");
    assert!(referring(&text).ends_with("data: @1\n\nb\n@1\n"), "{}", referring(&text));
    assert_eq!(spelled_out(&referring(&text)), text);
}
