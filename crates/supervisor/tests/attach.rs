//! Kept programs that lose their host, and what the next host finds: real programs, a real keeper, several supervisors.

#[path = "support/kept.rs"]
mod kept;
#[path = "support/programs.rs"]
mod programs;

use acpd_supervisor::{
    AttachError, Attached, ExitStatus, Framing, Graces, ProcessMark, ProgramSpec, Rung, Streams, WindowSize,
    keeper_versions,
};
use kept::{KEY, Kept, LONG, attach, kept};
use programs::{BRIEF, Bench, processes_with, read_all, read_until};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::bytes::BytesMut;

// KEEP: the next host finds the program, what it wrote meanwhile, and the marks; contract 7.2: by its keeper it is known
#[tokio::test]
async fn a_program_outlives_its_host() {
    let mut kept =
        Kept::start("echo one; read a; echo \"got $a\"; read b; echo \"got $b\"; exit 4", LONG).await;
    read_until(&mut kept.process, "one\n").await;
    kept.process.stdout.committed(2);
    let mut frames = BytesMut::new();
    Framing::Kept.put(&mut frames, "gone", Some("x"));
    Framing::Kept.message(&mut frames, b"first\n", Some(("turn/a/1", "7")));
    Framing::Kept.put(&mut frames, "gone", None);
    kept.process.stdin.try_write(&frames).expect("there is room");
    read_until(&mut kept.process, "got first\n").await;
    kept.process.stdout.committed(4);
    kept.process.handle.detach();
    kept.process.handle.superseded().await;
    assert!(kept.process.handle.is_superseded());
    assert_eq!(read_all(&mut kept.process).await, "");
    let refused = kept.process.stdin.write_all(b"late\n").await.map_err(|error| error.kind());
    assert_eq!(refused, Err(std::io::ErrorKind::BrokenPipe));

    let next = Bench::new();
    let Attached { mut process, pid, lease, marks, committed, .. } = kept.attach(&next).await;
    assert_eq!((pid, lease), (kept.process.handle.pid(), 1));
    assert_eq!(marks.into_iter().collect::<Vec<_>>(), [("turn/a/1".to_owned(), "7".to_owned())]);
    // It is told after a moment only, so not of what was committed last.
    assert!(committed == 0 || committed == 2, "{committed}");
    assert_eq!(process.stdout.position(), committed);
    let rest = &"one\ngot first\n"[usize::try_from(committed).expect("it is small")..];
    assert_eq!(read_until(&mut process, "first\n").await, rest);
    assert_eq!(process.stdout.position(), 14);
    assert!(matches!(next.supervisor.lineage(pid), acpd_supervisor::Lineage::Program(None)));
    process.stdin.write_all(b"second\n").await.expect("it reads");
    assert_eq!(read_all(&mut process).await, "got second\n");
    assert_eq!(process.handle.exited().await.status, ExitStatus::Code(4));
    drop(process);
    kept.nothing_left().await;
    next.nothing_left().await;
}

/// Lines in pieces that have nothing to do with them, now and then with a rest, so that hosts come and go meanwhile.
const ODD_PIECES: &str = r#"$|=1; srand 7; my $b = ""; for my $i (0..$ENV{LINES}-1) {
    $b .= "$i:" . ("x" x (5 + int rand 395)) . "\n"; $b .= "l:" . ("y" x 300000) . "\n" if $i % 10000 == 9999;
    while (length $b > 1 + int rand 3000) { my $k = 1 + int rand 2000; $k = length $b if $k > length $b;
        syswrite(STDOUT, $b, $k); $b = substr($b, $k); select(undef, undef, undef, 0.001) if rand() < 0.01 } }
    syswrite(STDOUT, $b);"#;

/// Numbers without any order, the same ones each time.
struct Odd(u64);

