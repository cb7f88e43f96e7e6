//! What was said in the turns of a session, as it is indexed and shown again: events come in, turns come out.
//!
//! Pure. Of each part of a turn the beginning counts, so that one long turn takes neither much memory nor much of the index. Not
//! here: thoughts, plans, and what tools read and wrote.

use crate::spoken::{Chunk, ToolCall, spoken};
use acpd_eventlog::{Event as StoredEvent, TurnText};
use acpd_record::{Event, EventKind, update_of};
use acpd_wire::{Skimmer, UpdateKind};

/// What counts of a prompt, in bytes: the words of someone, and the beginning of what was pasted with them.
const PROMPT: usize = 8 * 1024;
/// What counts of an answer.
const ANSWER: usize = 16 * 1024;
/// What counts of the titles of tool calls.
const TOOLS: usize = 4 * 1024;

/// What was said in a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// The event of its prompt.
    pub(super) seq: u64,
    pub(super) at_ms: i64,
    pub(super) prompt: String,
    pub(super) answer: String,
    /// The titles of its tool calls, a line for each.
    pub(super) tools: String,
}

impl Said {
    /// For the index.
    pub(super) fn into_text(self) -> TurnText {
        let Self { seq, at_ms, prompt, answer, tools } = self;
        TurnText { seq, at_ms, text: [prompt, answer, tools].join("\n") }
    }
}

/// Collects what was said from events, in order.
#[derive(Debug)]
pub(super) struct Turns {
    open: Option<Said>,
    ended: Vec<Said>,
    /// Bytes of what was said in them.
    bytes: usize,
    /// The last event before what is open.
    upto: u64,
    skimmer: Skimmer,
}

impl Turns {
    /// Before the event behind `after`, where no turn is open.
    pub(super) fn new(after: u64) -> Self {
        Self { open: None, ended: Vec::new(), bytes: 0, upto: after, skimmer: Skimmer::default() }
    }

    /// Takes the next event.
    pub(super) fn see(&mut self, stored: &StoredEvent<'_>) {
        match EventKind::from_number(stored.kind) {
            Some(EventKind::Prompt) => {
                self.end();
                if let Ok(Event::Prompt(prompt)) = Event::read(stored.kind, stored.payload) {
                    let mut said = Said { seq: stored.seq, at_ms: stored.at_ms, ..Said::default() };
                    add(&mut said.prompt, &spoken(prompt.prompt), PROMPT);
                    self.open = Some(said);
                }
            }
            Some(EventKind::Update) => {
                if let Some(open) = &mut self.open
                    && let Some(seen) = self.skimmer.skim(stored.payload)
                {
                    open.see_update(seen.kind(), stored.payload);
                }
            }
            Some(EventKind::TurnEnded | EventKind::Ended) => self.end(),
            _ => {}
        }
        if self.open.is_none() {
            self.upto = stored.seq;
        }
    }

    /// No event follows `last`.
    pub(super) fn over(&mut self, last: u64) {
        self.end();
        self.upto = last;
    }

    /// The turns that have ended, and the event up to which they say all.
    pub(super) fn take(&mut self) -> (Vec<Said>, u64) {
        self.bytes = 0;
        (std::mem::take(&mut self.ended), self.upto)
    }

    /// Whether as many turns wait to be taken, or as many bytes of them.
    pub(super) fn has_waiting(&self, turns: usize, bytes: usize) -> bool {
        self.ended.len() >= turns || self.bytes >= bytes
    }

    fn end(&mut self) {
        if let Some(said) = self.open.take() {
            self.bytes += said.prompt.len() + said.answer.len() + said.tools.len();
            self.ended.push(said);
        }
    }
}

impl Said {
    fn see_update(&mut self, kind: UpdateKind, line: &[u8]) {
        match kind {
            UpdateKind::AgentMessageChunk if self.answer.len() < ANSWER => {
                let chunk = update_of::<Chunk<'_>>(line);
                add(&mut self.answer, &chunk.map(|chunk| chunk.content.spoken()).unwrap_or_default(), ANSWER);
            }
            UpdateKind::ToolCall | UpdateKind::ToolCallUpdate if self.tools.len() < TOOLS => {
                if let Some(title) = update_of::<ToolCall<'_>>(line).and_then(|call| call.title) {
                    add(&mut self.tools, &title, TOOLS);
                    add(&mut self.tools, "\n", TOOLS);
                }
            }
            _ => {}
        }
    }
}

