//! A program that is kept, the host that has started it, and the next host that wants it.

use crate::programs::{BRIEF, Bench, KEEPER, processes_with, shell};
use acpd_supervisor::{
    Adopting, AttachError, Attached, KeepFor, KeeperCommand, Process, ProcessMark, ProgramSpec,
};
use std::path::Path;
use std::time::Duration;

pub(crate) const KEY: &str = "a key that nobody guesses";
pub(crate) const LONG: Duration = Duration::from_secs(600);

pub(crate) fn kept(script: &str) -> ProgramSpec {
    ProgramSpec { kept: true, ..shell(script) }
}

/// A program that is kept, the host that has started it, and the directory of its keeper.
pub(crate) struct Kept {
    pub(crate) bench: Bench,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) mark: ProcessMark,
    pub(crate) process: Process,
}

impl Kept {
    pub(crate) async fn start(script: &str, keep: Duration) -> Self {
        Self::start_as(kept(script), keep, 1 << 20).await
    }

    pub(crate) async fn start_as(spec: ProgramSpec, keep: Duration, bytes: u64) -> Self {
        Self::start_on(Bench::new(), spec, keep, bytes).await
    }

    /// The same of a program that ends by no word.
    pub(crate) async fn start_stubborn(script: &str, keep: Duration) -> Self {
        Self::start_as(ProgramSpec { graces: BRIEF, ..kept(script) }, keep, 1 << 20).await
    }

    /// The same with a keeper that speaks this version alone.
    pub(crate) async fn start_speaking(version: u32, script: &str, keep: Duration) -> Self {
        let keeper = KeeperCommand { program: KEEPER.into(), args: vec![version.to_string().into()] };
        let spec = ProgramSpec { graces: BRIEF, ..kept(script) };
        Self::start_on(Bench::with_keeper(keeper), spec, keep, 1 << 20).await
    }

    pub(crate) async fn start_on(bench: Bench, spec: ProgramSpec, keep: Duration, bytes: u64) -> Self {
        let process = bench.start(spec).await.expect("it starts");
        let directory = tempfile::tempdir().expect("a scratch directory");
        process.handle.keep(KeepFor {
            keep,
            detached_bytes: bytes,
            line_bytes: bytes,
            directory: directory.path().join("keepers"),
            key: KEY.into(),
        });
        let mark = process.handle.mark().clone();
        Self { bench, directory, mark, process }
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("keepers")
    }

    pub(crate) fn keeper(&self) -> u32 {
        let keepers = processes_with(format!("ACPD_KEEPER={}.", self.bench.host).as_bytes());
        assert_eq!(keepers.len(), 1);
        keepers[0]
    }

    pub(crate) async fn attach(&self, next: &Bench) -> Attached {
        attach(next, &self.path(), &self.mark, KEY).await.expect("its keeper answers")
    }

    /// Until a file of the keeper is there.
    pub(crate) async fn file(&self, what: &str) {
        let file = self.path().join(format!("{}.{what}", self.mark.as_str()));
        while !file.exists() {
            tokio::task::yield_now().await;
        }
    }

    /// Nothing is left: no process, no file.
    pub(crate) async fn nothing_left(self) {
        drop(self.process);
        let keeper = format!("ACPD_KEEPER={}.", self.bench.host);
        while !processes_with(keeper.as_bytes()).is_empty() {
            tokio::task::yield_now().await;
        }
        let directory = self.directory.path().join("keepers");
        while std::fs::read_dir(&directory).expect("the keeper made it").next().is_some() {
            tokio::task::yield_now().await;
        }
        self.bench.nothing_left().await;
    }
}

pub(crate) async fn attach(
    next: &Bench,
    path: &Path,
    mark: &ProcessMark,
    key: &str,
) -> Result<Attached, AttachError> {
    // As it is stored by a host.
    let mark = ProcessMark::parse(mark.as_str()).expect("it is one");
    next.supervisor.attach(path, &mark, key, Adopting::default()).await
}
