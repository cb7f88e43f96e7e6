//! Kept programs, as their first host sees them: real programs, whose streams go through a real keeper.

#[path = "support/programs.rs"]
mod programs;

use acpd_supervisor::{ExitStatus, Framing, Graces, Process, ProgramSpec, Rung, StderrLine};
use programs::{BRIEF, Bench, UPON_SIGTERM, read_all, read_until, shell};
use std::io;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::bytes::BytesMut;

fn kept(script: &str) -> ProgramSpec {
    ProgramSpec { kept: true, ..shell(script) }
}

async fn start(bench: &Bench, script: &str) -> Process {
    bench.start(kept(script)).await.expect("sh starts")
}

async fn start_with(bench: &Bench, graces: Graces, script: &str) -> Process {
    bench.start(ProgramSpec { graces, ..kept(script) }).await.expect("sh starts")
}

/// The same with perl, which writes what it is told to, in one piece.
fn perl(script: &str) -> ProgramSpec {
    let mut spec = kept("");
    (spec.command, spec.args) = ("perl".into(), vec!["-e".into(), script.into()]);
    spec
}

// KEEP: what is above sees the same as of any other program
#[tokio::test]
async fn bytes_go_both_ways() {
    let bench = Bench::new();
    let mut process = start(&bench, "read a; echo \"got $a\"; cat; exit 3").await;
    assert_eq!(process.stdin.framing(), Framing::Kept);
    process.stdin.write_all(b"one\n").await.expect("it reads");
    assert_eq!(read_until(&mut process, "\n").await, "got one\n");
    let mut frames = BytesMut::new();
    Framing::Kept.message(&mut frames, b"two\n", Some(("turn/a/1", "7")));
    Framing::Kept.put(&mut frames, "turn/a/1", None);
    Framing::Kept.message(&mut frames, b"three\n", None);
    assert_eq!(process.stdin.try_write(&frames).expect("there is room"), frames.len());
    assert_eq!(read_until(&mut process, "three\n").await, "two\nthree\n");
    assert_eq!(process.stdout.position(), 18);
    process.handle.stop();
    assert_eq!(read_all(&mut process).await, "");
    let report = process.handle.exited().await;
    assert_eq!((&report.status, &report.rungs[..]), (&ExitStatus::Code(3), &[Rung::StdinClosed][..]));
    drop(process);
    bench.nothing_left().await;
}

// contract 3.1: the real exit code is recorded, and the last words are heard
#[tokio::test]
async fn ends_are_the_real_ones() {
    let bench = Bench::new();
    for code in [0, 1, 143, 255] {
        let process = start(&bench, &format!("echo first >&2; printf last >&2; exit {code}")).await;
        let report = process.handle.exited().await;
        assert_eq!(report.status, ExitStatus::Code(code));
        assert_eq!(report.stderr.head, "first\nlast");
        // As when it is dropped: the end was recorded.
        process.handle.stop();
    }
    let process = start(&bench, "trap '' TERM; sleep 1000 & kill -KILL $$").await;
    let report = process.handle.exited().await;
    assert_eq!((&report.status, report.leaked), (&ExitStatus::Signal("SIGKILL".into()), 1));
    drop(process);
    bench.nothing_left().await;
}

/// Lines in pieces of 1 to 3000 bytes that have nothing to do with them, now and then with a rest.
const ODD_PIECES: &str = r#"$|=1; srand 7; my $b = ""; for my $i (0..$ENV{LINES}-1) {
    $b .= "$i:" . ("x" x (5 + int rand 395)) . "\n";
    while (length $b > 1 + int rand 3000) { my $k = 1 + int rand 2000; $k = length $b if $k > length $b;
        syswrite(STDOUT, $b, $k); $b = substr($b, $k); select(undef, undef, undef, 0.002) if rand() < 0.005 } }
    syswrite(STDOUT, $b);"#;

// ADR 21: every line once, in order
#[tokio::test]
async fn lines_in_odd_pieces_come_whole() {
    let bench = Bench::new();
    let mut spec = perl(ODD_PIECES);
    spec.env.push(("LINES".into(), "60000".into()));
    let mut process = bench.start(spec).await.expect("perl starts");
    let all = read_all(&mut process).await;
    let numbers: Vec<usize> = all
        .lines()
        .map(|line| line.split(':').next().and_then(|n| n.parse().ok()).expect("a number"))
        .collect();
    assert_eq!(numbers, (0..60_000).collect::<Vec<_>>());
    assert_eq!(process.stdout.position(), all.len() as u64);
    drop(process);
    bench.nothing_left().await;
}

