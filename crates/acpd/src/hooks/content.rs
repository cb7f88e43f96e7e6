//! What was said in a turn, for hooks that are told: the prompt's text and the answer's, each bounded.

use acpd_eventlog::{CursorError, EventLog};
use acpd_record::{Event, TurnNumber, update_of};
use acpd_wire::UpdateKind;
use serde::Deserialize;
use std::borrow::Cow;

/// What is told of each text, in bytes.
const TEXT: usize = 64 << 10;
/// Events that are looked through at first for the beginning of a turn, from its end backwards; then twice as many.
const STEP: u64 = 512;

/// The words of a turn.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) prompt: String,
    pub(super) answer: String,
    /// There was more of one of them.
    pub(super) truncated: bool,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, default)]
    text: Cow<'a, str>,
}

/// A part of an answer.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    content: Block<'a>,
}

impl Words {
    /// Takes an event of the turn. Whether there may be more to take.
    fn take(&mut self, event: &Event<'_>) -> bool {
        match event {
            Event::Prompt(prompt) => {
                let blocks: Vec<Block<'_>> = serde_json::from_str(prompt.prompt.get()).unwrap_or_default();
                for block in blocks.iter().filter(|block| !block.text.is_empty()) {
                    let line = if self.prompt.is_empty() { "" } else { "\n" };
                    self.truncated |= !add(&mut self.prompt, line) || !add(&mut self.prompt, &block.text);
                }
            }
            Event::Update(message) if message.kind() == UpdateKind::AgentMessageChunk => {
                let Some(chunk) = update_of::<Chunk<'_>>(message.line()) else { return true };
                let fits = add(&mut self.answer, &chunk.content.text);
                self.truncated |= !fits;
                return fits;
            }
            _ => {}
        }
        true
    }
}

/// Adds as much as there is room for, cut at a character. Whether that was all.
fn add(text: &mut String, more: &str) -> bool {
    let room = TEXT - text.len();
    text.push_str(&more[..more.floor_char_boundary(room)]);
    more.len() <= room
}

/// The words of a turn that ended with event `end`.
pub(super) async fn of_turn(
    log: &EventLog,
    session: &str,
    turn: TurnNumber,
    end: u64,
) -> Result<Words, CursorError> {
    let (mut until, mut step, mut begun) = (end, STEP, None);
    while until > 1 && begun.is_none() {
        let from = until.saturating_sub(step).max(1);
        each(log, session, from, until - 1, |seq, event| {
            if matches!(event, Event::Prompt(prompt) if prompt.turn == turn) {
                begun = Some(seq);
            }
            begun.is_none()
        })
        .await?;
        (until, step) = (from, step * 2);
    }
    let mut words = Words::default();
    if let Some(begun) = begun {
        each(log, session, begun, end - 1, |_, event| words.take(event)).await?;
    }
    Ok(words)
}

/// Shows events `from` to `until`, as long as `see` wants more.
async fn each(
    log: &EventLog,
    session: &str,
    from: u64,
    until: u64,
    mut see: impl FnMut(u64, &Event<'_>) -> bool,
) -> Result<(), CursorError> {
    let mut cursor = log.cursor(session, from - 1).await?;
    while cursor.position() < until {
        let Some(block) = cursor.next().await? else { return Ok(()) };
        for stored in block.events().take_while(|event| event.seq <= until) {
            let Ok(event) = Event::read(stored.kind, stored.payload) else { continue };
            if !see(stored.seq, &event) {
                return Ok(());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(kind: &str, text: &str) -> String {
        let content = serde_json::json!({"type": "text", "text": text});
        let update = serde_json::json!({"sessionUpdate": kind, "content": content});
        serde_json::json!({"method": "session/update", "params": {"sessionId": "s", "update": update}})
            .to_string()
    }

    // contract 7.2: the prompt and the answer's text, bounded
    #[test]
    fn the_words_of_a_turn_are_bounded() {
        let mut words = Words::default();
        let prompt = r#"{"turn":1,"by":"c","prompt":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]}"#;
        let lines = [update("agent_message_chunk", "x"), update("agent_thought_chunk", "y")];
        words.take(&Event::read(3, prompt.as_bytes()).expect("a prompt"));
        for line in &lines {
            assert!(words.take(&Event::read(4, line.as_bytes()).expect("an update")));
        }
        let expected = Words { prompt: "a\nb".into(), answer: "x".into(), truncated: false };
        assert_eq!(words, expected);
        let long = update("agent_message_chunk", &"é".repeat(TEXT));
        assert!(!words.take(&Event::read(4, long.as_bytes()).expect("an update")));
        assert!(words.truncated && words.answer.len() <= TEXT && words.answer.len() > TEXT - 2);
    }
}
