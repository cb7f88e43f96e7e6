//! Keepers of other versions: those that were released and are still spoken with, and some that are too old or too new.
//!
//! `acpd` starts no other keeper than itself, so the first daemon is a host in a process of its own: this same test program, told by its
//! environment to play that part.

use crate::gap::gone;
use crate::session::{Session, keeping, of_kind, post, said, without_holes};
use crate::turns::{all_pieces, in_pieces};
use acpd_e2e::{Scratch, acpd};
use acpd_eventlog::{EventLog, Options};
use acpd_host::{
    AgentSpec, ClientRef, Continuity, Creator, EventKind, Host, HostFile, HostOptions, KEEPERS, Program,
    SessionId, TaskScope, TerminalSettings, prompt_params,
};
use acpd_supervisor::{KeeperCommand, Supervisor, keeper_versions};
use flate2::read::GzDecoder;
use rustix::process::{Signal, getpid, kill_process};
use serde_json::{json, value::to_raw_value};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The state directory of the first daemon.
const STATE: &str = "SKEW_STATE";
/// Its keeper: the file of one that is kept, or the version that one of today says it speaks.
const KEEPER: &str = "SKEW_KEEPER";

/// Pieces of the turn, which take about 10 ms each, and updates of it after which the first daemon dies.
const PIECES: usize = 60;
const UPDATES: usize = 100;

/// The keeper that is kept of this version.
fn kept(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/continuity/keepers/v{version}.gz"))
}

/// Not a test of its own: a daemon that begins a session, and is killed in its turn. Without a part it does nothing.
#[tokio::test]
async fn part() {
    let (Ok(state), Ok(keeper)) = (std::env::var(STATE), std::env::var(KEEPER)) else { return };
    let (state, work) = (Path::new(&state), std::env::current_dir().expect("a directory"));
    let host = open(state, command(&keeper, &state.with_file_name("keeper"))).await;
    let agent = host.connect("example", None).await.expect("it starts");
    let setup = Some(json!({"cwd": work, "mcpServers": []}).to_string().into());
    let creator = Creator { client: "e2e".into(), token: None, key: None };
    let session = host.new_session(&agent, setup, creator).await.expect("a session").session;
    let prompt = to_raw_value(&[json!({"type": "text", "text": in_pieces(PIECES)})]).expect("it is JSON");
    let client = ClientRef { name: "e2e".into(), connection: "e2e-1".into() };
    host.prompt(session.id(), prompt_params(session.id(), &prompt, None), client).await.expect("a turn");
    updates(&host, session.id()).await;
    writeln!(std::io::stdout(), "\n# {} {}", session.id(), agent.pid()).expect("the test reads");
    kill_process(getpid(), Signal::KILL).expect("it may");
}

/// How this keeper is started; what is packed is unpacked into `file` first.
fn command(keeper: &str, file: &Path) -> KeeperCommand {
    if !keeper.ends_with(".gz") {
        return KeeperCommand { program: acpd().with_file_name("acpd-keeper"), args: vec![keeper.into()] };
    }
    let packed = std::fs::File::open(keeper).expect("one is kept of each version");
    let mut options = std::fs::OpenOptions::new();
    let mut program = options.write(true).create_new(true).mode(0o700).open(file).expect("a new file");
    std::io::copy(&mut GzDecoder::new(packed), &mut program).expect("it is whole");
    KeeperCommand { program: file.to_owned(), args: Vec::new() }
}

async fn open(state: &Path, keeper: KeeperCommand) -> Host {
    let host_file = HostFile::create(state).expect("the state directory can be written");
    let log = EventLog::open(state, Options::default()).expect("the log opens");
    let scope = TaskScope::default();
    let supervisor = Supervisor::new(keeper, host_file.id(), scope.clone());
    let program = Program { command: acpd().into(), args: vec!["example-agent".into()], env: Vec::new() };
    let spec = AgentSpec::new("example".to_owned(), program);
    let continuity = Continuity {
        keep: Duration::from_secs(60),
        detached_bytes: 8 << 20,
        directory: state.join(KEEPERS),
        takes_over: acpd_host::TakesOver::All,
        is_handed_over: false,
    };
    let options = HostOptions {
        agents: BTreeMap::from([(spec.name.clone(), spec)]),
        finder: None,
        cwd: state.to_owned(),
        terminal: TerminalSettings::default(),
        continuity: Some(continuity),
    };
    Host::open(options, log, supervisor, scope, host_file, state).await
}