impl Odd {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Waits for a file, says so, and ends.
const COMMAND: &str = r#"echo out; echo err >&2; trap 'stty size </dev/tty' WINCH; echo ready
    until [ -e "$DIR/go" ]; do sleep 0.01; done; echo gone on; exit 4"#;

async fn start_command(streams: Streams) -> (Kept, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a scratch directory");
    let mut spec = ProgramSpec { streams, ..kept(COMMAND) };
    spec.env.push(("DIR".into(), dir.path().into()));
    let mut kept = Kept::start_as(spec, LONG, 1 << 20).await;
    let said = read_until(&mut kept.process, "ready").await.replace('\r', "");
    assert!(said.starts_with("out\nerr\nready"), "{said}");
    kept.file("sock").await;
    (kept, dir)
}

// KEEP: a command with one pipe or a pseudo-terminal as its streams outlives its host as any other
#[tokio::test]
async fn commands_outlive_their_host() {
    let size = WindowSize { cols: 100, rows: 30 };
    for streams in [Streams::Merged, Streams::Pty(size)] {
        let (kept, dir) = start_command(streams).await;
        kept.process.handle.detach();
        let next = Bench::new();
        let Attached { mut process, marks, committed, .. } = kept.attach(&next).await;
        assert_eq!((marks.len(), committed), (0, 0));
        let said = read_until(&mut process, "ready").await.replace('\r', "");
        assert!(said.starts_with("out\nerr\nready"), "all of it again: {said}");
        let resized = process.stdout.resize(WindowSize { cols: 81, rows: 24 });
        if streams == Streams::Merged {
            assert_eq!(resized.map_err(|error| error.kind()), Err(std::io::ErrorKind::Unsupported));
        } else {
            resized.expect("it is a terminal");
            assert!(read_until(&mut process, "81").await.contains("24 81"));
        }
        std::fs::write(dir.path().join("go"), "").expect("written");
        let rest = read_all(&mut process).await.replace('\r', "");
        assert!(rest.ends_with("gone on\n"), "{rest}");
        assert_eq!(process.handle.exited().await.status, ExitStatus::Code(4));
        drop(process);
        next.nothing_left().await;
        kept.nothing_left().await;
    }
}

// KEEP: what a pseudo-terminal had in it when its program ended without a host is found by the next one
#[tokio::test]
async fn the_last_words_on_a_terminal_are_kept() {
    let (kept, dir) = start_command(Streams::Pty(WindowSize { cols: 100, rows: 30 })).await;
    kept.process.handle.detach();
    std::fs::write(dir.path().join("go"), "").expect("written");
    kept.file("end").await;
    let next = Bench::new();
    let Attached { mut process, .. } = kept.attach(&next).await;
    let said = read_all(&mut process).await.replace('\r', "");
    assert!(said.starts_with("out\nerr\nready") && said.ends_with("gone on\n"), "{said}");
    assert_eq!(process.handle.exited().await.status, ExitStatus::Code(4));
    drop(process);
    next.nothing_left().await;
    kept.nothing_left().await;
}

// KEEP, I1: hosts that are gone in the middle, and hosts that are superseded and do not know it: each line once, in order
#[tokio::test]
async fn fifty_hosts_read_every_line_once() {
    const LINES: usize = 60_000;
    let mut spec = kept("");
    (spec.command, spec.args) = ("perl".into(), vec!["-e".into(), ODD_PIECES.into()]);
    spec.env.push(("LINES".into(), LINES.to_string().into()));
    let kept = Kept::start_as(spec, LONG, 1 << 20).await;
    let (mut odd, mut log, mut hosts) = (Odd(7), Vec::new(), Vec::new());
    kept.file("sock").await;
    let next = Bench::new();
    for round in 1..=50_u64 {
        let is_last = round == 50;
        let Attached { mut process, lease, committed, .. } = kept.attach(&next).await;
        assert_eq!(lease, round);
        // What a host before this one logged and did not tell is dropped.
        let begin = usize::try_from(committed).expect("it is small");
        assert!(begin <= log.len(), "what is committed is in the log");
        let mut drops = log.len() - begin;
        let (mut part, mut left) = (BytesMut::new(), 20_000 + odd.below(400_000));
        loop {
            part.reserve(64 * 1024);
            let read = process.stdout.read_buf(&mut part).await.expect("stdout can be read");
            if read == 0 {
                log.extend_from_slice(&part);
                assert!(is_last || process.handle.exited().await.status == ExitStatus::Code(0));
                break;
            }
            let known = drops.min(part.len());
            assert_eq!(
                &part[..known],
                &log[log.len() - drops..log.len() - drops + known],
                "the same comes again"
            );
            drops -= known;
            drop(part.split_to(known));
            if odd.below(4) > 0
                && let Some(end) = memchr::memrchr(b'\n', &part)
            {
                log.extend_from_slice(&part.split_to(end + 1));
                if odd.below(4) > 0 {
                    process.stdout.committed(log.len() as u64);
                }
            }
            left = left.saturating_sub(read as u64);
            if left == 0 && !is_last {
                break;
            }
        }
        // The others find out when the next one has come.
        if !is_last && odd.below(3) > 0 {
            process.handle.detach();
        }
        hosts.push(process);
    }
    for host in &mut hosts[..49] {
        host.handle.superseded().await;
        assert_eq!(read_all(host).await, "");
    }
    let text = String::from_utf8(log).expect("it is text");
    let numbers: Vec<usize> = text
        .lines()
        .filter(|line| !line.starts_with('l'))
        .map(|line| line.split(':').next().and_then(|n| n.parse().ok()).expect("a number"))
        .collect();
    assert_eq!(numbers, (0..LINES).collect::<Vec<_>>());
    assert_eq!(text.lines().filter(|line| line.len() == 300_002).count(), LINES / 10_000);
    kept.process.handle.superseded().await;
    drop(hosts);
    kept.nothing_left().await;
    next.nothing_left().await;
}

// KEEP: a host that was superseded stops, writes and sweeps nothing
#[tokio::test]
async fn a_superseded_host_changes_nothing() {
    let mut kept = Kept::start("echo one; while read a; do echo \"got $a\"; done; exit 6", LONG).await;
    read_until(&mut kept.process, "one\n").await;
    kept.file("sock").await;
    let next = Bench::new();
    let Attached { mut process, .. } = kept.attach(&next).await;
    assert_eq!(read_until(&mut process, "one\n").await, "one\n");
    // What it asks for now has nowhere to go.
    kept.process.handle.kill();
    kept.process.stdout.committed(4);
    let _refused = kept.process.stdin.write_all(b"of the old one\n").await;
    kept.process.handle.superseded().await;
    assert_eq!(read_all(&mut kept.process).await, "");
    tokio::select! {
        biased;
        report = kept.process.handle.exited() => panic!("it has not: {report:?}"),
        () = tokio::task::yield_now() => {}
    }
    process.stdin.write_all(b"of the new one\n").await.expect("it reads");
    assert_eq!(read_until(&mut process, "\n").await, "got of the new one\n");
    process.handle.stop();
    assert_eq!(process.handle.exited().await.status, ExitStatus::Code(6));
    drop(process);
    kept.nothing_left().await;
    next.nothing_left().await;
}

// KEEP: one that does not know the key is told nothing, and changes nothing
#[tokio::test]
async fn a_wrong_key_is_refused() {
    let mut kept = Kept::start("echo one; cat", LONG).await;
    kept.file("sock").await;
    let next = Bench::new();
    for key in ["", "a key that nobody guesse", "a key that nobody guesses!"] {
        let refused = attach(&next, &kept.path(), &kept.mark, key).await.map(|_| ());
        assert!(matches!(refused, Err(AttachError::Refused)), "{refused:?}");
    }
    let other = ProcessMark::parse("another-host.1").expect("it is one");
    let gone = attach(&next, &kept.path(), &other, KEY).await.map(|_| ());
    assert!(matches!(gone, Err(AttachError::Gone)), "{gone:?}");
    assert_eq!(read_until(&mut kept.process, "one\n").await, "one\n");
    assert!(!kept.process.handle.is_superseded());
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&kept.path().metadata().expect("it is there").permissions());
    assert_eq!(mode & 0o777, 0o700);
    kept.process.handle.kill();
    kept.process.handle.exited().await;
    kept.nothing_left().await;
    next.nothing_left().await;
}

