//! Files for agents: `fs/read_text_file` and `fs/write_text_file`, confined to the session's directories.
//!
//! Owned by the session, which hands over the raw `params` of a request and gets the raw `result`. Invariants: nothing
//! outside the roots is read or written, whatever links are swapped meanwhile; a file is replaced as a whole or not at
//! all; no request blocks an async thread. Not here: the choice between acpd and a client that offers files itself, and what
//! the agent is told it may call.

mod error;
mod guard;
mod params;
mod permits;
mod read;
mod roots;
mod threads;
mod write;

pub use error::FileError;
pub use permits::FileSlots;

use bytes::Bytes;
use permits::FilePermits;
use roots::Roots;
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;
use threads::NotDone;
use tokio::sync::RwLock;
use tokio_util::sync::CancellationToken;

/// Requests that one session has under way; more would only compete for the same disk. Full: they wait.
const READERS: u32 = 4;

/// `{"content": "..."}` with the content at hand.
#[derive(serde::Serialize)]
struct Content<'a> {
    content: &'a str,
}

/// What the configuration says of files, and what is known of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRules {
    /// Only the session's directories are served; else whatever the user can reach.
    pub confine: bool,
    /// A directory in which the agent keeps files of its own, served beside the session's where it exists.
    pub agent_directory: Option<PathBuf>,
    /// The longest content of one read or write, in bytes of UTF-8.
    pub max_bytes: u64,
    /// How much of a file one read may look at before the first line that it returns, in bytes.
    pub max_skipped: u64,
    /// A client that serves files itself, and may know what is not saved yet, is asked instead (FS-5).
    pub forward: bool,
}

impl Default for FileRules {
    /// Confined, 16 MiB behind at most 1 GiB, and acpd's own business.
    fn default() -> Self {
        let (max_bytes, max_skipped) = (16 << 20, 1 << 30);
        Self { confine: true, agent_directory: None, max_bytes, max_skipped, forward: false }
    }
}

/// Which files a session's agent is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesSpec {
    /// The session's working directory and its additional ones, absolute. One that cannot be opened is left out.
    pub directories: Vec<PathBuf>,
    /// What the configuration says.
    pub rules: FileRules,
}

impl FilesSpec {
    /// Reads `cwd` and `additionalDirectories` of the params of `session/new`, `load`, `resume` or `fork`. What is not
    /// an absolute path is left out: a name that depends on where acpd runs is no directory of the session.
    pub fn of_session(params: &[u8], rules: FileRules) -> Self {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Session {
            cwd: serde_json::Value,
            additional_directories: serde_json::Value,
        }
        let session: Session = crate::acp::view(params).unwrap_or_default();
        let additional = session.additional_directories.as_array().into_iter().flatten();
        let directories = std::iter::once(&session.cwd).chain(additional).filter_map(|path| path.as_str());
        let directories = directories.map(PathBuf::from).filter(|path| path.is_absolute()).collect();
        Self { directories, rules }
    }
}

/// The files of one session. Clones serve the same session.
///
/// Requests take effect in the order in which their futures are first polled: a write waits for what came before it,
/// and what comes after a write sees what it wrote.
#[derive(Clone, Debug)]
pub struct Files {
    roots: Arc<Roots>,
    bounds: Bounds,
    turns: Arc<RwLock<()>>,
    permits: FilePermits,
}

/// What one request may cost, in bytes.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    content: u64,
    skipped: u64,
}

