//! What goes over the socket comes back from it, and what is not known is left aside.

use super::*;

fn frame_of(bytes: &mut BytesMut) -> Frame {
    let frame = Frame::take(bytes, super::super::frames::LONGEST).expect("it is no longer than any");
    assert!(frame.is_some() && bytes.is_empty());
    frame.expect("it is whole")
}

fn exited(stderr: Option<StderrExcerpt>) -> Exited {
    Exited { status: ExitStatus::Code(3), leaked: 1, rungs: vec![Rung::StdinClosed], oom_kills: 2, stderr }
}

fn attached() -> Attached {
    Attached {
        version: 1,
        running: Running { pid: 7, containment: Containment::Subreaper },
        lease: 2,
        detached_ms: 30,
        graces_ms: [3000, 5000],
        committed: 10,
        consumed: 12,
        marks: BTreeMap::from([("turn/a/1".to_owned(), "9".to_owned())]),
        undrained: 4,
        stdin_closed: false,
        exited: Some(exited(Some(StderrExcerpt { head: "no".into(), total_lines: 1, ..Default::default() }))),
        is_pty: true,
    }
}

// KEEP: protocol v1
#[test]
fn everything_survives_the_socket() {
    let keep = Keep {
        keep_ms: 1,
        detached_bytes: 2,
        line_bytes: 3,
        directory: "/a/b".into(),
        name: "h.1".into(),
        key: "secret".into(),
    };
    let mark = Some(("turn/a/1".to_owned(), "9".to_owned()));
    for command in [
        Command::Write { mark: None, bytes: Bytes::from_static(b"\0line\n") },
        Command::Write { mark, bytes: Bytes::new() },
        Command::Progress(Progress { read: 5, committed: u64::MAX }),
        Command::Put(Put { key: "a".into(), value: None }),
        Command::Put(Put { key: "a".into(), value: Some(String::new()) }),
        Command::Keep(keep),
        Command::Stop,
        Command::Kill,
        Command::Done,
        Command::Resize(WindowSize { cols: 80, rows: 24 }),
        Command::Alive(Alive { within_ms: Some(5) }),
        Command::Alive(Alive { within_ms: None }),
        Command::Hello(Hello { versions: VERSIONS, key: "k".into() }),
    ] {
        let frame = frame_of(&mut command.to_bytes());
        assert_eq!(Command::read(frame).expect("it is readable"), Some(command));
    }
    for told in [
        FromKeeper::Started(attached().running),
        FromKeeper::NotStarted(SpawnFailure::BadCwd { errno: 2 }),
        FromKeeper::Consumed(Consumed { position: 1 }),
        FromKeeper::Drained(Drained { bytes: 2 }),
        FromKeeper::StdinClosed,
        FromKeeper::Stderr(Bytes::from_static(b"\xff\n")),
        FromKeeper::StderrLost(StderrLost { lines: 4 }),
        FromKeeper::Exited(exited(None)),
        FromKeeper::Attached(Box::new(attached()), Bytes::from_static(b"ab")),
        FromKeeper::Refused(Refused { why: Why::Superseded }),
        FromKeeper::NotKept(NotKept { why: "no".into() }),
    ] {
        let mut wire = BytesMut::new();
        told.put_to(&mut wire);
        assert_eq!(FromKeeper::read(frame_of(&mut wire)).expect("it is readable"), Some(told));
    }
}

// KEEP: frozen and additive
#[test]
fn what_a_later_version_adds_is_ignored() {
    let frame = |kind, body: &'static str| Frame { kind, body: Bytes::from_static(body.as_bytes()) };
    let progress =
        Command::read(frame(b'G', r#"{"read":5,"later":[1],"committed":4}"#)).expect("it is readable");
    assert_eq!(progress, Some(Command::Progress(Progress { read: 5, committed: 4 })));
    assert_eq!(Command::read(frame(b'Z', "no JSON")).expect("it is skipped"), None);
    assert_eq!(FromKeeper::read(frame(b'Z', "no JSON")).expect("it is skipped"), None);
    let refused = FromKeeper::read(frame(b'r', r#"{"why":"mood"}"#)).expect("it is readable");
    assert_eq!(refused, Some(FromKeeper::Refused(Refused { why: Why::Other })));
    assert!(Command::read(frame(b'G', "{}")).is_err() && Command::read(frame(b'W', "a")).is_err());
}
