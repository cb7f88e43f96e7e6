//! What happens when one of the three parties is killed: daemon, keeper, program.

#[path = "support/programs.rs"]
mod programs;

use acpd_supervisor::{ExitStatus, Graces, KeeperCommand, Lineage, ProgramSpec, StartError, Sweep, sweep};
use programs::{BRIEF, Bench, KEEPER, UPON_SIGTERM, is_stopped, processes_with, read_until, shell};
use std::time::Duration;

/// How long a test waits for what must come. Generous: a busy machine is no defect.
const PATIENCE: Duration = Duration::from_secs(90);

const STUBBORN: &str =
    "trap '' TERM; setsid sleep 1000 & (setsid sleep 1001 &); echo ready; while :; do sleep 0.05; done";

/// Ends by no word.
fn stubborn(script: &str) -> ProgramSpec {
    ProgramSpec { graces: BRIEF, ..shell(script) }
}

/// When it is told to: before, its keeper may not have said that it runs.
const STOPS_ITS_KEEPER: &str = "read go; kill -STOP $PPID; echo ready; exec sleep 1000";

fn kill(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("not zero");
    rustix::process::kill_process(pid, signal).expect("it lives");
}

fn keeper_of(bench: &Bench) -> u32 {
    let keepers = processes_with(format!("ACPD_KEEPER={}.", bench.host).as_bytes());
    assert_eq!(keepers.len(), 1);
    keepers[0]
}

// architecture 4: what outlives a killed keeper is found by its mark
#[tokio::test]
async fn a_killed_keeper_leaves_nothing() {
    let bench = Bench::new();
    let mut process = bench.sh(STUBBORN).await;
    read_until(&mut process, "ready").await;
    kill(keeper_of(&bench), rustix::process::Signal::KILL);
    let report = process.handle.exited().await;
    assert_eq!(report.status, ExitStatus::Unknown);
    assert_eq!(bench.alive(), Vec::<u32>::new());
    bench.nothing_left().await;
}

// SU-3: keepers that are killed together are looked after together, and each report tells of its own
#[tokio::test]
async fn many_killed_keepers_leave_nothing() {
    let bench = Bench::new();
    let mut processes = Vec::new();
    for n in 0..20 {
        // Half of them leave something that nothing but its mark tells of.
        let leaves = if n % 2 == 0 { "setsid sleep 1000 & " } else { "" };
        let mut process = bench.sh(&format!("{leaves}echo ready; exec sleep 1000")).await;
        read_until(&mut process, "ready").await;
        processes.push(process);
    }
    for keeper in processes_with(format!("ACPD_KEEPER={}.", bench.host).as_bytes()) {
        kill(keeper, rustix::process::Signal::KILL);
    }
    for (n, process) in processes.iter().enumerate() {
        let report = process.handle.exited().await;
        assert_eq!(report.status, ExitStatus::Unknown);
        // The program itself dies with its keeper, and may be found before that.
        let least = u32::from(n % 2 == 0);
        assert!((least..=least + 1).contains(&report.leaked), "{n}: {report:?}");
    }
    assert_eq!(bench.alive(), Vec::<u32>::new());
    bench.nothing_left().await;
}

// contract 7.2: a process is known by its keeper, however it was started, and others are strangers
#[tokio::test]
async fn a_process_is_known_by_its_keeper() {
    let bench = Bench::new();
    let mut spec = shell("env -i setsid sleep 1000 & echo $!; cat");
    spec.label = Some("one".into());
    let mut one = bench.start(spec).await.expect("sh starts");
    let child = read_until(&mut one, "\n").await.trim().parse().expect("a process id");
    let other = bench.sh("cat").await;
    let of = |pid| bench.supervisor.lineage(pid);
    for pid in [one.handle.pid(), child] {
        assert_eq!(of(pid), Lineage::Program(Some("one".into())));
    }
    assert_eq!(of(other.handle.pid()), Lineage::Program(None));
    assert_eq!(of(std::process::id()), Lineage::Stranger);
    let stranger = Bench::new();
    assert_eq!(stranger.supervisor.lineage(child), Lineage::Stranger, "another supervisor's");
    one.handle.kill();
    one.handle.exited().await;
    assert_eq!(of(child), Lineage::Gone);
    other.handle.kill();
    other.handle.exited().await;
    bench.nothing_left().await;
}

