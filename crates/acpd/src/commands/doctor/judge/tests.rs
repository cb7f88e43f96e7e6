//! Each judgement, from facts that are made up.

use super::*;
use acpd_eventlog::session_files::SessionFileError;
use rustix::io::Errno;

/// The remedy of the only check.
fn remedy(checks: &[Check]) -> Option<&str> {
    let [check] = checks else { panic!("{checks:?}") };
    assert_eq!(check.ok, check.remedy.is_none(), "{check:?}");
    check.remedy.as_deref()
}

fn well_placed() -> State {
    State {
        place: Place::There { owner: 7, mode: 0o700, user: 7, refused: None },
        below: Vec::new(),
        file_system: Some(0xef53),
        free_bytes: Some(1 << 40),
        reserved_bytes: 0,
        free_files: Some(100_000),
    }
}

// contract 7.1: the state directory: its owner, mode, file system and room, each with what to do
#[test]
fn a_state_directory_is_judged() {
    let there = |owner, mode| Place::There { owner, mode, user: 7, refused: None };
    let read_only = Some(Errno::ROFS);
    for (place, file_system, free_bytes, expected) in [
        (there(7, 0o700), 0xef53, 1 << 40, None),
        (Place::Absent { can_be_made: true }, 0xef53, 1 << 40, None),
        (Place::Absent { can_be_made: false }, 0xef53, 1 << 40, Some("mkdir")),
        (Place::NoDirectory, 0xef53, 1 << 40, Some("move it away")),
        (Place::Unknown("no".to_owned()), 0xef53, 1 << 40, Some("let this user in")),
        (there(8, 0o700), 0xef53, 1 << 40, Some("chown -R 7 /s")),
        (there(7, 0o750), 0xef53, 1 << 40, Some("chmod 700 /s")),
        (there(7, 0o500), 0xef53, 1 << 40, Some("chmod 700 /s")),
        (
            Place::There { owner: 7, mode: 0o700, user: 7, refused: read_only },
            0xef53,
            1 << 40,
            Some("writable"),
        ),
        (there(7, 0o700), 0x6969, 1 << 40, Some("local disk")),
        (there(7, 0o700), 0xff53_4d42, 1 << 40, Some("local disk")),
        (there(7, 0o700), 0xef53, 1 << 20, Some("free some")),
    ] {
        let (file_system, free_bytes) = (Some(file_system), Some(free_bytes));
        let found = State { place, file_system, free_bytes, ..well_placed() };
        let checks = state(Path::new("/s"), &found);
        let told = remedy(&checks);
        assert_eq!(told.is_some(), expected.is_some(), "{found:?}: {told:?}");
        assert!(told.unwrap_or_default().contains(expected.unwrap_or_default()), "{found:?}: {told:?}");
    }
    for (free, expected) in [(Some(99_999), Some("prune")), (Some(100_000), None), (None, None)] {
        let checks = state(Path::new("/s"), &State { free_files: free, ..well_placed() });
        let told = remedy(&checks);
        assert_eq!(told.is_some(), expected.is_some(), "{free:?}: {told:?}");
        assert!(told.unwrap_or_default().contains(expected.unwrap_or_default()), "{told:?}");
    }
    let unknown = State { file_system: None, free_bytes: None, ..well_placed() };
    assert_eq!(remedy(&state(Path::new("/s"), &unknown)), None, "what cannot be told is no finding");
    let foreign =
        State { place: there(8, 0o777), file_system: Some(0x6969), free_bytes: Some(0), ..well_placed() };
    assert_eq!(state(Path::new("/s"), &foreign).len(), 3, "each is told");
    assert!(is_own(&well_placed()) && !is_own(&foreign));
}

