//! Real programs that misbehave, and a look at what is left of them.

#![allow(dead_code, reason = "each test program uses its own part")]

#[path = "processes.rs"]
mod processes;

use acpd_supervisor::{Graces, KeeperCommand, Process, ProgramSpec, StartError, Supervisor, TaskScope};
pub(crate) use processes::processes_with;
use std::ffi::OsString;
use std::time::Duration;
use tokio_util::bytes::BytesMut;

pub(crate) const KEEPER: &str = env!("CARGO_BIN_EXE_acpd-keeper");

const LONG: Duration = Duration::from_secs(600);

/// The graces of programs that end when their stdin does: a busy machine is not too late for that.
const PATIENT: Graces = Graces { stdin: LONG, term: LONG };

/// The graces of programs that end upon SIGTERM.
pub(crate) const UPON_SIGTERM: Graces = Graces { stdin: Duration::from_millis(100), term: LONG };

/// The graces of programs that end by no word.
pub(crate) const BRIEF: Graces =
    Graces { stdin: Duration::from_millis(100), term: Duration::from_millis(300) };

/// A supervisor whose processes can be told from everybody else's.
pub(crate) struct Bench {
    pub(crate) supervisor: Supervisor,
    pub(crate) scope: TaskScope,
    pub(crate) host: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with_keeper(KeeperCommand { program: KEEPER.into(), args: Vec::new() })
    }

    pub(crate) fn with_keeper(keeper: KeeperCommand) -> Self {
        let host = uuid::Uuid::new_v4().to_string();
        let scope = TaskScope::default();
        Self { supervisor: Supervisor::new(keeper, &host, scope.clone()), scope, host }
    }

    pub(crate) async fn sh(&self, script: &str) -> Process {
        self.sh_with(PATIENT, script).await
    }

    pub(crate) async fn sh_with(&self, graces: Graces, script: &str) -> Process {
        self.start(ProgramSpec { graces, ..shell(script) }).await.expect("sh starts")
    }

    pub(crate) async fn start(&self, spec: ProgramSpec) -> Result<Process, StartError> {
        self.supervisor.start(spec).await
    }

    /// Ids of living processes that carry our mark.
    pub(crate) fn alive(&self) -> Vec<u32> {
        let mark = format!("ACPD_PROCESS={}.", self.host);
        processes_with(mark.as_bytes())
    }

    /// Waits for the process tasks, then looks: nothing may be left.
    pub(crate) async fn nothing_left(self) {
        self.scope.finished().await;
        assert_eq!(self.alive(), Vec::<u32>::new(), "processes were left behind");
    }
}

pub(crate) fn shell(script: &str) -> ProgramSpec {
    let mut spec = ProgramSpec::new("sh", std::env::temp_dir());
    spec.args = vec!["-c".into(), script.into()];
    spec.env = vec![(OsString::from("PATH"), std::env::var_os("PATH").expect("PATH is set"))];
    spec.graces = PATIENT;
    spec
}

/// True for a process that was stopped by a signal.
pub(crate) fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, fields)| fields.starts_with(" T "))
}

/// Reads stdout until `needle` is in what was read, or the end.
pub(crate) async fn read_until(process: &mut Process, needle: &str) -> String {
    let mut buffer = BytesMut::new();
    while !String::from_utf8_lossy(&buffer).contains(needle) {
        buffer.reserve(4096);
        if process.stdout.read_buf(&mut buffer).await.expect("stdout can be read") == 0 {
            break;
        }
    }
    String::from_utf8_lossy(&buffer).into_owned()
}

/// Reads stdout to its end.
pub(crate) async fn read_all(process: &mut Process) -> String {
    read_until(process, "\u{0}never\u{0}").await
}
