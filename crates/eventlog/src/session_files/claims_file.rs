//! Which sessions a host has, in a file of its own: so that who starts after a crash looks at those alone.
//!
//! A line is written before a session is claimed and another behind its release, so the file may name a session too many, never one
//! too few. Owned by its host; others read it once that is dead. Invariant: what a line that was torn says did not happen.

use super::layout;
use crate::disk_sync::{open_directory, sync_file, sync_names};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The first line, before the host's name.
pub(crate) const CLAIMS_HEAD: &str = "acpd claims 1 ";
/// Lines that it may have before it is looked whether most of them say nothing any more.
const FEW: usize = 64;

/// The sessions that a host says it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// The host.
    pub host: String,
    /// Ids of sessions.
    pub sessions: BTreeSet<String>,
}

/// The file of a host, for that host.
#[derive(Debug)]
pub struct ClaimsFile {
    path: PathBuf,
    file: File,
    length: u64,
    lines: usize,
    claims: Claims,
    /// The disk confirms a line before the session is claimed.
    syncs: bool,
}

impl Claims {
    /// What a file says; None: it is none of ours, or was being made.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        // Behind the last end of a line stands what was torn.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |end| &bytes[..end]);
        let mut lines = std::str::from_utf8(whole).ok()?.split('\n');
        let host = serde_json::from_str(lines.next()?.strip_prefix(CLAIMS_HEAD)?).ok()?;
        let mut sessions = BTreeSet::new();
        for line in lines {
            let (change, id) = line.split_at_checked(1)?;
            let id: String = serde_json::from_str(id).ok()?;
            match change {
                "+" => drop(sessions.insert(id)),
                "-" => drop(sessions.remove(&id)),
                _ => return None,
            }
        }
        Some(Self { host, sessions })
    }

    /// Its bytes, with a line for each session.
    fn encode(&self) -> String {
        let lines = self.sessions.iter().map(|id| line('+', id));
        format!("{CLAIMS_HEAD}{}\n{}", quoted(&self.host), lines.collect::<String>())
    }

    /// What the hosts of a state directory say. One whose file cannot be read is passed over with a warning: its sessions say
    /// themselves whose they are.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn of_all(state: &Path) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(layout::claims(state)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            match fs::read(entry.path()).map(|bytes| Self::parse(&bytes)) {
                Ok(Some(claims)) => all.push(claims),
                // It has ended meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Ok(None) => tracing::warn!(file = ?entry.path(), "it does not say which sessions a host has"),
                Err(error) => {
                    tracing::warn!(file = ?entry.path(), %error, "a host's sessions could not be read")
                }
            }
        }
        all.sort_by(|one, other| one.host.cmp(&other.host));
        Ok(all)
    }

    /// Removes the file of a host that is dead, when none of its sessions is left to it.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn forget(state: &Path, host: &str) -> io::Result<()> {
        match fs::remove_file(layout::claims(state).join(layout::name_of(host))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl ClaimsFile {
    /// Makes the file of a host that begins.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(state: &Path, host: &str) -> io::Result<Self> {
        let directory = layout::claims(state);
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let path = directory.join(layout::name_of(host));
        let claims = Claims { host: host.to_owned(), sessions: BTreeSet::new() };
        let (file, length) = write_whole(&path, &claims, false)?;
        Ok(Self { path, file, length, lines: 0, claims, syncs: false })
    }

    /// The same, where the disk confirms each session before it may be claimed, if `syncs`.
    ///
    /// # Errors
    /// When it does not confirm that the file is there.
    pub fn syncing(mut self, state: &Path, syncs: bool) -> io::Result<Self> {
        self.syncs = syncs;
        if syncs {
            (self.file, self.length) = write_whole(&self.path, &self.claims, true)?;
            sync_names(open_directory(state)?)?;
        }
        Ok(self)
    }

    /// Whether it says that its host has a session.
    pub fn has(&self, id: &str) -> bool {
        self.claims.sessions.contains(id)
    }

    /// A session is about to be claimed.
    ///
    /// # Errors
    /// When it cannot be written: it must not be claimed then.
    pub fn add(&mut self, id: &str) -> io::Result<()> {
        if self.claims.sessions.contains(id) {
            return Ok(());
        }
        self.write(&line('+', id))?;
        if self.syncs {
            sync_file(&self.file)?;
        }
        self.claims.sessions.insert(id.to_owned());
        Ok(())
    }

    /// A session was released, or could not be claimed. That this is not written costs those a look who come later.
    pub fn remove(&mut self, id: &str) {
        if !self.claims.sessions.remove(id) {
            return;
        }
        let is_long = self.lines > FEW && self.lines > 2 * self.claims.sessions.len();
        let written = match is_long {
            true => write_whole(&self.path, &self.claims, self.syncs).map(|(file, length)| {
                (self.file, self.length, self.lines) = (file, length, self.claims.sessions.len());
            }),
            false => self.write(&line('-', id)),
        };
        if let Err(error) = written {
            tracing::debug!(%error, "a release is not noted");
        }
    }

    /// The host ends. Its file goes if it has no session any more.
    pub fn end(&self) {
        if self.claims.sessions.is_empty() {
            // What stays for want of that names no session.
            drop(fs::remove_file(&self.path));
        }
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        match self.file.write_all(line.as_bytes()) {
            Ok(()) => {
                self.length += line.len() as u64;
                self.lines += 1;
                Ok(())
            }
            Err(error) => {
                // A part of a line must not become the front of the next one.
                self.file.set_len(self.length)?;
                Err(error)
            }
        }
    }
}

