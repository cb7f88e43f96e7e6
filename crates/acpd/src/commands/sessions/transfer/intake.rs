//! The sessions in a file, one behind the other, each in pieces.
//!
//! A thread reads, since a file cannot be waited for. Invariant: what is read and not yet taken is bounded; a session that is
//! taken no further is skipped. Not here: what is in a session.

use crate::exit::Failure;
use acpd_eventlog::log_files::open_foreign;
use bytes::Bytes;
use futures_util::{Stream, stream};
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The beginning of the first line of a session, as an export writes it.
const HEAD: &[u8] = b"{\"type\":\"acpd-export\"";
/// The most that is read as one piece, in bytes.
const PIECE: u64 = 1 << 20;
/// Pieces that wait to be sent. Full: the file is not read.
const WAITING: usize = 4;

type Pieces = mpsc::Receiver<io::Result<Bytes>>;

/// A file that is being read.
pub(super) struct Intake {
    path: PathBuf,
    sessions: mpsc::Receiver<(u64, Pieces)>,
    count: usize,
    first_line: u64,
    reading: Option<JoinHandle<io::Result<()>>>,
}

impl Intake {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let input: Box<dyn Read + Send> = match path == Path::new("-") {
            true => Box::new(io::stdin()),
            false => {
                let opened = open_foreign(path, OpenOptions::new().read(true));
                let opened = opened.and_then(|file| match file.metadata()?.is_dir() {
                    true => Err(io::Error::other("a directory; name a file in it")),
                    false => Ok(file),
                });
                Box::new(opened.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?)
            }
        };
        let (found, sessions) = mpsc::channel(1);
        let reading = tokio::task::spawn_blocking(move || read(BufReader::new(input), &found));
        Ok(Self { path: path.to_owned(), sessions, count: 0, first_line: 1, reading: Some(reading) })
    }

    /// The pieces of the next session; None behind the last.
    pub(super) async fn next_session(
        &mut self,
    ) -> Option<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        let (first_line, pieces) = self.sessions.recv().await?;
        self.first_line = first_line;
        self.count += 1;
        Some(stream::unfold(pieces, async |mut pieces| pieces.recv().await.map(|piece| (piece, pieces))))
    }

    /// How many sessions were found so far.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The line of the file at which the session begins that was found last, from 1.
    pub(super) fn first_line(&self) -> u64 {
        self.first_line
    }

    /// Whether there is one session and no more. Waits for nothing: the next would have been found.
    pub(super) fn is_only(&self) -> bool {
        self.count == 1 && self.reading.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Why the file could not be read to its end.
    pub(super) async fn trouble(&mut self) -> Option<Failure> {
        let read = self.reading.take()?.await;
        let why = match read {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(panicked) => panicked.to_string(),
        };
        Some(Failure::Failed(format!("cannot read {}: {why}", self.path.display())))
    }
}

fn read(mut input: impl BufRead, found: &mpsc::Sender<(u64, Pieces)>) -> io::Result<()> {
    let begin = |line| {
        let (sender, pieces) = mpsc::channel(WAITING);
        found.blocking_send((line, pieces)).ok().map(|()| sender)
    };
    // Also of an empty file: that is told like any other that is no export.
    let Some(mut sender) = begin(1) else { return Ok(()) };
    let (mut is_first, mut at_start, mut line) = (true, true, 1);
    loop {
        let mut piece = Vec::new();
        let read = (&mut input).take(PIECE).read_until(b'\n', &mut piece);
        if let Err(error) = read {
            let told = io::Error::new(error.kind(), error.to_string());
            // So that what was sent of it is not taken for the whole.
            let _gone = sender.blocking_send(Err(told));
            return Err(error);
        }
        if piece.is_empty() {
            return Ok(());
        }
        if at_start && !is_first && piece.starts_with(HEAD) {
            let Some(next) = begin(line) else { return Ok(()) };
            sender = next;
        }
        (is_first, at_start) = (false, piece.ends_with(b"\n"));
        line += u64::from(at_start);
        // One that is refused is not taken any further.
        let _refused = sender.blocking_send(Ok(piece.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;

    // contract 7.1, contract 7.3: sessions stand one behind the other, each with its first line
    #[tokio::test]
    async fn a_file_is_told_apart_by_its_first_lines() {
        let long = "x".repeat(3 << 20);
        let head = String::from_utf8_lossy(HEAD).into_owned();
        let (one, two) = (format!("{head},1}}\n{long}{head}\n"), format!("{head},2}}\nlast"));
        let scratch = tempfile::tempdir().expect("a directory");
        let file = scratch.path().join("file");
        for (content, expected) in
            [(one.clone() + &two, vec![one, two]), (String::new(), vec![String::new()])]
        {
            std::fs::write(&file, content).expect("a file");
            let mut intake = Intake::open(&file).expect("it is there");
            let (mut sessions, mut next_line) = (Vec::<String>::new(), 1);
            while let Some(pieces) = intake.next_session().await {
                assert_eq!(intake.first_line(), next_line);
                let pieces: Vec<Bytes> = pieces.map(|piece| piece.expect("it is read")).collect().await;
                sessions.push(String::from_utf8(pieces.concat()).expect("text"));
                next_line += 2;
            }
            assert!(sessions == expected, "{}", sessions.len());
            assert!(intake.trouble().await.is_none());
        }
    }
}
