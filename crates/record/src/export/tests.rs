//! Lines of the form, and lines that are not.

use super::*;

fn id(text: &str) -> SessionId {
    SessionId::parse(text).expect("an id")
}

fn head() -> ExportHead {
    ExportHead {
        session_id: id("s-1"),
        agent: "example".to_owned(),
        cwd: "/w".to_owned(),
        created_ms: 7,
        title: Some("a \"title\"\n".to_owned()),
        forked_from: Some(id("s-0")),
        events: 2,
    }
}

const HEAD: &str = r#"{"type":"acpd-export","version":1,"sessionId":"s-1","agent":"example","cwd":"/w","createdMs":7,"title":"a \"title\"\n","forkedFrom":"s-0","events":2}"#;

// contract 7.3: the first line says what it is and in which version
#[test]
fn the_first_line_is_read_as_it_is_written() {
    let mut out = Vec::new();
    head().write(&mut out);
    assert_eq!(String::from_utf8(out).expect("text"), format!("{HEAD}\n"));
    assert_eq!(ExportHead::read(HEAD.as_bytes()), Ok(head()));
    let bare = ExportHead { title: None, forked_from: None, ..head() };
    let mut out = Vec::new();
    bare.write(&mut out);
    assert_eq!(ExportHead::read(out.trim_ascii_end()), Ok(bare));
}

// contract 7.3: what is wrong is named by its member, and refused
#[test]
fn a_first_line_that_is_none_is_told_by_its_member() {
    for (from, to, expected) in [
        ("acpd-export", "zip", "type: \"acpd-export\" is required, and it is \"zip\""),
        (
            "\"version\":1",
            "\"version\":2",
            "version: version 1 is required, and it is 2; use the acpd that wrote it",
        ),
        (
            "\"s-1\"",
            "\"../s\"",
            "sessionId: an id of at most 128 ASCII letters, digits, dashes, dots and underscores is required",
        ),
        ("\"example\"", "7", "agent: a string is required"),
        (",\"cwd\":\"/w\"", "", "cwd: a string is required"),
        ("\"events\":2", "\"events\":-2", "events: the number of events is required"),
        ("\"events\":2", "\"events\":2,\"x\":1", "line: the members type, "),
        (",\"cwd\"", ", \"cwd\"", "line: the members type, "),
        (",\"createdMs\":7", ",\"createdMs\":7,\"createdMs\":8", "line: createdMs: it is there twice"),
        ("{\"type\"", "[\"type\"", "line: an object of JSON is required: expected `,` or `]` at byte 8"),
        (HEAD, "7", "line: an object is required, and it is 7"),
        (HEAD, "{\"type\"", "line: an object of JSON is required: it ends too early"),
    ] {
        let line = HEAD.replacen(from, to, 1);
        assert_ne!(line, HEAD, "{from}");
        let error = ExportHead::read(line.as_bytes()).expect_err("it is wrong").to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let error = ExportHead::read(b"\xff{}").expect_err("no text").to_string();
    assert_eq!(error, "line: UTF-8 is required");
}

fn written(kind: u16, payload: &str) -> String {
    let event = ExportedEvent { seq: 3, at_ms: -5, kind, payload: payload.as_bytes().into() };
    let mut out = Vec::new();
    event.write(&mut out).expect("JSON");
    let line = String::from_utf8(out).expect("text");
    let line = line.strip_suffix('\n').expect("a line").to_owned();
    assert!(!line.contains(['\n', '\r']), "{line:?}");
    assert_eq!(ExportedEvent::read(line.as_bytes()), Ok(event), "{line}");
    line
}

// contract 7.3: what is stored of an event is in its line byte for byte, whatever white space it has
#[test]
fn an_event_is_read_as_it_is_written() {
    for (kind, payload, expected) in [
        (
            4,
            r#"{ "x":1.0,"big":12345678901234567890}"#,
            r#"{"seq":3,"atMs":-5,"kind":"update","payload":{ "x":1.0,"big":12345678901234567890}}"#,
        ),
        (999, "7", r#"{"seq":3,"atMs":-5,"kind":999,"payload":7}"#),
        (3, "{\"a\":\n1}", r#"{"seq":3,"atMs":-5,"kind":"prompt","text":"{\"a\":\n1}"}"#),
        (3, "{\"a\":\r1}", r#"{"seq":3,"atMs":-5,"kind":"prompt","text":"{\"a\":\r1}"}"#),
        (3, " {}", r#"{"seq":3,"atMs":-5,"kind":"prompt","text":" {}"}"#),
    ] {
        assert_eq!(written(kind, payload), expected);
    }
    // Neither writing nor reading follows the nesting.
    let levels = 100_000;
    written(4, &format!("{}{}", "[".repeat(levels), "]".repeat(levels)));
    let damaged = ExportedEvent { seq: 3, at_ms: 0, kind: 4, payload: b"{".as_slice().into() };
    assert_eq!(damaged.write(&mut Vec::new()), Err(NotJson { seq: 3 }));
}

// contract 7.3: what is wrong is named by its member, and refused
#[test]
fn a_line_that_is_no_event_is_told_by_its_member() {
    for (line, expected) in [
        ("", "line: an object of JSON is required: it is empty"),
        ("null", "line: an object is required, and it is null"),
        (r#"{"seq":-1,"atMs":0,"kind":"update","payload":{}}"#, "seq: the number of the event is required"),
        (
            r#"{"seq":1,"atMs":"x","kind":"update","payload":{}}"#,
            "atMs: a number of milliseconds is required",
        ),
        (
            r#"{"seq":1,"atMs":0,"kind":"later","payload":{}}"#,
            "kind: \"later\" is no kind of event that this version knows",
        ),
        (
            r#"{"seq":1,"atMs":0,"kind":4,"payload":{}}"#,
            "line: the members seq, atMs, kind, payload and no other",
        ),
        (r#"{"seq":1,"atMs":0,"kind":"update"}"#, "payload: what is stored of the event is required"),
        (r#"{"seq":1,"atMs":0,"kind":"update","text":"{}"}"#, "line: the members seq"),
        (r#"{"seq":1,"atMs":0,"kind":"update","text":"{\n"}"#, "text: JSON is required"),
        (
            r#"{"seq":1,"atMs":0,"kind":"update","payload":{},"text":""}"#,
            "text: it is for an event without payload",
        ),
        (r#"{"seq":1,"kind":"update","atMs":0,"payload":{}}"#, "line: the members seq"),
    ] {
        let error = ExportedEvent::read(line.as_bytes()).expect_err(line).to_string();
        assert!(error.starts_with(expected), "{line}: {error}");
    }
}