// SU-3: whoever gives up while a program is being started leaves nothing, at whatever moment that is
#[tokio::test]
async fn a_start_that_nobody_waits_for_leaves_nothing() {
    let bench = Bench::new();
    for patience in [0, 0, 0, 1, 2, 4, 8, 16] {
        let start = bench.start(stubborn("exec sleep 1000"));
        drop(tokio::time::timeout(Duration::from_millis(patience), start).await);
    }
    // As long as the graces, with room for a busy machine; nobody must be killed for being late.
    let ended = tokio::time::timeout(PATIENCE, bench.nothing_left()).await;
    ended.expect("every keeper stopped what it had started");
}

/// Its keeper runs this script.
fn bench_with(keeper: &str) -> Bench {
    Bench::with_keeper(KeeperCommand { program: "sh".into(), args: vec!["-c".into(), keeper.into()] })
}

/// Until a keeper of this bench is stopped.
async fn a_stop(bench: &Bench) {
    while !processes_with(format!("ACPD_KEEPER={}.", bench.host).as_bytes()).into_iter().any(is_stopped) {
        tokio::task::yield_now().await;
    }
}

/// A keeper that has a program, does not tell of it, and is stopped again as often as it goes on.
const STAYS_STOPPED: &str = "ACPD_PROCESS=$ACPD_KEEPER setsid sleep 1000 & while :; do kill -STOP $$; done";

/// Until a program runs.
async fn a_program(bench: &Bench) {
    while bench.alive().is_empty() {
        tokio::task::yield_now().await;
    }
}

// SU-3: a start that is given up wakes its keeper, which ends what it has started
#[tokio::test]
async fn a_stopped_keeper_hears_that_its_start_is_given_up() {
    let bench = bench_with(&format!("kill -STOP $$; exec '{KEEPER}'"));
    let graces = Graces { term: PATIENCE * 10, ..BRIEF };
    let spec = ProgramSpec { graces, ..shell("exec sleep 1000") };
    tokio::select! {
        biased;
        started = bench.start(spec) => panic!("its keeper is stopped: {started:?}"),
        () = a_stop(&bench) => {}
    }
    // Sooner than it is killed for not ending.
    let ended = tokio::time::timeout(PATIENCE, bench.nothing_left()).await;
    ended.expect("the keeper has ended");
}

// SU-3: what a keeper kept that does not end after its start was given up is swept
#[tokio::test]
async fn a_keeper_that_stays_stopped_is_swept() {
    let bench = bench_with(STAYS_STOPPED);
    tokio::select! {
        biased;
        started = bench.start(stubborn("")) => panic!("its keeper is stopped: {started:?}"),
        () = a_stop(&bench) => {}
    }
    a_program(&bench).await;
    let ended = tokio::time::timeout(PATIENCE, bench.nothing_left()).await;
    ended.expect("the keeper was killed");
}

// SU-3: when a start fails for lack of an answer, nothing of it is left
#[tokio::test]
async fn a_start_without_an_answer_leaves_nothing() {
    let bench = bench_with(STAYS_STOPPED);
    let mut start = std::pin::pin!(bench.start(stubborn("")));
    tokio::select! {
        biased;
        started = &mut start => panic!("its keeper is stopped: {started:?}"),
        () = a_stop(&bench) => {}
    }
    a_program(&bench).await;
    // From here on the clock goes on whenever everything waits for it.
    tokio::time::pause();
    let error = start.await.expect_err("nothing told of a program");
    assert!(
        matches!(&error, StartError::Keeper { source, .. } if source.kind() == std::io::ErrorKind::TimedOut),
        "{error:?}"
    );
    assert_eq!(bench.alive(), Vec::<u32>::new());
    assert_eq!(processes_with(format!("ACPD_KEEPER={}.", bench.host).as_bytes()), Vec::<u32>::new());
}

