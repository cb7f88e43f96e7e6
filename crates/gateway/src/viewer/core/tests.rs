//! The viewer's core, stepped without a runtime: every input in every state.

mod attaching;
mod ending;
mod table;

use super::*;
use crate::capabilities::ClientCapabilities;
use crate::questions::Questions;
use crate::viewer::effects::PIECE;
use crate::viewer::handle::Shown;
use acpd_record::{QuestionNumber, SessionId};
use bytes::Bytes;

/// A core and what it did. An effect is a word: `3` a line of event 3, `end` the end of a run, `ask` a question, `withdraw`
/// one that needs no answer, `=a` the answer a, `!a` the end of the run in its place; the others are as they are called.
struct Stage {
    core: ViewerCore<&'static str>,
    is_idle: bool,
}

const ENDED: &str =
    r#"{"reason":"completed","terminatedBy":"agent","endedAt":"x","turnActive":false,"leaked":false}"#;

fn info() -> TerminationInfo {
    serde_json::from_str(ENDED).expect("a record")
}

fn answer(name: &'static str, after: u64) -> Answer<&'static str> {
    let (before, asked_run, questions) = (None, None, Vec::new());
    Answer { after, before, asked_run, questions, body: Body::Given, delivery: name }
}

/// An answer of the run that began behind `run`.
fn of_run(name: &'static str, run: u64, after: u64) -> Answer<&'static str> {
    Answer { asked_run: Some(run), ..answer(name, after) }
}

fn question() -> OpenQuestion {
    let message = r#"{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{}}"#;
    OpenQuestion { number: QuestionNumber(1), form: false, only: None, message: message.into() }
}

fn joining(run: Option<u64>, from: u64, history_until: u64, name: &'static str) -> Joining<&'static str> {
    let (goes_on, skip_until, answer) = (false, 0, answer(name, history_until));
    Joining { run, from, history_until, goes_on, skip_until, answer }
}

impl Stage {
    /// A client that joins with the answer `j`, before it has begun.
    fn joining(run: Option<u64>, from: u64, history_until: u64) -> Self {
        let (id, questions) = (SessionId::parse("s").expect("an id"), Questions::default());
        let shown = Shown { history_until, ..Shown::default() };
        let page = Page::new(&id, "me".into(), ClientCapabilities::default(), questions, &shown);
        Self { core: ViewerCore::new(page, joining(run, from, history_until, "j")), is_idle: true }
    }

    /// One that follows the run that began behind event 2, and has read up to event 5.
    fn live() -> Self {
        let mut stage = Self::joining(Some(2), 5, 5);
        assert_eq!(stage.take(Input::Begin), "=j");
        stage
    }

    /// One that is shown the history up to event 5 and has read up to event 3.
    fn replaying() -> Self {
        let mut stage = Self::joining(None, 0, 5);
        assert_eq!(stage.take(Input::Begin), "");
        assert_eq!(stage.read(1..=3), "1 2 3");
        stage
    }

    /// One that has seen the end of the run, which is event 6.
    fn ended() -> Self {
        let mut stage = Self::live();
        assert_eq!(stage.end(6), "end");
        assert_eq!(stage.take(Input::LogEnded { whole: true }), "DropCursor LeaveSeat Finished1");
        stage
    }

    /// One whose log has ended behind event 5 without an end.
    fn awaiting() -> Self {
        let mut stage = Self::live();
        assert_eq!(stage.take(Input::LogEnded { whole: true }), "DropCursor LeaveSeat AwaitEnd");
        stage
    }

    /// One that has left behind event 5 and is owed an answer behind event 7.
    fn detached() -> Self {
        let mut stage = Self::live();
        stage.is_idle = false;
        assert_eq!(stage.take(Input::Leave(answer("leave", 0))), "LeaveRun Finished1 =leave");
        assert_eq!(stage.take(Input::Answer(of_run("owed", 2, 7))), "");
        stage
    }

    fn take(&mut self, input: Input<'_, &'static str>) -> String {
        let mut effects = Effects::with_room(0);
        self.core.handle(input, self.is_idle, &mut effects);
        effects.flush();
        words(&mut effects)
    }

    fn event(&mut self, seq: u64, kind: EventKind, payload: &str) -> String {
        self.take(Input::Event(StoredEvent {
            seq,
            kind: kind.number(),
            at_ms: 0,
            payload: payload.as_bytes(),
        }))
    }

    /// Reads a block of updates.
    fn read(&mut self, events: impl IntoIterator<Item = u64>) -> String {
        let mut shown: Vec<String> =
            events.into_iter().map(|seq| self.event(seq, EventKind::Update, &update(seq))).collect();
        shown.push(self.take(Input::BlockRead));
        shown.retain(|words| !words.is_empty());
        shown.join(" ")
    }

    /// Reads a block with the end of a run.
    fn end(&mut self, seq: u64) -> String {
        let shown = [self.event(seq, EventKind::Ended, ENDED), self.take(Input::BlockRead)];
        shown.join(" ").trim().to_owned()
    }
}

fn update(seq: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","n":{seq}}}}}"#)
}

fn words(effects: &mut Effects<&'static str>) -> String {
    let mut words = Vec::new();
    while let Some(effect) = effects.next_due() {
        match effect {
            Effect::Write(lines) => words.extend(lines_of(&lines)),
            Effect::Answer { body: Body::Given, delivery } => words.push(format!("={delivery}")),
            Effect::Answer { body: Body::EndOfRun, delivery } => words.push(format!("!{delivery}")),
            Effect::Join { opens_cursor: true } => words.push("JoinOpen".to_owned()),
            Effect::Join { opens_cursor: false } => words.push("JoinOn".to_owned()),
            Effect::Finished { attachments } => words.push(format!("Finished{attachments}")),
            Effect::LeaveSeat | Effect::LeaveRun | Effect::DropCursor | Effect::AwaitEnd => {
                words.push(format!("{effect:?}"));
            }
        }
    }
    words.join(" ")
}

fn lines_of(lines: &Bytes) -> Vec<String> {
    let word = |line: &str| match line.rsplit_once("\"n\":") {
        Some((_, rest)) => rest.trim_end_matches('}').to_owned(),
        None if line.contains("_sandboxagent/session/ended") => "end".to_owned(),
        None if line.contains("session/request_permission") => "ask".to_owned(),
        None if line.contains("$/cancel_request") => "withdraw".to_owned(),
        None => line.to_owned(),
    };
    std::str::from_utf8(lines).expect("text").lines().map(word).collect()
}

// issue 29, deliver 3: a block that is shown alike keeps answers and events in order; one with an answer inside is none
#[test]
fn a_block_that_is_shown_alike_has_its_place() {
    let lines = |seq: u64| Bytes::from(update(seq) + "\n");
    let mut stage = Stage::live();
    assert!(stage.core.shows_alike(6, 8) && !stage.core.shows_alike(5, 8), "what was shown before");
    assert_eq!(stage.take(Input::Answer(answer("a", 8))), "");
    assert_eq!(stage.take(Input::Answer(answer("b", 9))), "");
    assert!(stage.core.shows_alike(6, 8));
    assert_eq!(stage.take(Input::Alike { last: 8, lines: lines(8) }), "8");
    assert_eq!(stage.take(Input::BlockRead), "=a");
    assert!(!stage.core.shows_alike(9, 10), "an answer stands inside");
    assert_eq!(stage.read(9..=10), "9 =b 10");
    assert!(stage.core.shows_alike(11, 11));
    for stage in [Stage::replaying(), Stage::ended(), Stage::awaiting(), Stage::detached()] {
        assert!(!stage.core.shows_alike(11, 11));
    }
}

// FR-3: the transport gets many lines at once, and a slow one is not handed more than it takes
#[test]
fn lines_are_gathered_into_pieces() {
    let mut effects: Effects<&str> = Effects::with_room(0);
    effects.lines().extend_from_slice(&vec![b'x'; PIECE - 1]);
    assert!(effects.next_due().is_none());
    effects.lines().extend_from_slice(b"\n");
    assert!(matches!(effects.next_due(), Some(Effect::Write(lines)) if lines.len() == PIECE));
    effects.lines().extend_from_slice(b"1\n");
    effects.push(Effect::LeaveSeat);
    effects.lines().extend_from_slice(b"2\n");
    assert!(matches!(effects.next_due(), Some(Effect::Write(lines)) if &lines[..] == b"1\n"));
    assert!(matches!(effects.next_due(), Some(Effect::LeaveSeat)));
    assert!(effects.next_due().is_none());
}
