//! How programs end: real programs through a real keeper.

#[path = "support/programs.rs"]
mod programs;

use acpd_supervisor::{Containment, ExitStatus, Graces, Rung};
use programs::{BRIEF, Bench, UPON_SIGTERM, is_stopped, read_all, read_until, shell};
use std::time::Duration;
use tokio::time::Instant;

// contract 3.1: the real exit code is recorded; TM-2: 128+n is kept as reported
#[tokio::test]
async fn exit_codes_are_the_real_ones() {
    let bench = Bench::new();
    for code in [0, 1, 3, 143, 255] {
        let process = bench.sh(&format!("exit {code}")).await;
        let report = process.handle.exited().await;
        assert_eq!(report.status, ExitStatus::Code(code));
        assert_eq!((report.leaked, report.rungs.clone()), (0, vec![]));
        assert_eq!(report.containment, Containment::Subreaper);
    }
    bench.nothing_left().await;
}

// contract 1.2: a signal has its name
#[tokio::test]
async fn signals_have_their_names() {
    let bench = Bench::new();
    for name in ["KILL", "TERM", "SEGV", "ABRT", "HUP"] {
        let process = bench.sh(&format!("kill -{name} $$")).await;
        assert_eq!(process.handle.exited().await.status, ExitStatus::Signal(format!("SIG{name}")));
    }
    bench.nothing_left().await;
}

// SU-2: a well-behaved program ends on the first rung and gets time to save
#[tokio::test]
async fn closing_stdin_is_the_first_rung() {
    let bench = Bench::new();
    let mut process = bench.sh("echo ready; cat >/dev/null; echo saved; exit 7").await;
    read_until(&mut process, "ready").await;
    process.handle.stop();
    assert_eq!(read_all(&mut process).await, "saved\n");
    let report = process.handle.exited().await;
    assert_eq!(
        (&report.status, report.rungs.as_slice()),
        (&ExitStatus::Code(7), [Rung::StdinClosed].as_slice())
    );
    bench.nothing_left().await;
}

// SU-2: an end that races with the request is the end that was asked for
#[tokio::test]
async fn a_program_that_leaves_at_once_was_asked_to() {
    let bench = Bench::new();
    for _ in 0..100 {
        let mut process = bench.sh("echo ready; exec cat >/dev/null").await;
        read_until(&mut process, "ready").await;
        process.handle.stop();
        let report = process.handle.exited().await;
        assert_eq!(
            (&report.status, report.rungs.as_slice()),
            (&ExitStatus::Code(0), [Rung::StdinClosed].as_slice())
        );
    }
    bench.nothing_left().await;
}

// contract 3.2, SU-2
#[tokio::test]
async fn sigterm_is_the_second_rung() {
    let bench = Bench::new();
    let script = "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    let mut process = bench.sh_with(UPON_SIGTERM, script).await;
    read_until(&mut process, "ready").await;
    process.handle.stop();
    assert_eq!(read_all(&mut process).await, "bye\n");
    let report = process.handle.exited().await;
    assert_eq!(report.status, ExitStatus::Code(5));
    assert_eq!(report.rungs, [Rung::StdinClosed, Rung::Terminated]);
    bench.nothing_left().await;
}

// contract 3.2: SIGKILL is the last rung, within the graces
#[tokio::test]
async fn a_program_that_ignores_everything_is_killed() {
    let bench = Bench::new();
    let script = "trap '' TERM HUP INT; echo ready; while :; do sleep 0.05; done";
    let mut process = bench.sh_with(BRIEF, script).await;
    read_until(&mut process, "ready").await;
    let asked = Instant::now();
    process.handle.stop();
    let report = process.handle.exited().await;
    assert_eq!(report.status, ExitStatus::Signal("SIGKILL".into()));
    assert_eq!(report.rungs, [Rung::StdinClosed, Rung::Terminated, Rung::Killed]);
    assert!(asked.elapsed() >= BRIEF.stdin + BRIEF.term, "the graces were given");
    bench.nothing_left().await;
}