// KEEP: the clock, then the ladder, then the end in a file; the next host records it, and removes it
#[tokio::test]
async fn nothing_is_kept_for_longer_than_its_time() {
    let script = "trap '' TERM; setsid sleep 1000 & echo ready; while :; do sleep 0.05; done";
    let mut kept = Kept::start_stubborn(script, Duration::from_millis(50)).await;
    read_until(&mut kept.process, "ready\n").await;
    kept.process.handle.detach();
    kept.file("end").await;
    let next = Bench::new();
    let Attached { mut process, lease, committed, .. } = kept.attach(&next).await;
    assert_eq!((lease, committed), (1, 0));
    assert_eq!(read_all(&mut process).await, "ready\n");
    let report = process.handle.exited().await;
    // And maybe a short sleep of the script itself.
    assert!(report.leaked >= 1, "{report:?}");
    assert_eq!(report.status, ExitStatus::Signal("SIGKILL".into()));
    assert_eq!(report.rungs, [Rung::StdinClosed, Rung::Terminated, Rung::Killed]);
    assert!(process.stdin.is_closed());
    // One that only looked leaves it there.
    process.handle.detach();
    drop(process);
    let Attached { process, .. } = kept.attach(&next).await;
    process.handle.stop();
    kept.nothing_left().await;
    next.nothing_left().await;
}