// contract 7.1: what keeps a daemon from starting is told, and nothing else
#[test]
fn what_hinders_a_start_is_judged() {
    let below = |name: &str, why| vec![Below { path: format!("/s/{name}").into(), why }];
    let there = |mode, refused| Place::There { owner: 7, mode, user: 7, refused };
    for (found, expected) in [
        (State { place: there(0o755, None), ..well_placed() }, None),
        (State { file_system: Some(0x6969), free_bytes: Some(1 << 20), ..well_placed() }, None),
        (State { free_files: None, free_bytes: None, ..well_placed() }, None),
        (State { free_bytes: Some(0), reserved_bytes: 1 << 20, ..well_placed() }, None),
        (State { free_bytes: Some(0), ..well_placed() }, Some(("nothing can begin", "free some"))),
        (State { free_files: Some(0), ..well_placed() }, Some(("no inode left", "remove files"))),
        (State { place: there(0o700, Some(Errno::ROFS)), ..well_placed() }, Some(("/s cannot", "writable"))),
        (State { place: there(0o500, Some(Errno::ACCESS)), ..well_placed() }, Some(("/s cannot", "chmod"))),
        (
            State { below: below("hosts", Errno::ACCESS), ..well_placed() },
            Some(("/s/hosts", "chmod u+rwX /s/hosts")),
        ),
        (State { below: below("acpd.db", Errno::ROFS), ..well_placed() }, Some(("/s/acpd.db", "writable"))),
        (
            State { below: below("keepers", Errno::NOTDIR), ..well_placed() },
            Some(("/s/keepers", "move it away")),
        ),
        (
            State {
                place: there(0o700, Some(Errno::ROFS)),
                below: below("hosts", Errno::ROFS),
                ..well_placed()
            },
            Some(("/s cannot", "writable")),
        ),
    ] {
        let told = hindrances(Path::new("/s"), &found);
        match (&told[..], expected) {
            ([], None) => {}
            ([check], Some((says, remedy))) => {
                assert!(check.says.contains(says), "{check:?}");
                assert!(check.remedy.as_ref().is_some_and(|told| told.contains(remedy)), "{check:?}");
            }
            (told, expected) => panic!("{found:?}: {told:?}, not {expected:?}"),
        }
    }
}

// contract 7.1: programs of agents, limits and reach, each with what to do
#[test]
fn agents_and_limits_are_judged() {
    let file = || PathBuf::from("/bin/a");
    for (command, found, expected) in [
        ("a", Program::Found(file()), None),
        ("a", Program::NotExecutable(file()), Some("chmod +x /bin/a")),
        ("a", Program::Missing, Some("its whole path")),
        ("/bin/a", Program::Missing, Some("mend command in [agents.x]")),
    ] {
        let checks = [agent("x", command, &found)];
        let told = remedy(&checks);
        assert_eq!(told.is_some(), expected.is_some(), "{found:?}");
        assert!(told.unwrap_or_default().contains(expected.unwrap_or_default()), "{told:?}");
    }
    for (files, ok) in [(None, true), (Some(4096), true), (Some(4095), false), (Some(0), false)] {
        assert_eq!(remedy(&[limits(files)]).is_none(), ok, "{files:?}");
    }
    assert_eq!(remedy(&[containment(Containment::Subreaper)]), None);
    assert!(remedy(&[containment(Containment::ProcessGroup)]).is_some());
}

// contract 7.1: the configuration and its tokens
#[test]
fn a_configuration_is_judged() {
    assert_eq!(remedy(&[configuration(None, None)]), None);
    assert_eq!(remedy(&[configuration(Some(Path::new("/c")), None)]), None);
    let exposed = configuration(Some(Path::new("/c")), Some("anyone".to_owned()));
    assert!(remedy(&[exposed]).is_some_and(|told| told.contains("acpd token new")));
    let wrong = mistake("/c:1:1: unknown\n 1 | secret");
    assert_eq!(wrong.says, "/c:1:1: unknown");
    assert!(remedy(&[wrong]).is_some_and(|told| told.contains("acpd config check")));
    assert!(remedy(&[expired("ci")]).is_some_and(|told| told.contains("acpd token rotate ci")));
}

// contract 7.1: a unit that cannot start, or that kills what it is to stop
#[test]
fn a_unit_is_judged() {
    let well = || Unit {
        file: "/u".into(),
        program: Some("/bin/acpd".to_owned()),
        missing_program: None,
        missing_config: None,
        kill_mode: Some("mixed".to_owned()),
    };
    assert_eq!(remedy(&unit(&well())), None);
    let gone = || Some("/gone".to_owned());
    for (found, expected) in [
        (Unit { program: None, ..well() }, "ExecStart="),
        (Unit { missing_program: gone(), ..well() }, "install acpd there"),
        (Unit { missing_config: gone(), ..well() }, "acpd config init --config /gone"),
        (Unit { kill_mode: None, ..well() }, "KillMode=mixed"),
        (Unit { kill_mode: Some("control-group".to_owned()), ..well() }, "KillMode=mixed"),
    ] {
        let checks = unit(&found);
        assert!(remedy(&checks).is_some_and(|told| told.contains(expected)), "{found:?}: {checks:?}");
    }
    let text = "# ExecStart=/a\nExecStart=/bin/old\n ExecStart = /bin/acpd serve\nKillModeX=a\nEnvironment=A=1 \
                \"ACPD_CONFIG=/c.toml\"\nKillMode=\n";
    assert_eq!(unit_value(text, "ExecStart").as_deref(), Some("/bin/acpd serve"));
    assert_eq!(unit_value(text, "KillMode"), None);
    assert_eq!(unit_variable(text, "ACPD_CONFIG").as_deref(), Some("/c.toml"));
    assert_eq!(unit_variable(text, "ACPD_STORAGE_PATH"), None);
}