// ADR 21: a line that does not fit behind what is queued wakes no reader
#[tokio::test]
async fn long_lines_come_whole() {
    let bench = Bench::new();
    for (what, script, bytes) in [
        ("256 KiB", r#"syswrite(STDOUT, "y\n"); syswrite(STDOUT, ("x" x (1<<18)) . "\n")"#, 1 << 18),
        (
            "1 MiB in single bytes",
            r#"syswrite(STDOUT, "y\n"); syswrite(STDOUT, "x") for 1..(1<<20); syswrite(STDOUT, "\n")"#,
            1 << 20,
        ),
        ("16 MiB", r#"syswrite(STDOUT, "y\n"); syswrite(STDOUT, ("x" x (1<<24)) . "\n")"#, 1 << 24),
    ] {
        let mut process = bench.start(perl(&format!("{script}; sleep 1000"))).await.expect("perl starts");
        let (mut all, mut piece) = (0, BytesMut::new());
        while all < bytes + 3 {
            piece.clear();
            piece.reserve(64 * 1024);
            let read = process.stdout.read_buf(&mut piece).await.expect("stdout can be read");
            all += read;
            process.stdout.committed(all as u64);
            assert!(read > 0 && piece.iter().all(|byte| b"xy\n".contains(byte)), "{what}");
        }
        assert_eq!(all, bytes + 3, "{what}");
        process.handle.kill();
        process.handle.exited().await;
    }
    bench.nothing_left().await;
}

// ADR 21: what comes faster than it is read comes through a wide pipe, in order; in silence the pipe is as it was
#[tokio::test]
async fn a_flood_goes_through_a_wide_pipe() {
    const LINES: usize = 1 << 20;
    let bench = Bench::new();
    let flood = format!(
        r#"my $all = join("", map {{ sprintf("%07d\n", $_) }} 0..{}); syswrite(STDOUT, $all); sleep 1000"#,
        LINES - 1
    );
    let mut process = bench.start(perl(&flood)).await.expect("perl starts");
    let stdout = format!("/proc/{}/fd/1", process.handle.pid());
    let size =
        || rustix::pipe::fcntl_getpipe_size(std::fs::File::open(&stdout).expect("it lives")).expect("a pipe");
    let normal = size();
    let (mut all, mut widest) = (BytesMut::new(), 0);
    while all.len() < 8 * LINES {
        all.reserve(64 * 1024);
        assert!(process.stdout.read_buf(&mut all).await.expect("stdout can be read") > 0);
        widest = widest.max(size());
    }
    let lines = all[..].split(|byte| *byte == b'\n');
    let is_line = |(number, line): (usize, &[u8])| line == format!("{number:07}").as_bytes();
    assert!(lines.take(LINES).enumerate().all(is_line), "something is missing, or comes twice");
    assert_eq!((widest, process.stdout.position()), (256 * 1024, 8 * LINES as u64));
    process.stdout.committed(8 * LINES as u64);
    while size() > normal {
        // Nothing comes; the waiting is what has things done.
        all.reserve(1);
        let read = tokio::time::timeout(Duration::from_millis(50), process.stdout.read_buf(&mut all)).await;
        assert!(read.is_err(), "there is more");
    }
    process.handle.kill();
    process.handle.exited().await;
    drop(process);
    bench.nothing_left().await;
}

// KEEP: a frame is taken whole, and more than 16 MiB wait for their room
#[tokio::test]
async fn a_program_that_reads_late_gets_all_of_it() {
    const MIB: usize = 1 << 20;
    let bench = Bench::new();
    let script = "read go <&3; head -c 16777216 | tr -d a | wc -c; head -c 17825792 | tr -d b | wc -c; cat";
    let fifo = tempfile::tempdir().expect("a scratch directory");
    let go = fifo.path().join("go");
    rustix::fs::mknodat(rustix::fs::CWD, &go, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .expect("a fifo");
    let mut process = start(&bench, &format!("exec 3<>'{}'; {script}", go.display())).await;
    let mut frames = BytesMut::new();
    Framing::Kept.message(&mut frames, &vec![b'a'; 16 * MIB], None);
    assert_eq!(process.stdin.try_write(&frames).expect("nothing is on its way"), frames.len());
    assert!(process.stdin.undrained() >= 16 * MIB);
    let full = process.stdin.try_write(&frames).map_err(|error| error.kind());
    assert_eq!(full, Err(io::ErrorKind::WouldBlock));
    std::fs::write(&go, "go\n").expect("it is open");
    let Process { stdin, .. } = &process;
    stdin.write_all(&vec![b'b'; 17 * MIB]).await.expect("room comes");
    stdin.write_all(b"end\n").await.expect("room comes");
    assert_eq!(read_until(&mut process, "end\n").await, "0\n0\nend\n");
    process.handle.kill();
    process.handle.exited().await;
    drop(process);
    bench.nothing_left().await;
}

// SU-4: a flood on stderr neither blocks the program nor costs memory, and its lines are passed on
#[tokio::test]
async fn stderr_is_always_drained() {
    let bench = Bench::new();
    let script = "i=0; while [ $i -lt 250 ]; do echo crash line $((i+1)) >&2; i=$((i+1)); done; echo said; read go; head -c 50000000 /dev/zero >&2; exit 1";
    let (sender, mut lines) = mpsc::channel(1000);
    let mut spec = kept(script);
    spec.stderr_lines = Some(sender);
    let mut process = bench.start(spec).await.expect("sh starts");
    read_until(&mut process, "said\n").await;
    for number in 1..=250 {
        let line = StderrLine { lost_before: 0, text: Some(format!("crash line {number}")) };
        assert_eq!(lines.recv().await, Some(line));
    }
    process.stdin.write_all(b"go\n").await.expect("it reads");
    let report = process.handle.exited().await;
    assert_eq!(report.status, ExitStatus::Code(1));
    assert!(report.stderr.head.starts_with("crash line 1\ncrash line 2\n"));
    assert_eq!(report.stderr.total_lines, 251);
    drop(process);
    bench.nothing_left().await;
}

// SU-8: a program that closes its stdin is noticed
#[tokio::test]
async fn a_closed_stdin_is_noticed() {
    let bench = Bench::new();
    let mut process = start(&bench, "exec <&-; echo ready; while :; do sleep 0.05; done").await;
    process.stdin.reader_gone().await;
    read_until(&mut process, "ready").await;
    let refused = process.stdin.write_all(b"anybody?").await.map_err(|error| error.kind());
    assert_eq!(refused, Err(io::ErrorKind::BrokenPipe));
    process.handle.kill();
    assert_eq!(process.handle.exited().await.rungs, [Rung::Killed]);
    drop(process);
    bench.nothing_left().await;
}

// SU-8: a program that closes stdout but lives
#[tokio::test]
async fn a_closed_stdout_is_an_end_of_file_and_not_an_exit() {
    let bench = Bench::new();
    let script = "trap 'exit 3' TERM; echo last; exec >&-; while :; do sleep 0.05; done";
    let mut process = start_with(&bench, UPON_SIGTERM, script).await;
    assert_eq!(read_all(&mut process).await, "last\n");
    process.handle.stop();
    assert_eq!(process.handle.exited().await.status, ExitStatus::Code(3));
    drop(process);
    bench.nothing_left().await;
}

/// Ends by no word, and leaves another that does not.
const STUBBORN: &str = "trap '' TERM; setsid sleep 1000 & echo ready; while :; do sleep 0.05; done";

// KEEP: before the word to keep it, a program ends with its host
#[tokio::test]
async fn what_is_not_to_be_kept_ends_with_its_host() {
    let bench = Bench::new();
    let mut process = start_with(&bench, BRIEF, STUBBORN).await;
    read_until(&mut process, "ready").await;
    process.handle.detach();
    process.handle.superseded().await;
    assert_eq!(read_all(&mut process).await, "", "stdout ends");
    while !bench.alive().is_empty() {
        tokio::task::yield_now().await;
    }
    bench.nothing_left().await;
}

// KEEP: the last handle that is dropped stops the program, as of any other
#[tokio::test]
async fn dropping_every_handle_stops_the_program() {
    let bench = Bench::new();
    let mut process = start_with(&bench, BRIEF, STUBBORN).await;
    read_until(&mut process, "ready").await;
    drop(process);
    bench.nothing_left().await;
}

// architecture 4: what outlives a killed keeper is found by its mark, and what was said last is read
#[tokio::test]
async fn a_killed_keeper_leaves_nothing() {
    let bench = Bench::new();
    let mut process = start(&bench, "setsid sleep 1000 & echo ready; while :; do sleep 0.05; done").await;
    read_until(&mut process, "ready").await;
    let keepers = programs::processes_with(format!("ACPD_KEEPER={}.", bench.host).as_bytes());
    let keeper = rustix::process::Pid::from_raw(keepers[0].cast_signed()).expect("not zero");
    rustix::process::kill_process(keeper, rustix::process::Signal::KILL).expect("it lives");
    let report = process.handle.exited().await;
    assert_eq!(report.status, ExitStatus::Unknown);
    assert_eq!(bench.alive(), Vec::<u32>::new());
    assert_eq!(read_all(&mut process).await, "");
    drop(process);
    bench.nothing_left().await;
}