// KEEP: an end without a host is found as it was, with all that was not committed
#[tokio::test]
async fn an_exit_without_a_host_is_recorded_by_the_next() {
    let script = "echo one; echo warning >&2; read go; head -c 300000 /dev/zero | tr '\\0' x; echo; echo error >&2; exit 9";
    let mut kept = Kept::start(script, LONG).await;
    read_until(&mut kept.process, "one\n").await;
    kept.process.stdin.write_all(b"go\n").await.expect("it reads");
    kept.process.handle.detach();
    kept.file("end").await;
    let file = kept.path().join(format!("{}.end", kept.mark.as_str()));
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().expect("it is there").permissions());
    assert_eq!(mode & 0o777, 0o600);
    let next = Bench::new();
    let Attached { mut process, pid, .. } = kept.attach(&next).await;
    let said = read_all(&mut process).await;
    assert_eq!(said, format!("one\n{}\n", "x".repeat(300_000)));
    let report = process.handle.exited().await;
    assert_eq!((report.pid, &report.status), (pid, &ExitStatus::Code(9)));
    assert_eq!(report.stderr.head, "warning\nerror");
    drop(process);
    kept.nothing_left().await;
    next.nothing_left().await;
}

// KEEP: an end that its host did not record is told again
#[tokio::test]
async fn an_end_is_told_until_it_is_recorded() {
    let mut kept = Kept::start("echo one; exit 2", LONG).await;
    assert_eq!(read_all(&mut kept.process).await, "one\n");
    assert_eq!(kept.process.handle.exited().await.status, ExitStatus::Code(2));
    kept.process.stdout.committed(4);
    kept.process.handle.detach();
    let next = Bench::new();
    kept.file("end").await;
    let Attached { mut process, committed, .. } = kept.attach(&next).await;
    assert_eq!((committed, read_all(&mut process).await), (4, String::new()));
    assert_eq!(process.handle.exited().await.status, ExitStatus::Code(2));
    drop(process);
    kept.nothing_left().await;
    next.nothing_left().await;
}

// KEEP: after the word to stop it, a program has no time for another host
#[tokio::test]
async fn what_was_stopped_is_not_kept() {
    let script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let mut kept = Kept::start_stubborn(script, LONG).await;
    read_until(&mut kept.process, "ready\n").await;
    kept.process.handle.stop();
    while !kept.process.stdin.is_closed() {
        tokio::task::yield_now().await;
    }
    kept.process.handle.detach();
    kept.file("end").await;
    let next = Bench::new();
    let Attached { process, .. } = kept.attach(&next).await;
    assert_eq!(process.handle.exited().await.rungs, [Rung::StdinClosed, Rung::Terminated, Rung::Killed]);
    drop(process);
    kept.nothing_left().await;
    next.nothing_left().await;
}

// KEEP: a keeper that was killed without a host leaves nothing but its name, which the next host removes
#[tokio::test]
async fn a_killed_keeper_is_gone() {
    let mut kept = Kept::start("echo ready; exec sleep 1000", LONG).await;
    read_until(&mut kept.process, "ready\n").await;
    kept.file("sock").await;
    kept.process.handle.detach();
    let keeper = rustix::process::Pid::from_raw(kept.keeper().cast_signed()).expect("not zero");
    rustix::process::kill_process(keeper, rustix::process::Signal::KILL).expect("it lives");
    while !kept.bench.alive().is_empty() {
        tokio::task::yield_now().await;
    }
    let next = Bench::new();
    let gone = attach(&next, &kept.path(), &kept.mark, KEY).await.map(|_| ());
    assert!(matches!(gone, Err(AttachError::Gone)), "{gone:?}");
    kept.nothing_left().await;
    next.nothing_left().await;
}