// contract 3.2: a stopped program cannot act on SIGTERM, so SIGCONT goes with it
#[tokio::test]
async fn a_stopped_program_gets_to_act_on_sigterm() {
    let bench = Bench::new();
    let script = "trap 'exit 9' TERM; kill -STOP $$; while :; do sleep 0.05; done";
    let process = bench.sh_with(UPON_SIGTERM, script).await;
    while !is_stopped(process.handle.pid()) {
        tokio::task::yield_now().await;
    }
    process.handle.stop();
    assert_eq!(process.handle.exited().await.status, ExitStatus::Code(9));
    bench.nothing_left().await;
}

// contract 3.2: a second stop request jumps to SIGKILL
#[tokio::test]
async fn a_second_stop_does_not_wait() {
    let bench = Bench::new();
    let mut process = bench.sh("trap '' TERM; echo ready; while :; do sleep 0.05; done").await;
    read_until(&mut process, "ready").await;
    process.handle.stop();
    process.handle.stop();
    assert_eq!(process.handle.exited().await.rungs, [Rung::StdinClosed, Rung::Killed]);
    bench.nothing_left().await;
}

// SU-1: children in the group, with setsid and double-forked are gone, and the report says `leaked`
#[tokio::test]
async fn descendants_do_not_escape() {
    let bench = Bench::new();
    let script = "sleep 1000 & setsid sleep 1001 & (setsid sh -c 'sleep 1002 & sleep 1003' &) ; echo ready; cat; exit 0";
    // What is left is killed at the end of this grace, which a busy machine may need more of for the end of the program.
    for stdin in [100, 2000, 30_000].map(Duration::from_millis) {
        let mut process = bench.sh_with(Graces { stdin, ..BRIEF }, script).await;
        read_until(&mut process, "ready").await;
        process.handle.stop();
        let report = process.handle.exited().await;
        assert_eq!(bench.alive(), Vec::<u32>::new(), "when the report is there, all are gone");
        if report.rungs == [Rung::StdinClosed] {
            assert_eq!(report.status, ExitStatus::Code(0));
            assert!(report.leaked >= 3, "{report:?}");
            return bench.nothing_left().await;
        }
    }
    panic!("it never ended in time");
}

// contract 1.2: what ends by itself within the rest of the grace is no leak, and may say its last words
#[tokio::test]
async fn descendants_have_the_rest_of_the_grace() {
    let bench = Bench::new();
    let leave = r#"sh -c "$late" - one & setsid sh -c "$late" - two & exit 0"#;
    let upon_end_of_input = format!("echo ready; cat >/dev/null; {leave}");
    let upon_sigterm = format!("trap '{leave}' TERM; echo ready; while :; do sleep 0.05; done");
    let hour = Duration::from_secs(3600);
    for (leaves, grace, rungs) in [
        (upon_end_of_input, Graces { stdin: hour, term: Duration::ZERO }, &[Rung::StdinClosed][..]),
        (upon_sigterm, Graces { stdin: Duration::ZERO, term: hour }, &[Rung::StdinClosed, Rung::Terminated]),
    ] {
        let mut spec = shell(&format!("late='sleep 0.3; echo $1 saved'; {leaves}"));
        spec.graces = grace;
        let mut process = bench.start(spec).await.expect("sh starts");
        read_until(&mut process, "ready").await;
        process.handle.stop();
        let said = read_all(&mut process).await;
        assert!(said.contains("one saved\n") && said.contains("two saved\n"), "{leaves}: {said}");
        let report = process.handle.exited().await;
        assert_eq!((&report.status, report.leaked), (&ExitStatus::Code(0), 0), "{leaves}");
        assert_eq!(report.rungs, rungs);
    }
    bench.nothing_left().await;
}

