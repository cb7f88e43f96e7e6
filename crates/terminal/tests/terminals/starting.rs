//! How commands start, and what they get.

use super::bench::{Bench, OWNER, command, shell, snapshot, text};
use acpd_supervisor::StartError;
use acpd_terminal::{CreateError, TerminalSettings, TerminalSpec};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use tokio::task::JoinSet;

// contract 2.3, TE-1: an id at once, never the same one
#[tokio::test]
async fn create_does_not_wait_for_the_command() {
    let bench = Bench::new();
    let mut ids = BTreeSet::new();
    for _ in 0..5 {
        let terminal = bench.sh("sleep 1000").await;
        assert_eq!(snapshot(&terminal).await.report, None);
        ids.insert(terminal.id().clone());
    }
    assert_eq!(ids.len(), 5);
    assert_eq!(bench.terminals.all_of(OWNER).len(), 5);
    bench.nothing_left().await;
}

// TE-1: no shell reads the arguments
#[tokio::test]
async fn arguments_are_passed_as_they_are() {
    let bench = Bench::new();
    let spec = command("printf", &["<%s>", "a b", "$HOME; *", "", "\"'\\", "new\nline"]);
    let terminal = bench.create(spec).await.expect("printf starts");
    terminal.wait_for_exit().await;
    assert_eq!(text(&terminal).await, "<a b><$HOME; *><><\"'\\><new\nline>");
    bench.nothing_left().await;
}

// TE-1: env adds to what is inherited; SU-7: not acpd's own
#[tokio::test]
async fn the_environment_is_inherited_and_added_to() {
    let bench = Bench::new();
    let mut spec = command("env", &[]);
    spec.env = vec![("GREETING".into(), "hello".into()), ("GIT_PAGER".into(), "mine".into())];
    let terminal = bench.create(spec).await.expect("env starts");
    terminal.wait_for_exit().await;
    let text = text(&terminal).await;
    let has = |line: &str| text.lines().any(|known| known == line);
    let path = std::env::var("PATH").expect("PATH is set");
    assert!(has(&format!("PATH={path}")) && has("GREETING=hello"), "{text}");
    assert!(has("PAGER=cat") && has("GIT_PAGER=mine") && has("GIT_TERMINAL_PROMPT=0"), "{text}");
    assert!(!text.contains("ACPD_SECRET") && !text.contains("GIT_PAGER=cat"), "{text}");
    bench.nothing_left().await;
}

// TE-1: the working directory, for finding the command too
#[tokio::test]
async fn the_working_directory_is_the_given_one() {
    let bench = Bench::new();
    let dir = tempfile::tempdir().expect("a scratch directory");
    let path = dir.path().canonicalize().expect("it is there");
    let script = path.join("where");
    std::fs::write(&script, "#!/bin/sh\npwd -P\n").expect("a scratch file can be written");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("and its mode set");
    let terminal = bench.create(TerminalSpec::new("./where", &path)).await.expect("it starts");
    assert_eq!(terminal.wait_for_exit().await.exit_code(), Some(0));
    assert_eq!(text(&terminal).await, format!("{}\n", path.display()));
    bench.nothing_left().await;
}

// TE-1: nobody types, so who reads sees the end
#[tokio::test]
async fn stdin_is_empty() {
    let bench = Bench::new();
    let terminal = bench.sh("cat; readlink /proc/self/fd/0").await;
    terminal.wait_for_exit().await;
    assert_eq!(text(&terminal).await, "/dev/null\n");
    bench.nothing_left().await;
}

// TE-1: a command that cannot start is an error that says why, and no terminal
#[tokio::test]
async fn what_cannot_start_is_no_terminal() {
    let bench = Bench::new();
    let dir = tempfile::tempdir().expect("a scratch directory");
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "#!/bin/sh\n").expect("a scratch file can be written");
    let start = async |spec| match bench.create(spec).await {
        Err(CreateError::Start(error)) => error,
        other => panic!("not an error: {other:?}"),
    };
    assert!(matches!(start(command("no-such-command", &[])).await, StartError::NotFound { .. }));
    assert!(matches!(start(command("", &[])).await, StartError::NotFound { .. }));
    let plain = plain.to_str().expect("text");
    assert!(matches!(start(command(plain, &[])).await, StartError::NotExecutable { .. }));
    let nowhere = TerminalSpec::new("true", "/no/such/directory");
    assert!(matches!(start(nowhere).await, StartError::BadCwd { .. }));
    assert!(matches!(start(command("true", &["a\0b"])).await, StartError::Unrepresentable { .. }));
    assert!(bench.terminals.all_of(OWNER).is_empty());
    bench.nothing_left().await;
}