// contract 7.2: a keeper whose socket does not listen yet, or has no room for one connection more, is asked again
#[tokio::test]
async fn a_keeper_that_cannot_be_connected_to_yet_is_not_gone() {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    for does_listen in [false, true] {
        let mut kept = Kept::start("echo ready; exec sleep 1000", LONG).await;
        read_until(&mut kept.process, "ready\n").await;
        kept.file("sock").await;
        kept.process.handle.detach();
        let name = kept.path().join(format!("{}.sock", kept.mark.as_str()));
        let aside = name.with_extension("aside");
        std::fs::rename(&name, &aside).expect("it is there");
        let deaf = socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
        bind(&deaf, &SocketAddrUnix::new(&name).expect("a short path")).expect("the name is free");
        let waits = does_listen.then(|| {
            listen(&deaf, 0).expect("it is bound");
            std::os::unix::net::UnixStream::connect(&name).expect("there is room for one")
        });
        let next = Bench::new();
        let asked = attach(&next, &kept.path(), &kept.mark, KEY).await.map(|_| ());
        assert!(matches!(asked, Err(AttachError::Dropped)), "{does_listen}: {asked:?}");
        // In between it has its own name back.
        let (path, mark) = (kept.path(), kept.mark.clone());
        let (asked, ()) = tokio::join!(attach(&next, &path, &mark, KEY), async {
            tokio::task::yield_now().await;
            std::fs::rename(&aside, &name).expect("it is there");
        });
        drop(waits);
        let Attached { process, .. } = asked.expect("it can be connected to now");
        process.handle.kill();
        process.handle.exited().await;
        drop(process);
        kept.nothing_left().await;
        next.nothing_left().await;
    }
}

// contract 7.2: a keeper that is too old, or too new, is told from one that is gone; its program can be ended all the same,
// also one that stops its keeper and that leaves others behind
#[tokio::test]
async fn a_program_of_another_version_can_be_ended() {
    let too_old = keeper_versions().start() - 1;
    let too_new = keeper_versions().end() + 1;
    // Its stdin is closed first when it is to end: a stopped keeper would not answer before that.
    let stubborn = "trap '' TERM; setsid sleep 1000 & echo ready; read end; kill -STOP $PPID; while :; do sleep 0.05; done";
    for (version, script) in [(too_old, "echo ready; exec sleep 1000"), (too_new, stubborn)] {
        let mut kept = Kept::start_speaking(version, script, LONG).await;
        read_until(&mut kept.process, "ready\n").await;
        kept.file("sock").await;
        kept.process.handle.detach();
        let next = Bench::new();
        let other = attach(&next, &kept.path(), &kept.mark, KEY).await.map(|_| ());
        assert!(matches!(other, Err(AttachError::Version)), "{version}: {other:?}");
        let wrong = attach(&next, &kept.path(), &kept.mark, "another key").await.map(|_| ());
        assert!(matches!(wrong, Err(AttachError::Refused)), "{version}: {wrong:?}");
        assert!(!kept.bench.alive().is_empty(), "nothing has changed");
        next.supervisor.end_unattached(&kept.path(), &kept.mark, BRIEF).await;
        assert_eq!(std::fs::read_dir(kept.path()).expect("it is there").count(), 0);
        assert_eq!(kept.bench.alive(), [0; 0]);
        kept.nothing_left().await;
        next.nothing_left().await;
    }
}

// contract 7.2: a keeper that does not end is killed with all that it kept
#[tokio::test]
async fn a_keeper_of_another_version_that_does_not_end_is_killed() {
    // It stops its keeper again and again.
    let script = "trap '' TERM; echo ready; read go; while kill -STOP $PPID; do :; done";
    let mut kept = Kept::start_speaking(keeper_versions().start() - 1, script, LONG).await;
    read_until(&mut kept.process, "ready\n").await;
    kept.file("sock").await;
    kept.process.stdin.write_all(b"go\n").await.expect("it reads");
    let (next, path) = (Bench::new(), kept.path());
    next.supervisor
        .end_unattached(&path, &kept.mark, Graces { stdin: Duration::ZERO, term: Duration::ZERO })
        .await;
    assert_eq!(kept.bench.alive(), [0; 0]);
    kept.nothing_left().await;
    next.nothing_left().await;
}

// contract 7.2: nor is the end that such a keeper has left one that cannot be found, or one for ever
#[tokio::test]
async fn an_end_of_another_version_is_removed() {
    let too_new = keeper_versions().end() + 1;
    let mut kept = Kept::start_speaking(too_new, "echo one; exit 2", LONG).await;
    assert_eq!(read_all(&mut kept.process).await, "one\n");
    kept.process.handle.detach();
    kept.file("end").await;
    while !processes_with(format!("ACPD_KEEPER={}.", kept.bench.host).as_bytes()).is_empty() {
        tokio::task::yield_now().await;
    }
    let next = Bench::new();
    for broken in [false, true] {
        if broken {
            let file = kept.path().join(format!("{}.end", kept.mark.as_str()));
            std::fs::write(file, "what no version has written").expect("it can be written");
        }
        let other = attach(&next, &kept.path(), &kept.mark, KEY).await.map(|_| ());
        assert!(matches!(other, Err(AttachError::Version)), "{other:?}");
    }
    next.supervisor.end_unattached(&kept.path(), &kept.mark, Graces::default()).await;
    kept.nothing_left().await;
    next.nothing_left().await;
}

