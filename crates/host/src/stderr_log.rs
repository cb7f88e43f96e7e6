//! The log file of an agent's stderr, where its entry asks for one (SU-4): bounded, rotated, for its owner only.
//!
//! One task per process takes lines, leaves secrets out, and writes them; nothing waits for it. The file is shared by
//! all processes of the agent, of other acpd processes with the same state directory too: it is opened for each batch
//! and locked while it is written or rotated. A file that cannot be written costs its lines and a warning, nothing else.

use crate::clock::{iso8601, now_ms};
use crate::secrets::Secrets;
use acpd_supervisor::StderrLine;
use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Lines that may wait to be written, each below 4 KiB. Full: the process task drops lines and counts them.
const LINES: usize = 1024;
/// Lines that are written together.
const BATCH: usize = 64;
/// A file is not written any further when it would exceed this, in bytes.
const LIMIT: u64 = 1024 * 1024;
/// Files that are kept beside the current one.
const KEPT: usize = 3;

/// Takes the lines of one process.
pub(crate) struct StderrLogTask {
    file: LogFile,
    lines: mpsc::Receiver<StderrLine>,
}

impl StderrLogTask {
    /// A task that writes to `path`, and where its lines come in.
    pub(crate) fn new(path: &Path) -> (Self, mpsc::Sender<StderrLine>) {
        let (sender, lines) = mpsc::channel(LINES);
        let file = LogFile { path: path.to_owned(), limit: LIMIT, kept: KEPT };
        (Self { file, lines }, sender)
    }

    /// Writes until the process with this id has ended and said its last line.
    pub(crate) async fn run(mut self, pid: u32, secrets: Arc<Mutex<Secrets>>) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut failed = false;
        while self.lines.recv_many(&mut batch, BATCH).await > 0 {
            let text = {
                let secrets = secrets.lock();
                let at = iso8601(now_ms());
                batch.drain(..).map(|line| entry(&at, pid, &line, &secrets)).collect::<String>()
            };
            let file = self.file.clone();
            let written = tokio::task::spawn_blocking(move || file.append(&text)).await;
            match written.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
                Ok(()) => failed = false,
                Err(error) if !failed => {
                    tracing::warn!(path = %self.file.path.display(), %error, "cannot write what an agent says on stderr");
                    failed = true;
                }
                Err(_) => {}
            }
        }
    }
}

/// One line of the log, or two if lines were lost before it.
fn entry(at: &str, pid: u32, line: &StderrLine, secrets: &Secrets) -> String {
    let mut entry = String::new();
    if line.lost_before > 0 {
        entry
            .push_str(&format!("{at} [{pid}] ({} lines came too fast and are not here)\n", line.lost_before));
    }
    if let Some(text) = &line.text {
        // It is read in a terminal, which must not take orders from an agent.
        let shown = secrets.redact(text).replace(|c: char| c.is_control() && c != '\t', "\u{fffd}");
        entry.push_str(&format!("{at} [{pid}] {shown}\n"));
    }
    entry
}

/// A file that is rotated: `name`, then `name.1`, the older the higher.
#[derive(Clone, Debug)]
struct LogFile {
    path: PathBuf,
    limit: u64,
    kept: usize,
}

impl LogFile {
    /// Appends whole lines. Blocks: on the disk, and on others who write to the same file.
    fn append(&self, text: &str) -> io::Result<()> {
        loop {
            let mut file = self.open()?;
            flock(&file, FlockOperation::LockExclusive)?;
            let size = file.metadata()?.len();
            if !self.is_current(&file) {
                // Another process has rotated it meanwhile.
                continue;
            }
            if size > 0 && size + text.len() as u64 > self.limit {
                self.rotate()?;
                continue;
            }
            return file.write_all(text.as_bytes());
        }
    }

    fn open(&self) -> io::Result<File> {
        let open = || OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path);
        match (open(), self.path.parent()) {
            (Err(error), Some(dir)) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
                open()
            }
            (opened, _) => opened,
        }
    }

    fn is_current(&self, file: &File) -> bool {
        let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
        let (open, named) = (file.metadata().map(identity), std::fs::metadata(&self.path).map(identity));
        matches!((open, named), (Ok(open), Ok(named)) if open == named)
    }

    /// Gives every file the next number; the last is replaced. Only with the lock on the current file.
    fn rotate(&self) -> io::Result<()> {
        for number in (0..self.kept).rev() {
            match std::fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    fn numbered(&self, number: usize) -> PathBuf {
        let mut name: OsString = self.path.clone().into();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(dir: &Path, limit: u64, kept: usize) -> LogFile {
        LogFile { path: dir.join("logs/agent.log"), limit, kept }
    }

    // SU-4: bounded in size and number, whole lines, for the owner only
    #[test]
    fn files_are_rotated() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let log = log(dir.path(), 30, 2);
        for number in 0..100 {
            log.append(&format!("line {number:>3}\n")).expect("written");
        }
        let read = |number| std::fs::read_to_string(log.numbered(number)).expect("it is there");
        assert_eq!(read(0), "line  99\n");
        assert_eq!(read(1), "line  96\nline  97\nline  98\n");
        assert_eq!(read(2), "line  93\nline  94\nline  95\n");
        assert!(!log.numbered(3).exists());
        let mode = |path: &Path| std::fs::metadata(path).expect("it is there").mode() & 0o777;
        assert_eq!((mode(&log.path), mode(&log.numbered(2))), (0o600, 0o600));
        assert_eq!(mode(log.path.parent().expect("it has one")), 0o700);
        // One batch may be larger than a file.
        log.append(&"x".repeat(100)).expect("written");
        assert_eq!((read(0).len(), read(1)), (100, "line  99\n".to_owned()));
    }

    // SU-4: several processes write to one file, and no line is torn or lost
    #[test]
    fn writers_share_a_file() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let log = log(dir.path(), 2_000, 1_000);
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let log = &log;
                scope.spawn(move || {
                    for number in 0..500 {
                        log.append(&format!("{writer}:{number}\n")).expect("written");
                    }
                });
            }
        });
        let files = (0..).map(|number| log.numbered(number)).take_while(|path| path.exists());
        let texts: Vec<String> = files.map(|path| std::fs::read_to_string(path).expect("text")).collect();
        assert!(texts.len() > 3 && texts.iter().all(|text| text.len() <= 2_000));
        let mut lines: Vec<&str> = texts.iter().flat_map(|text| text.lines()).collect();
        lines.sort_unstable();
        let mut expected: Vec<String> =
            (0..4).flat_map(|writer| (0..500).map(move |number| format!("{writer}:{number}"))).collect();
        expected.sort_unstable();
        assert_eq!(lines, expected);
    }

    // TM-1, SU-4: no secrets, no control characters, and what is missing is said
    #[test]
    fn an_entry_is_one_line() {
        let params = r#"{"mcpServers":[{"env":[{"name":"TOKEN","value":"0123456789"}]}]}"#;
        let secrets = Secrets::of_session(params.as_bytes());
        let line = StderrLine { lost_before: 0, text: Some("a\tb \u{1b}[31m0123456789\r".to_owned()) };
        assert_eq!(entry("T", 7, &line, &secrets), "T [7] a\tb \u{fffd}[31m[redacted]\u{fffd}\n");
        let lost = StderrLine { lost_before: 3, text: None };
        assert_eq!(entry("T", 7, &lost, &secrets), "T [7] (3 lines came too fast and are not here)\n");
    }
}