// contract 7.1: versions of client and daemon, how it stands, and whether it knows its configuration
#[test]
fn a_daemon_is_judged() {
    let there = |version: &str, unwell: Option<&str>, stale: Option<&str>| DaemonFacts::There {
        at: "/s".to_owned(),
        version: version.to_owned(),
        unwell: unwell.map(str::to_owned),
        stale: stale.map(str::to_owned),
        fleet: None,
    };
    for (found, expected) in [
        (DaemonFacts::None("/s".to_owned(), None), None),
        (DaemonFacts::None("/s".to_owned(), Some("8 sessions wait".to_owned())), Some("acpd serve")),
        (DaemonFacts::WithoutSocket("/s".to_owned(), 42), Some("kill 42")),
        (DaemonFacts::Closed("/s".to_owned(), "no".to_owned()), Some("--token-file")),
        (there("1", None, None), None),
        (there("2", None, None), Some("restart it")),
        (there("1", Some("degraded: full"), None), Some("When something is wrong")),
        (there("1", None, Some("/c")), Some("acpd reload")),
        (DaemonFacts::Unknown("no token".to_owned()), Some("--connect")),
        (DaemonFacts::Unreachable("refused".to_owned()), Some("start it")),
    ] {
        let checks = [daemon(&found, "1")];
        let told = remedy(&checks);
        assert_eq!(told.is_some(), expected.is_some(), "{found:?}: {told:?}");
        assert!(told.unwrap_or_default().contains(expected.unwrap_or_default()), "{told:?}");
    }
}

// contract 7.1: the log, of either storage, and what lies beside it
#[test]
fn a_log_is_judged() {
    assert_eq!(remedy(&log(Ok(None))), None);
    let path = || PathBuf::from("/s/acpd.db");
    let damaged = |name| OpenError::Damaged { path: PathBuf::from("/s").join(name), detail: "x".to_owned() };
    for (error, expected) in [
        (OpenError::Damaged { path: path(), detail: "x".to_owned() }, "restore it from a backup"),
        (OpenError::Newer { path: path(), found: 9, supported: 1 }, "the newer acpd"),
        (OpenError::Orphaned { path: "/s/acpd.db-wal".into(), database: path() }, "put the database back"),
        (OpenError::Foreign { path: path(), application_id: 1 }, "another state directory"),
        (OpenError::NoWal { path: path(), mode: "x".to_owned() }, "look at its permissions"),
    ] {
        let checks = log(Err(error));
        assert!(remedy(&checks).is_some_and(|told| told.contains(expected)), "{expected}");
    }
    let whole =
        |sessions| Examined { sessions, bytes: 3 << 20, damaged: Vec::new(), index: None, notes: None };
    for (found, says) in [
        (Ok(Some(whole(2))), "2 sessions in files, 3"),
        (Ok(Some(whole(1))), "1 session in files, 3"),
        (Err(OpenError::Unmigrated { path: path() }), "the next start moves them"),
    ] {
        let checks = log(found);
        assert!(remedy(&checks).is_none() && checks[0].says.contains(says), "{checks:?}");
    }
    let session = PathBuf::from("/s/sessions/ab/one");
    let error = SessionFileError::Damaged { number: 2, last_seq: 7 };
    let one = Examined { damaged: vec![(session, error)], ..whole(2) };
    let checks = log(Ok(Some(one)));
    assert!(remedy(&checks).is_some_and(|told| told.contains("from a backup")));
    assert!(
        checks[0].says.contains("/s/sessions/ab/one: segment 2 of the session is damaged behind event 7")
    );
    let index = Examined { index: Some(damaged("index-1.db")), ..whole(2) };
    let notes = Examined { notes: Some(damaged("hooks.db")), ..whole(2) };
    for (found, says, to_do) in [
        (index, "index of sessions, and no session is in it", "the next start makes it again"),
        (notes, "hooks are still to be notified of, and no session is in it", "move it away"),
    ] {
        let checks = log(Ok(Some(found)));
        assert!(checks[0].says.contains(says), "{checks:?}");
        let told = remedy(&checks).expect("a remedy");
        assert!(told.contains(to_do) && !told.contains("empty log"), "{told}");
    }
}