// quirk line-as-command (agents that pass on what a model writes): a line that is no program's name is run by `sh -c`;
// one with arguments, and a single word, never is
#[tokio::test]
async fn a_line_is_run_by_a_shell() {
    let bench = Bench::new();
    let dir = tempfile::tempdir().expect("a scratch directory");
    std::fs::create_dir(dir.path().join("sub")).expect("a scratch directory can be made");
    let script = dir.path().join("my tool");
    std::fs::write(&script, "#!/bin/sh\necho the tool\n").expect("a scratch file can be written");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("and its mode set");
    let long = format!("echo {} | wc -c", "x".repeat(600));
    for (line, code, says) in [
        ("echo one && echo two | tail -1", 0, "one\ntwo\n"),
        ("cd sub && basename \"$PWD\"", 0, "sub\n"),
        ("FOO=1 sh -c 'echo $FOO; exit 3'", 3, "1\n"),
        ("echo a;echo b", 0, "a\nb\n"),
        ("echo a\necho b", 0, "a\nb\n"),
        (&long, 0, "601\n"),
        // As it stands it is a program, and no shell reads it.
        ("./my tool", 0, "the tool\n"),
    ] {
        let spec = TerminalSpec::new(line, dir.path());
        let terminal = bench.create(spec).await.unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(terminal.wait_for_exit().await.exit_code(), Some(code), "{line}");
        assert_eq!(text(&terminal).await, says, "{line}");
    }
    for (name, args) in [("no-such-command", vec![]), (" no-such-command", vec!["x"]), ("echo a", vec!["b"])]
    {
        let spec = TerminalSpec {
            args: args.into_iter().map(Into::into).collect(),
            ..TerminalSpec::new(name, dir.path())
        };
        let refused = bench.create(spec).await.map(|_| ()).expect_err("there is no such program");
        assert!(matches!(refused, CreateError::Start(StartError::NotFound { .. })), "{name}: {refused}");
    }
    bench.nothing_left().await;
}

// contract 2.3: what was not found is said in a sentence, however long PATH is and whatever is in it
#[tokio::test]
async fn a_long_path_is_not_repeated() {
    let bench = Bench::new();
    let mut spec = TerminalSpec::new("no-such-command", std::env::temp_dir());
    let dirs: Vec<String> = (0..50).map(|n| format!("/no/such/directory/{n}")).collect();
    spec.env = vec![("PATH".into(), dirs.join(":").into())];
    let refused = bench.create(spec).await.map(|_| ()).expect_err("there is no such program");
    assert_eq!(
        refused.to_string(),
        "command not found: no-such-command (looked in the 50 directories of PATH)"
    );
    bench.nothing_left().await;
}

// TE-11: an agent that forgets to release is told, and nobody else suffers
#[tokio::test]
async fn an_owner_has_so_many_terminals() {
    let bench = Bench::with(TerminalSettings { terminals_per_owner: 3, ..TerminalSettings::default() });
    let mut creates = JoinSet::new();
    for _ in 0..10 {
        let terminals = bench.terminals.clone();
        creates.spawn(async move { terminals.create(OWNER, shell("exit 0"), None).await });
    }
    let (created, refused): (Vec<_>, Vec<_>) = creates.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!((created.len(), refused.len()), (3, 7));
    let error = refused[0].as_ref().expect_err("it was refused");
    assert_eq!(error.to_string(), "too many terminals: 3 are open, release some first");
    bench.terminals.create("session-2", shell("exit 0"), None).await.expect("another owner's are its own");
    let first = created[0].as_ref().expect("it was created");
    bench.terminals.release(OWNER, first).await.expect("it is there");
    bench.create(shell("exit 0")).await.expect("there is room again");
    bench.nothing_left().await;
}

/// Polls a future once; it has begun then, and is not done.
macro_rules! begin {
    ($future:expr) => {
        tokio::select! {
            biased;
            done = $future.as_mut() => panic!("done at once: {done:?}"),
            () = std::future::ready(()) => {}
        }
    };
}

// TE-11: who gives up while a command starts leaves nothing
#[tokio::test]
async fn a_create_that_is_dropped_leaves_nothing() {
    let bench = Bench::new();
    let mut create = Box::pin(bench.terminals.create(OWNER, shell("sleep 1000"), None));
    begin!(create);
    assert_eq!(bench.terminals.all_of(OWNER).len(), 1, "it is being started");
    let starting = bench.terminals.all_of(OWNER).remove(0);
    drop(create);
    assert!(bench.terminals.all_of(OWNER).is_empty());
    starting.wait_for_exit().await;
    assert_eq!(bench.alive(), Vec::<u32>::new());
    bench.nothing_left().await;
}

// TE-11: a session that ends while a command starts leaves nothing
#[tokio::test]
async fn a_release_overtakes_a_create() {
    let bench = Bench::new();
    let mut create = Box::pin(bench.terminals.create(OWNER, shell("sleep 1000"), None));
    begin!(create);
    bench.terminals.release_all(OWNER).await;
    assert_eq!(bench.alive(), Vec::<u32>::new());
    assert!(matches!(create.await, Err(CreateError::Released)));
    bench.nothing_left().await;
}