/// As much as fits.
fn add(to: &mut String, text: &str, limit: usize) {
    let room = limit.saturating_sub(to.len());
    to.push_str(&text[..text.floor_char_boundary(room)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(seq: u64, (kind, payload): &(EventKind, String)) -> StoredEvent<'_> {
        StoredEvent { seq, kind: kind.number(), at_ms: 7 + seq as i64, payload: payload.as_bytes() }
    }

    fn prompt(text: &str) -> (EventKind, String) {
        (EventKind::Prompt, format!(r#"{{"turn":1,"by":"c","prompt":[{{"type":"text","text":"{text}"}}]}}"#))
    }

    fn update(update: &str) -> (EventKind, String) {
        (EventKind::Update, format!(r#"{{"params":{{"update":{{{update}}}}}}}"#))
    }

    fn chunk(text: &str) -> (EventKind, String) {
        update(&format!(
            r#""sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}"#
        ))
    }

    fn call(title: &str) -> (EventKind, String) {
        update(&format!(r#""sessionUpdate":"tool_call","toolCallId":"t","title":"{title}""#))
    }

    fn thought() -> (EventKind, String) {
        update(r#""sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"secret"}"#)
    }

    fn ended() -> (EventKind, String) {
        (EventKind::TurnEnded, r#"{"turn":1}"#.to_owned())
    }

    fn seen(events: &[(EventKind, String)]) -> Turns {
        let mut turns = Turns::new(0);
        (1..).zip(events).for_each(|(seq, event)| turns.see(&stored(seq, event)));
        turns
    }

    // issue 11, deliver 3: prompts, answers joined from their chunks, and titles of tools; nothing else
    #[test]
    fn a_turn_is_what_was_said_in_it() {
        let events = [
            chunk("before"),
            prompt("fix"),
            chunk("do"),
            thought(),
            call("read x"),
            chunk("ne"),
            ended(),
            chunk("y"),
        ];
        let (said, upto) = seen(&events).take();
        let expected =
            Said { seq: 2, at_ms: 9, prompt: "fix".into(), answer: "done".into(), tools: "read x\n".into() };
        assert_eq!((said.as_slice(), upto), ([expected.clone()].as_slice(), 8));
        assert_eq!(expected.into_text().text, "fix\ndone\nread x\n");
    }

    // issue 11, deliver 3: what is open is not indexed, unless nothing follows
    #[test]
    fn an_open_turn_waits() {
        let mut turns = seen(&[prompt("one"), ended(), prompt("two"), chunk("x")]);
        let (said, upto) = turns.take();
        assert_eq!((said.len(), upto), (1, 2));
        turns.over(4);
        let (said, upto) = turns.take();
        assert_eq!((said[0].seq, upto), (3, 4));
        let end = (EventKind::Ended, "{}".to_owned());
        let (said, upto) = seen(&[prompt("one"), end]).take();
        assert_eq!((said.len(), upto), (1, 2));
    }

    // issue 29: what waits to be taken is bounded, in turns and in bytes
    #[test]
    fn what_waits_is_counted() {
        let mut turns = seen(&[prompt("one"), chunk("three"), ended(), prompt("open")]);
        assert!(turns.has_waiting(1, 99) && turns.has_waiting(9, 8));
        assert!(!turns.has_waiting(2, 9));
        turns.take();
        assert!(!turns.has_waiting(1, 1));
    }

    // issue 11, deliver 3: the size is bounded
    #[test]
    fn the_beginning_counts() {
        let long = "é".repeat(ANSWER);
        let events = [prompt(&long), chunk(&long), chunk("more"), call(&long), call("more"), ended()];
        let (said, _) = seen(&events).take();
        let lengths = [&said[0].prompt, &said[0].answer, &said[0].tools].map(String::len);
        assert_eq!(lengths, [PROMPT, ANSWER, TOOLS]);
    }
}
