//! A session's directories, one that is not, and what the session is served of them.

use acpd_host::{FileError, FileRules, FileSlots, Files, FilesSpec};
use bytes::Bytes;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// What must happen happens long before; what must not block is found out by it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// `cwd` and `more` are the session's, `outside` is not.
pub(crate) struct Bench {
    directory: TempDir,
    pub(crate) files: Files,
}

/// Runs a test in which a thread that blocks would be a failure, and not the end of all tests.
pub(crate) fn without_waiting_for_threads(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    // Dropping it would wait for them.
    std::mem::ManuallyDrop::new(runtime).block_on(test);
}

/// An error as it goes to the agent.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Value,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with(FileRules::default()).await
    }

    pub(crate) async fn with(rules: FileRules) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for name in ["cwd", "more", "outside"] {
            fs::create_dir(directory.path().join(name)).expect("a directory");
        }
        fs::write(directory.path().join("outside/secret"), "secret\n").expect("a file");
        let directories = vec![directory.path().join("cwd"), directory.path().join("more")];
        let files = Files::open(FilesSpec { directories, rules }, &FileSlots::default()).await;
        Self { directory, files }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The path as an agent writes it.
    pub(crate) fn text(&self, name: &str) -> String {
        // Not `join`, which would take a trailing slash or dot for what it means.
        format!("{}/{name}", self.directory.path().display())
    }

    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("the file is written");
    }

    pub(crate) fn get(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("the file is there")
    }

    pub(crate) fn link(&self, name: &str, target: impl AsRef<Path>) {
        std::os::unix::fs::symlink(target, self.path(name)).expect("the link is made");
    }

    pub(crate) async fn read(&self, name: &str) -> Result<String, Refusal> {
        read(&self.files, json!({"sessionId": "s", "path": self.text(name)})).await
    }

    pub(crate) async fn write(&self, name: &str, content: &str) -> Result<(), Refusal> {
        write(&self.files, &self.text(name), content).await
    }

    /// All names below the directory, sorted.
    pub(crate) fn names(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(name)).expect("a directory");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Nothing outside the session's directories has changed.
    pub(crate) fn assert_outside_is_untouched(&self) {
        assert_eq!(self.names("outside"), ["secret"]);
        assert_eq!(self.get("outside/secret"), "secret\n");
    }

    /// What is refused because it is outside, or would be if it were there.
    pub(crate) fn outside(&self, name: &str) -> Refusal {
        outside(&self.text(name))
    }
}

pub(crate) fn outside(path: &str) -> Refusal {
    Refusal {
        code: -32602,
        message: format!("path: {path:?} is outside the session's directories"),
        data: json!({"path": path, "reason": "outside"}),
    }
}

pub(crate) async fn read(files: &Files, params: Value) -> Result<String, Refusal> {
    let read = tokio::time::timeout(PATIENCE, files.read(bytes(&params))).await;
    let result = read.expect("no read blocks").map_err(|error| refusal(&error))?;
    let result: Value = serde_json::from_slice(&result).expect("JSON");
    assert_eq!(result.as_object().map(|members| members.len()), Some(1), "only content");
    Ok(result["content"].as_str().expect("a text").to_owned())
}

pub(crate) async fn write(files: &Files, path: &str, content: &str) -> Result<(), Refusal> {
    let params = bytes(&json!({"sessionId": "s", "path": path, "content": content}));
    let written = tokio::time::timeout(PATIENCE, files.write(params)).await;
    let result = written.expect("no write blocks").map_err(|error| refusal(&error))?;
    assert_eq!(result, "{}");
    Ok(())
}

pub(crate) fn bytes(params: &Value) -> Bytes {
    params.to_string().into()
}

pub(crate) fn refusal(error: &FileError) -> Refusal {
    let (code, message, data) = error.to_wire();
    Refusal { code, message, data: json!(data) }
}

/// Code and reason of a refusal.
pub(crate) fn reason<T: std::fmt::Debug>(refused: Result<T, Refusal>) -> (i64, String) {
    let refusal = refused.expect_err("this is refused");
    (refusal.code, refusal.data["reason"].as_str().expect("a reason").to_owned())
}