// contract 1.2, contract 1.1: what outlives the grace has leaked; all of it within the graces and a second
#[tokio::test]
async fn what_outlives_the_grace_is_killed_and_told() {
    let bench = Bench::new();
    let stubborn = "trap '' TERM; echo ready; exec sleep 1000";
    let script = format!("trap 'exit 3' TERM; setsid sh -c \"{stubborn}\" & while :; do sleep 0.05; done");
    let mut late = Vec::new();
    // A busy machine may need more of a grace for the end of the program, or for what is done behind it.
    for term in [300, 300, 3000, 30_000].map(Duration::from_millis) {
        let graces = Graces { term, ..BRIEF };
        let mut process = bench.sh_with(graces, &script).await;
        read_until(&mut process, "ready").await;
        let asked = Instant::now();
        process.handle.stop();
        let report = process.handle.exited().await;
        let (took, all) = (asked.elapsed(), graces.stdin + graces.term);
        assert!(took >= all, "{took:?} of {all:?}");
        if report.rungs.contains(&Rung::Killed) || took >= all + Duration::from_secs(1) {
            late.push((took, all));
            continue;
        }
        assert_eq!((&report.status, report.leaked), (&ExitStatus::Code(3), 1));
        assert_eq!(report.rungs, [Rung::StdinClosed, Rung::Terminated]);
        return bench.nothing_left().await;
    }
    panic!("each time too late: {late:?}");
}

// contract 3.2: a second stop request does not wait for descendants either
#[tokio::test]
async fn a_second_stop_ends_what_is_left() {
    let bench = Bench::new();
    let script = "setsid sh -c \"trap '' TERM; echo ready; exec sleep 1000 >/dev/null 2>&1\" & cat; exit 0";
    let mut process = bench.sh(script).await;
    read_until(&mut process, "ready").await;
    process.handle.stop();
    // Nothing but the leader had its stdout.
    read_all(&mut process).await;
    process.handle.stop();
    let report = process.handle.exited().await;
    // Its stdout ends a moment before it does, so that the second request may still have met it.
    assert_eq!((report.leaked, report.rungs[0]), (1, Rung::StdinClosed));
    bench.nothing_left().await;
}

// contract 1.2: a leader that exits by itself leaves nothing either
#[tokio::test]
async fn leftovers_of_an_exit_are_killed() {
    let bench = Bench::new();
    let mut process = bench.sh("setsid sleep 1000 & sleep 1001 & exit 4").await;
    // Both children hold stdout; the end is seen all the same.
    read_all(&mut process).await;
    let report = process.handle.exited().await;
    assert_eq!((&report.status, report.leaked, report.rungs.len()), (&ExitStatus::Code(4), 2, 0));
    bench.nothing_left().await;
}

// SU-1: descendants that end while the program runs are reaped, so no zombies gather
#[tokio::test]
async fn orphans_that_end_early_are_reaped() {
    let bench = Bench::new();
    // The script itself waits until the keeper, its parent, has no other child, dead or alive.
    let script = "i=0; while [ $i -lt 50 ]; do (setsid true &); i=$((i+1)); done
        while [ $(wc -w < /proc/$PPID/task/$PPID/children) -gt 1 ]; do :; done; echo ready; cat";
    let mut process = bench.sh(script).await;
    read_until(&mut process, "ready").await;
    process.handle.stop();
    assert_eq!(process.handle.exited().await.leaked, 0);
    bench.nothing_left().await;
}

// SU-1: a leader that dies while the keeper reaps others is not taken for one of them
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exit_among_other_ends_is_seen() {
    let bench = Bench::new();
    for _round in 0..20 {
        let mut ends = tokio::task::JoinSet::new();
        for code in 0..8 {
            let script =
                format!("i=0; while [ $i -lt 30 ]; do (setsid true &); i=$((i+1)); done; exit {code}");
            let handle = bench.sh(&script).await.handle;
            ends.spawn(async move { (ExitStatus::Code(code), handle.exited().await.status.clone()) });
        }
        for (expected, seen) in ends.join_all().await {
            assert_eq!(seen, expected);
        }
    }
    bench.nothing_left().await;
}

// SU-4: a flood on stderr neither blocks the program nor costs memory
#[tokio::test]
async fn stderr_is_always_drained() {
    let bench = Bench::new();
    let script = "i=0; while [ $i -lt 250 ]; do echo crash line $((i+1)) >&2; i=$((i+1)); done; head -c 50000000 /dev/zero >&2; exit 1";
    let process = bench.sh(script).await;
    let report = process.handle.exited().await;
    assert_eq!(report.status, ExitStatus::Code(1));
    assert!(report.stderr.head.starts_with("crash line 1\ncrash line 2\n"));
    assert_eq!(report.stderr.total_lines, 251);
    bench.nothing_left().await;
}