/// Waits for the commit of so many updates.
async fn updates(host: &Host, id: &SessionId) {
    let mut cursor = host.cursor(id, 0).await.expect("it is there");
    let mut seen = 0;
    while seen < UPDATES {
        let block = cursor.next().await.expect("it can be read").expect("the session is live");
        seen += block.events().filter(|event| event.kind == EventKind::Update.number()).count();
    }
}

/// A daemon with this keeper from its start to its death in a turn: the session, and the process id of its agent.
fn first_daemon(scratch: &Scratch, keeper: &str) -> (Session, u64) {
    let mut command = scratch.command(std::env::current_exe().expect("it is ours"));
    command.args(["skew::part", "--exact", "--nocapture"]);
    command.env(STATE, scratch.state()).env(KEEPER, keeper);
    let output = command.output().expect("it runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.signal(), Some(9), "{out}{err}");
    let told = out.lines().find_map(|line| line.strip_prefix("# ")?.split_once(' '));
    let (id, pid) = told.unwrap_or_else(|| panic!("no session: {out}"));
    (Session { id: id.to_owned() }, pid.parse().expect("a process id"))
}

// contract 7.2: the keeper of each version that is spoken, as it was released, hands its agent over in the middle of a turn
#[test]
fn a_turn_goes_on_with_a_keeper_of_an_earlier_release() {
    for version in keeper_versions() {
        let scratch = keeping("60s");
        let (session, pid) = first_daemon(&scratch, &kept(version).display().to_string());
        let mut daemon = scratch.serve();
        assert_eq!(session.pid(&daemon), pid, "the same agent");
        let ended = session.event(&daemon, "turn_ended");
        assert_eq!((&ended["turn"], &ended["stopReason"]), (&json!(1), &json!("end_turn")), "{ended}");
        let events = session.events(&daemon);
        without_holes(&events);
        assert_eq!(of_kind(&events, "reattached").len(), 1);
        assert_eq!((of_kind(&events, "prompt").len(), of_kind(&events, "run_started").len()), (1, 1));
        assert_eq!(said(&events), all_pieces(PIECES));
        // And once more, as any other.
        daemon.kill();
        let mut daemon = scratch.serve();
        assert_eq!(session.prompt(&daemon, "again").status, 202);
        session.events_until_turn(&daemon, 2);
        assert_eq!(session.pid(&daemon), pid);
        daemon.stop();
    }
}

// contract 7.2: what is kept of a version is small enough to be kept for ever
#[test]
fn a_kept_keeper_is_small() {
    for version in keeper_versions() {
        let file = kept(version);
        let packed =
            file.metadata().unwrap_or_else(|_| panic!("{}: run `cargo xtask keeper`", file.display()));
        assert!(packed.len() < 400 << 10, "{}: {} bytes", file.display(), packed.len());
    }
}

// contract 7.2: an agent whose keeper cannot be spoken with ends by the ladder, and its session says why and can go on
#[test]
fn a_keeper_that_is_too_old_or_too_new_is_not_waited_for() {
    for version in [keeper_versions().start() - 1, keeper_versions().end() + 1] {
        let scratch = keeping("60s");
        let (session, pid) = first_daemon(&scratch, &version.to_string());
        let mut daemon = scratch.serve();
        // It was ended before the daemon listened.
        gone(pid);
        let ended = session.event(&daemon, "ended")["terminationInfo"].clone();
        assert_eq!(
            (&ended["cause"], &ended["reason"], &ended["terminatedBy"], &ended["turnActive"]),
            (&json!("daemon_upgrade"), &json!("completed"), &json!("daemon"), &json!(true)),
            "{ended}"
        );
        without_holes(&session.events(&daemon));
        assert_eq!(std::fs::read_dir(scratch.state().join("keepers")).expect("it is there").count(), 0);
        let resumed = post(&daemon, &format!("/v1/sessions/{}/resume", session.id), &json!({}));
        assert_eq!(resumed.status, 200, "{}", resumed.json());
        assert_ne!(session.pid(&daemon), pid);
        daemon.stop();
    }
}