impl Files {
    /// Opens the directories. They stay the same ones though their names come to mean others.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn open(spec: FilesSpec, slots: &FileSlots) -> Self {
        let FilesSpec { mut directories, rules } = spec;
        let bounds = Bounds { content: rules.max_bytes, skipped: rules.max_skipped };
        let open = move || {
            directories.extend(rules.agent_directory.filter(|directory| directory.is_dir()));
            if rules.confine { Roots::open(&directories) } else { Roots::everything() }
        };
        let roots = slots.run(open).await.unwrap_or_default();
        Self {
            roots: Arc::new(roots),
            bounds,
            turns: Arc::new(RwLock::with_max_readers((), READERS)),
            permits: FilePermits::new(slots),
        }
    }

    /// Serves `fs/read_text_file`: raw params to raw result.
    ///
    /// Lines end with LF and keep their line ends, so pieces that follow each other make up the file. `line` 0 counts
    /// as 1.
    ///
    /// # Errors
    /// [`FileError`]; nothing is read by halves.
    ///
    /// # Cancel safety
    ///
    /// Safe: the work stops soon, unheard.
    pub fn read(&self, params: Bytes) -> impl Future<Output = Result<Bytes, FileError>> + Send + use<> {
        self.serve(Arc::clone(&self.turns).read_owned(), move |roots, bounds, stopped| {
            let request = params::ReadRequest::parse(&params)?;
            let content = read::read(roots, &request, bounds, stopped)?;
            let result = serde_json::to_vec(&Content { content: &content });
            Ok(result.expect("a string is JSON").into())
        })
    }

    /// Serves `fs/write_text_file`: raw params to raw result.
    ///
    /// # Errors
    /// [`FileError`]; the file is then as it was. Directories that were made for it stay.
    ///
    /// # Cancel safety
    ///
    /// Safe: either the file is as it was, or it is replaced as a whole, unheard.
    pub fn write(&self, params: Bytes) -> impl Future<Output = Result<Bytes, FileError>> + Send + use<> {
        self.serve(Arc::clone(&self.turns).write_owned(), move |roots, bounds, stopped| {
            let request = params::WriteRequest::parse(&params)?;
            write::write(roots, &request, bounds.content, stopped)?;
            Ok(Bytes::from_static(b"{}"))
        })
    }

    /// Does `work` on a thread that may block, once it is its turn.
    fn serve<T, W>(
        &self,
        turn: T,
        work: W,
    ) -> impl Future<Output = Result<Bytes, FileError>> + Send + use<T, W>
    where
        T: Future<Output: Send + 'static> + Send,
        W: FnOnce(&Roots, Bounds, &dyn Fn() -> bool) -> Result<Bytes, FileError> + Send + 'static,
    {
        let (roots, bounds, permits) = (Arc::clone(&self.roots), self.bounds, self.permits.clone());
        async move {
            let turn = turn.await;
            let permit = permits.take().await;
            let stop = CancellationToken::new();
            let _stop_when_dropped = stop.clone().drop_guard();
            let work = move || {
                let _held = (turn, permit);
                work(&roots, bounds, &|| stop.is_cancelled())
            };
            match permits.slots().run(work).await {
                Ok(outcome) => outcome,
                Err(NotDone::NoThread(source)) => Err(FileError::NoThread(source)),
                Err(NotDone::Lost) => Err(FileError::Lost),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // SE-3, FS-1: the roots are the session's own directories, and only full paths name any
    #[test]
    fn the_directories_are_those_of_the_session() {
        for (params, expected) in [
            (r#"{"cwd":"/a","mcpServers":[]}"#, vec!["/a"]),
            (r#"{"cwd":"/a","additionalDirectories":["/b","/c"]}"#, vec!["/a", "/b", "/c"]),
            (r#"{"cwd":"/a","additionalDirectories":["b","../c",7,null]}"#, vec!["/a"]),
            (r#"{"cwd":"/a","additionalDirectories":null}"#, vec!["/a"]),
            (r#"{"cwd":"a"}"#, vec![]),
            ("[]", vec![]),
        ] {
            let spec = FilesSpec::of_session(params.as_bytes(), FileRules::default());
            let expected: Vec<PathBuf> = expected.into_iter().map(PathBuf::from).collect();
            assert_eq!(spec.directories, expected, "{params}");
        }
    }
}