// contract 1.2: stderr written just before the end is part of the report
#[tokio::test]
async fn the_last_words_are_heard() {
    let bench = Bench::new();
    for _ in 0..20 {
        let process = bench.sh("echo first >&2; printf last >&2; kill -KILL $$").await;
        assert_eq!(process.handle.exited().await.stderr.head, "first\nlast");
    }
    bench.nothing_left().await;
}

// the caller's disappearance does not leave the program running
#[tokio::test]
async fn dropping_every_handle_stops_the_program() {
    let bench = Bench::new();
    let script = "trap '' TERM; setsid sleep 1000 & echo ready; while :; do sleep 0.05; done";
    let mut process = bench.sh_with(BRIEF, script).await;
    read_until(&mut process, "ready").await;
    drop(process);
    bench.nothing_left().await;
}

// SU-8: a program that closes its stdin is noticed
#[tokio::test]
async fn a_closed_stdin_is_noticed() {
    let bench = Bench::new();
    let mut process = bench.sh("exec <&-; echo ready; while :; do sleep 0.05; done").await;
    process.stdin.reader_gone().await;
    read_until(&mut process, "ready").await;
    assert!(process.stdin.write_all(b"anybody?").await.is_err());
    process.handle.kill();
    assert_eq!(process.handle.exited().await.rungs, [Rung::Killed]);
    bench.nothing_left().await;
}

// SU-8: a program that closes stdout but lives
#[tokio::test]
async fn a_closed_stdout_is_an_end_of_file_and_not_an_exit() {
    let bench = Bench::new();
    let script = "trap 'exit 3' TERM; exec >&-; while :; do sleep 0.05; done";
    let mut process = bench.sh_with(UPON_SIGTERM, script).await;
    assert_eq!(read_all(&mut process).await, "");
    process.handle.stop();
    assert_eq!(process.handle.exited().await.status, ExitStatus::Code(3));
    bench.nothing_left().await;
}

// everything the program wrote arrives, however slowly it is read
#[tokio::test]
async fn output_survives_the_exit() {
    let bench = Bench::new();
    let mut process = bench.sh("i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done").await;
    let mut all = String::new();
    let mut buffer = tokio_util::bytes::BytesMut::new();
    loop {
        buffer.reserve(128);
        if process.stdout.read_buf(&mut buffer).await.expect("readable") == 0 {
            break;
        }
        all.push_str(&String::from_utf8_lossy(&buffer.split()));
    }
    process.handle.exited().await;
    assert_eq!(all.lines().count(), 5000);
    bench.nothing_left().await;
}

// design fleet, partition: a program that is to end in time does so whatever its host does, and not where that was said again
#[tokio::test]
async fn a_program_ends_unless_that_is_said_again() {
    let bench = Bench::new();
    let start = async || bench.sh_with(BRIEF, "exec sleep 1000").await;
    // Where a busy machine says it again too late, there is more time.
    for soon in [2, 8, 30].map(Duration::from_secs) {
        let [late, lifted, said] = [start().await, start().await, start().await];
        let began = Instant::now();
        for process in [&lifted, &said, &late] {
            process.handle.end_within(Some(soon));
        }
        lifted.handle.end_within(None);
        said.handle.end_within(Some(Duration::from_secs(600)));
        // The tasks of the processes send it.
        tokio::task::yield_now().await;
        let was_in_time = began.elapsed() < soon / 2;
        // It ends behind the times of the others.
        let report = late.handle.exited().await;
        assert_eq!(report.rungs.first(), Some(&Rung::StdinClosed), "by the ladder");
        let mut ends = Vec::new();
        for process in [lifted, said] {
            process.handle.kill();
            ends.push(process.handle.exited().await.rungs.clone());
        }
        if was_in_time {
            assert_eq!(ends, [[Rung::Killed], [Rung::Killed]], "they lived until then");
            return bench.nothing_left().await;
        }
    }
    panic!("it was never said in time");
}