// SU-3: nor is anything left where the program is as fast as the word that it runs
#[tokio::test]
async fn a_program_that_stops_its_keeper_at_once_is_ended() {
    let bench = Bench::new();
    for patience in [0, 1, 2, 4, 8, 16, 32] {
        let start = bench.start(stubborn("kill -STOP $PPID; setsid sleep 1000 & exec sleep 1001"));
        drop(tokio::time::timeout(Duration::from_millis(patience), start).await);
    }
    let ended = tokio::time::timeout(PATIENCE, bench.nothing_left()).await;
    ended.expect("every keeper has ended");
}

// SU-2: a program that stops its keeper is ended like any other
#[tokio::test]
async fn a_stopped_keeper_hears_a_stop_request() {
    let bench = Bench::new();
    let mut process = bench.sh_with(UPON_SIGTERM, STOPS_ITS_KEEPER).await;
    process.stdin.write_all(b"go\n").await.expect("it reads");
    read_until(&mut process, "ready").await;
    process.handle.stop();
    let report = tokio::time::timeout(PATIENCE, process.handle.exited()).await;
    assert_eq!(report.expect("it ends").status, ExitStatus::Signal("SIGTERM".into()));
    bench.nothing_left().await;
}

// SU-3: so is one whose daemon is gone, when the next daemon looks
#[tokio::test]
async fn a_sweep_wakes_a_stopped_keeper() {
    let bench = Bench::new();
    let mut process = bench.sh_with(UPON_SIGTERM, STOPS_ITS_KEEPER).await;
    process.stdin.write_all(b"go\n").await.expect("it reads");
    read_until(&mut process, "ready").await;
    kill(keeper_of(&bench), rustix::process::Signal::TERM);
    let which = Sweep::Host(bench.host.clone());
    let swept = tokio::task::spawn_blocking(move || sweep(&which)).await.expect("no panic");
    assert_eq!(swept, 0, "its keeper ends it");
    let report = tokio::time::timeout(PATIENCE, process.handle.exited()).await;
    assert_eq!(report.expect("the keeper goes on").status, ExitStatus::Signal("SIGTERM".into()));
    bench.nothing_left().await;
}

// a keeper that is asked to end by its own signal ends its program first
#[tokio::test]
async fn sigterm_to_the_keeper_is_a_stop_request() {
    let bench = Bench::new();
    let mut process = bench.sh_with(BRIEF, STUBBORN).await;
    read_until(&mut process, "ready").await;
    kill(keeper_of(&bench), rustix::process::Signal::TERM);
    let report = process.handle.exited().await;
    assert_eq!(report.status, ExitStatus::Signal("SIGKILL".into()));
    assert_eq!(report.rungs.len(), 3);
    bench.nothing_left().await;
}

// SU-3: a sweep at the next start finds what outlived both daemon and keeper, and leaves kept programs alone
#[tokio::test]
async fn a_sweep_for_a_host_leaves_kept_programs_alone() {
    let bench = Bench::new();
    let mut process = bench.sh(STUBBORN).await;
    read_until(&mut process, "ready").await;
    let (host, other) = (Sweep::Host(bench.host.clone()), Sweep::Host("another-host".into()));
    for which in [host, other] {
        let swept = tokio::task::spawn_blocking(move || sweep(&which)).await.expect("no panic");
        assert_eq!(swept, 0);
    }
    assert!(bench.alive().len() >= 3);
    process.handle.kill();
    process.handle.exited().await;
    bench.nothing_left().await;
}
