//! What viewers share, over a real log: what is written once, and that each is shown what it would be shown alone.

use super::*;
use crate::capabilities::InitializeParams;
use crate::questions::Questions;
use crate::viewer::handle::Shown;
use crate::viewer::page::Page;
use acpd_eventlog::{Appender, Batch, Cursor, EventLog, NewSession, Options};
use acpd_host::EventKind;
use tempfile::TempDir;

const BARE: &str = "{}";
const TERMINAL: &str = r#"{"terminal":true}"#;
const CAPABILITIES: [&str; 7] = [
    BARE,
    TERMINAL,
    r#"{"session":{"notices":{}}}"#,
    r#"{"session":{"compaction":{}}}"#,
    r#"{"session":{"configOptions":{"boolean":{}}}}"#,
    r#"{"_meta":{"sandboxagent.dev":{"terminals":true}}}"#,
    r#"{"_meta":{"sandboxagent.dev":{"cursors":true}}}"#,
];

fn client(capabilities: &str) -> ClientCapabilities {
    let params = format!(r#"{{"protocolVersion":1,"clientCapabilities":{capabilities}}}"#);
    InitializeParams::read(Some(params.as_bytes())).expect("params").capabilities()
}

fn id() -> SessionId {
    SessionId::parse("s").expect("an id")
}

fn page(client: ClientCapabilities) -> Page {
    Page::new(&id(), "me".into(), client, Questions::default(), &Shown::default())
}

fn update(update: &str) -> (EventKind, String) {
    let params = format!(r#"{{"sessionId":"s","update":{update}}}"#);
    (EventKind::Update, format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{params}}}"#))
}

fn chunk(text: &str) -> (EventKind, String) {
    update(&format!(
        r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#
    ))
}

fn call() -> (EventKind, String) {
    update(r#"{"sessionUpdate":"tool_call","toolCallId":"c","content":[]}"#)
}

fn prompt() -> (EventKind, String) {
    (EventKind::Prompt, r#"{"turn":3,"by":"x","via":"me","prompt":[]}"#.to_owned())
}

fn turn_ended() -> (EventKind, String) {
    (EventKind::TurnEnded, r#"{"turn":3,"result":{"stopReason":"end_turn"}}"#.to_owned())
}

struct Session {
    log: EventLog,
    _appender: Appender,
    _dir: TempDir,
}

impl Session {
    /// A live session with one block for each of these.
    async fn of(blocks: &[&[(EventKind, String)]]) -> Self {
        let dir = TempDir::new().expect("a directory");
        let log = EventLog::open(dir.path(), Options::default()).expect("the log opens");
        let new = NewSession { id: "s".into(), owner: "host".into(), ..NewSession::default() };
        let mut appender = log.create(new).await.expect("it is new");
        let mut last = 0;
        for events in blocks {
            let mut batch = Batch::new();
            events.iter().for_each(|(kind, payload)| batch.push(kind.number(), 0, payload.as_bytes()));
            last += events.len() as u64;
            appender.append(batch).await.expect("there is room");
            appender.committed().wait_for(last).await.expect("it is written");
        }
        Self { log, _appender: appender, _dir: dir }
    }

    async fn cursor(&self) -> Cursor {
        self.log.cursor("s", 0).await.expect("it is there")
    }
}

// issue 29, deliver 3: what is shared is what each would be shown alone, for all capabilities
#[tokio::test]
async fn each_is_shown_what_it_would_be_shown_alone() {
    let former = chunk("old").1.replace("\"s\"", "\"former\"");
    let events = [
        chunk("a"),
        (EventKind::Update, former),
        update(r#"{"sessionUpdate":"notice","severity":"info","title":"x"}"#),
        update(r#"{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed"}"#),
        update(r#"{"sessionUpdate":"config_option_update","configOptions":[{"id":"a","type":"boolean"}]}"#),
        (
            EventKind::Notification,
            r#"{"jsonrpc":"2.0","method":"_x/seen","params":{"sessionId":"s"}}"#.into(),
        ),
        (EventKind::Stalled, r#"{"turn":3,"silentMs":400,"goesOn":true}"#.into()),
        turn_ended(),
    ];
    let session = Session::of(&[&events]).await;
    let block = session.cursor().await.next().await.expect("it can be read").expect("there is one");
    let mut forms = Vec::new();
    for capabilities in CAPABILITIES {
        let client = client(capabilities);
        let (mut page, mut alone) = (page(client), BytesMut::new());
        block.events().for_each(|event| page.write(&event, &mut alone));
        let shared = Alike::new(id(), client).write_block(&block);
        assert_eq!(*shared, [alone.freeze()], "{capabilities}");
        forms.push((client.form(), shared));
    }
    for (at, (form, lines)) in forms.iter().enumerate() {
        for (other, others_lines) in &forms[..at] {
            assert!(form != other || lines == others_lines, "of one form, and not shown alike");
        }
    }
}

// issue 29, deliver 3: what depends on a client is written for it alone, and all beside it
#[tokio::test]
async fn what_depends_on_a_client_is_not_shared() {
    let output = (EventKind::Terminal, r#"{"terminalId":"t","output":"so far"}"#.to_owned());
    let blocks: [&[_]; 6] =
        [&[chunk("a"), prompt()], &[call()], &[output], &[turn_ended()], &[chunk("b")], &[prompt()]];
    let session = Session::of(&blocks).await;
    let shared = async |capabilities| {
        let mut alike = Alike::new(id(), client(capabilities));
        let (mut cursor, mut shared) = (session.cursor().await, Vec::new());
        while let Some(block) = cursor.try_next() {
            shared.push(alike.write_block(&block).first().map(|lines| !lines.is_empty()));
        }
        shared
    };
    assert_eq!(shared(BARE).await, [None, None, None, Some(false), Some(true), None]);
    assert_eq!(shared(TERMINAL).await, [None, Some(true), Some(false), Some(false), Some(true), None]);
}