/// The most memory that a process had, and the bytes that it has read, as the kernel counts them.
fn figures(pid: u32) -> (usize, usize) {
    let number = |file: &str, name: &str| -> usize {
        let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).expect("it lives");
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("it is told");
        line.split_ascii_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
    };
    (number("status", "VmHWM:") * 1024, number("io", "rchar:"))
}

// KEEP, I7: while there is no host the program blocks sooner than its keeper takes more than it may
#[tokio::test]
async fn a_flood_without_a_host_waits() {
    const BOUND: usize = 2 << 20;
    let flood: usize =
        std::env::var("ACPD_FLOOD_MIB").ok().and_then(|mib| mib.parse().ok()).unwrap_or(64) << 20;
    let script = format!("echo one; read go; head -c {flood} /dev/zero; echo done; cat");
    let mut kept = Kept::start_as(kept(&script), LONG, BOUND as u64 / 2).await;
    read_until(&mut kept.process, "one\n").await;
    let keeper = kept.keeper();
    let (memory, before) = figures(keeper);
    kept.process.stdin.write_all(b"go\n").await.expect("it reads");
    kept.process.handle.detach();
    // It holds a whole line already, so that the bound alone counts.
    while figures(keeper).1 - before < BOUND / 2 {
        tokio::task::yield_now().await;
    }
    let next = Bench::new();
    let Attached { mut process, committed, .. } = kept.attach(&next).await;
    let (mut all, mut part) = (usize::try_from(committed).expect("it is small"), BytesMut::new());
    while !part.ends_with(b"done\n") {
        part.clear();
        part.reserve(64 * 1024);
        all += process.stdout.read_buf(&mut part).await.expect("stdout can be read");
        process.stdout.committed(all as u64);
    }
    assert_eq!(all, flood + 9);
    let took = figures(keeper).0 - memory;
    assert!(took < BOUND + (1 << 20), "the keeper took {took} bytes");
    process.handle.kill();
    process.handle.exited().await;
    drop(process);
    kept.nothing_left().await;
    next.nothing_left().await;
}

// design fleet, partition: a kept program that is to end in time does so without a host, however long it would wait for one; a new
// host has to say it anew
#[tokio::test]
async fn a_program_that_is_to_end_in_time_does_so_without_a_host() {
    let script = "echo ready; exec sleep 1000";
    let mut kept = Kept::start_stubborn(script, LONG).await;
    read_until(&mut kept.process, "ready\n").await;
    kept.file("sock").await;
    kept.process.handle.end_within(Some(LONG));
    kept.process.handle.end_within(Some(Duration::from_millis(50)));
    // It is heard before the end of the connection.
    kept.process.handle.detach();
    kept.file("end").await;
    let next = Bench::new();
    let Attached { process, was_given_up, .. } = kept.attach(&next).await;
    assert!(was_given_up);
    process.handle.stop();
    drop(process);
    kept.nothing_left().await;
    next.nothing_left().await;

    // Where the next host of a busy machine comes too late, there is more time.
    for soon in [2, 8, 30].map(Duration::from_secs) {
        let mut kept = Kept::start_stubborn(script, LONG).await;
        read_until(&mut kept.process, "ready\n").await;
        kept.file("sock").await;
        let next = Bench::new();
        let began = Instant::now();
        kept.process.handle.end_within(Some(soon));
        let Attached { process, .. } = kept.attach(&next).await;
        let was_in_time = began.elapsed() < soon / 2;
        let other = next.sh_with(BRIEF, script).await;
        other.handle.end_within(Some(soon));
        other.handle.exited().await;
        process.handle.kill();
        let rungs = process.handle.exited().await.rungs.clone();
        drop((process, other));
        kept.nothing_left().await;
        next.nothing_left().await;
        if was_in_time {
            assert_eq!(rungs, [Rung::Killed], "it lived until then");
            return;
        }
    }
    panic!("no host came in time");
}
