//! What can go wrong at the start, told apart, and the environment a program gets.

#[path = "support/programs.rs"]
mod programs;

use acpd_supervisor::{KeeperCommand, ProgramSpec, StartError};
use programs::{Bench, KEEPER, read_all, shell};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

async fn failure(spec: ProgramSpec) -> StartError {
    let bench = Bench::new();
    let error = bench.start(spec).await.map(|_| ()).expect_err("it cannot start");
    bench.nothing_left().await;
    error
}

fn script(dir: &std::path::Path, name: &str, text: &str, mode: u32) -> std::path::PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).expect("a scratch file can be written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("and its mode set");
    path
}

// SU-5: not found
#[tokio::test]
async fn a_missing_program_is_not_found() {
    let mut spec = shell("");
    spec.command = "no-such-agent".into();
    // Not the tester's, which may be too long to be told.
    spec.env.push(("PATH".into(), "/usr/bin:/bin".into()));
    let error = failure(spec.clone()).await;
    assert!(
        matches!(&error, StartError::NotFound { command, .. } if command == "no-such-agent"),
        "{error:?}"
    );
    assert!(error.to_string().contains("PATH: /usr/bin:/bin"), "{error}");
    spec.command = "/no/such/agent".into();
    assert!(matches!(failure(spec).await, StartError::NotFound { .. }));
}

// SU-5: not executable
#[tokio::test]
async fn a_file_without_the_right_is_not_executable() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let mut spec = shell("");
    spec.command = script(dir.path(), "agent", "#!/bin/sh\n", 0o644).into();
    assert!(matches!(failure(spec.clone()).await, StartError::NotExecutable { .. }));
    spec.command = dir.path().into();
    assert!(matches!(failure(spec).await, StartError::NotExecutable { .. }));
}

// SU-5: a file that is open for writing is waited for, as a fork of who wrote it may have it open for a moment
#[tokio::test]
async fn a_program_that_is_being_written_is_waited_for() {
    let bench = Bench::new();
    let dir = tempfile::tempdir().expect("a scratch directory");
    let mut spec = shell("");
    spec.command = script(dir.path(), "agent", "#!/bin/sh\necho written\n", 0o755).into();
    let writer = std::fs::File::options().write(true).open(&spec.command).expect("it is there");
    let mut starting = Box::pin(bench.start(spec));
    let early = tokio::time::timeout(Duration::from_millis(200), &mut starting).await;
    assert!(early.is_err(), "it was not waited for");
    drop(writer);
    let mut process = starting.as_mut().await.expect("it starts");
    drop(starting);
    assert_eq!(read_all(&mut process).await, "written\n");
    bench.nothing_left().await;
}

// SU-5: a script whose interpreter is missing is not the same as a missing script
#[tokio::test]
async fn a_missing_interpreter_is_named_as_such() {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let mut spec = shell("");
    spec.command = script(dir.path(), "agent", "#!/no/such/interpreter\n", 0o755).into();
    assert!(matches!(failure(spec).await, StartError::InterpreterNotFound { .. }));
}

// SU-5: bad working directory
#[tokio::test]
async fn a_bad_working_directory_is_named() {
    let mut spec = shell("");
    spec.cwd = "/no/such/directory".into();
    assert!(matches!(failure(spec.clone()).await, StartError::BadCwd { cwd, .. } if cwd == spec.cwd));
    spec.cwd = std::env::current_exe().expect("this test has a file");
    assert!(matches!(failure(spec).await, StartError::BadCwd { .. }));
}

#[tokio::test]
async fn a_nul_byte_is_refused_before_anything_runs() {
    let mut spec = shell("");
    spec.args.push("a\0b".into());
    assert!(matches!(failure(spec).await, StartError::Unrepresentable { .. }));
}

// SU-7: the program gets what the spec says and the mark, nothing else
#[tokio::test]
async fn the_environment_is_exactly_the_given_one() {
    let bench = Bench::new();
    let mut spec = shell("env");
    spec.env.push(("GREETING".into(), "hello\nworld".into()));
    spec.env.push(("ACPD_PROCESS".into(), "of an outer host".into()));
    let mut process = bench.start(spec).await.expect("sh starts");
    let output = read_all(&mut process).await;
    let mut names: Vec<_> = output.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    names.retain(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name));
    assert_eq!(names, ["ACPD_PROCESS", "GREETING", "PATH"]);
    assert!(output.contains(&format!("ACPD_PROCESS={}.1", bench.host)), "{output}");
    assert!(output.contains("GREETING=hello\nworld"));
    bench.nothing_left().await;
}

// SU-1: the program leads its own process group, and no descriptor of ours leaks into it
#[tokio::test]
async fn the_program_has_three_descriptors_and_its_own_group() {
    let bench = Bench::new();
    let mut spec = shell("");
    // Without a shell in between, which may open descriptors of its own; 3 is the listing itself.
    (spec.command, spec.args) = ("ls".into(), vec!["/proc/self/fd".into()]);
    let mut process = bench.start(spec).await.expect("ls starts");
    assert_eq!(read_all(&mut process).await, "0\n1\n2\n3\n");
    let mut process = bench.sh("cut -d' ' -f5 /proc/$$/stat").await;
    assert_eq!(read_all(&mut process).await, format!("{}\n", process.handle.pid()));
    bench.nothing_left().await;
}

// SU-7: signals that the keeper handles, and those that whoever started the daemon had it ignore, have their default
// action in the program
#[tokio::test]
async fn signal_dispositions_are_the_default_ones() {
    let ignoring = format!("trap '' HUP INT QUIT TERM USR1 ALRM TTOU; exec '{KEEPER}'");
    let bench =
        Bench::with_keeper(KeeperCommand { program: "sh".into(), args: vec!["-c".into(), ignoring.into()] });
    let mut spec = shell("");
    (spec.command, spec.args) = ("cat".into(), vec!["/proc/self/status".into()]);
    let mut process = bench.start(spec).await.expect("cat starts");
    let output = read_all(&mut process).await;
    let mask = |name: &str| {
        let line = output.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel reports masks");
        // The C library keeps 32 and 33 for itself.
        u64::from_str_radix(line.trim(), 16).expect("in hexadecimal") & !0x1_8000_0000
    };
    assert_eq!((mask("SigBlk:"), mask("SigIgn:")), (0, 0));
    bench.nothing_left().await;
}