/// Writes a file aside and puts it in its place; with `syncs`, the disk confirms both.
fn write_whole(path: &Path, claims: &Claims, syncs: bool) -> io::Result<(File, u64)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let aside = path.with_file_name(format!(".{name}"));
    let text = claims.encode();
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&aside)?;
    file.set_len(0)?;
    file.write_all(text.as_bytes())?;
    if syncs {
        sync_file(&file)?;
    }
    fs::rename(&aside, path)?;
    if let (true, Some(directory)) = (syncs, path.parent()) {
        sync_names(open_directory(directory)?)?;
    }
    Ok((file, text.len() as u64))
}

/// An id may have any character, the end of a line too.
fn line(change: char, id: &str) -> String {
    format!("{change}{}\n", quoted(id))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(state: &Path) -> BTreeSet<String> {
        let mut all = Claims::of_all(state).expect("it is read");
        assert_eq!(all.len(), 1);
        all.remove(0).sessions
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        // design session-files 2: whatever is claimed and released, and wherever the last line was torn, the file says what was so
        #[test]
        fn it_says_which_sessions_a_host_has(
            steps in prop::collection::vec((0..6_usize, any::<bool>()), 0..200),
            ids in prop::collection::vec("\\PC{0,6}|\n", 6),
        ) {
            let state = tempfile::tempdir().expect("a directory");
            let mut file = ClaimsFile::begin(state.path(), "host").expect("it is made");
            let mut model = BTreeSet::new();
            for (at, adds) in steps {
                let id = &ids[at];
                if adds {
                    file.add(id).expect("it is written");
                    model.insert(id.clone());
                } else {
                    file.remove(id);
                    model.remove(id);
                }
            }
            prop_assert_eq!(&read(state.path()), &model);
            let bytes = fs::read(&file.path).expect("it is read");
            let head = CLAIMS_HEAD.len() + "\"host\"\n".len();
            for end in 0..=bytes.len() {
                let torn = Claims::parse(&bytes[..end]);
                prop_assert_eq!(torn.is_some(), end >= head, "{} of {}", end, bytes.len());
                let whole = bytes[..end].iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
                prop_assert_eq!(torn, Claims::parse(&bytes[..whole]));
            }
            // A host that has had many sessions has a short file.
            prop_assert!(file.lines <= FEW + 2 * ids.len());
            file.end();
            prop_assert_eq!(Claims::of_all(state.path()).expect("it is read").is_empty(), model.is_empty());
            Claims::forget(state.path(), "host").expect("it is removed");
            prop_assert!(Claims::of_all(state.path()).expect("it is read").is_empty());
        }
    }

    // design session-files 2: what is no host's file is passed over, and each host's is its own
    #[test]
    fn what_is_no_claims_file_is_passed_over() {
        let state = tempfile::tempdir().expect("a directory");
        assert_eq!(Claims::of_all(state.path()).expect("there is none"), []);
        for host in ["one", "../Other"] {
            ClaimsFile::begin(state.path(), host).expect("it is made").add("a").expect("it is written");
        }
        for (name, bytes) in
            [("odd", &b"+\"a\"\n"[..]), ("torn", b"acpd cl"), (".two", b"acpd claims 1 \"two\"\n")]
        {
            fs::write(layout::claims(state.path()).join(name), bytes).expect("it is written");
        }
        let all = Claims::of_all(state.path()).expect("it is read");
        assert_eq!(all.iter().map(|one| one.host.as_str()).collect::<Vec<_>>(), ["../Other", "one"]);
    }
}
