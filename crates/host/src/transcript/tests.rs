//! What is in a transcript, and where it is cut.

use super::*;
use acpd_record::{EventKind, RawMessage};
use proptest::prelude::*;
use serde_json::{Value, json};

fn see(recorder: &mut TranscriptRecorder, kind: EventKind, event: &Value) {
    recorder.see(&Event::read(kind.number(), event.to_string().as_bytes()).expect("its own shape"));
}

fn prompt(recorder: &mut TranscriptRecorder, blocks: &Value) {
    let event = json!({"turn": 1, "by": "x", "via": "y", "prompt": blocks});
    see(recorder, EventKind::Prompt, &event);
}

fn ask(recorder: &mut TranscriptRecorder, text: &str) {
    prompt(recorder, &json!([{"type": "text", "text": text}]));
}

fn update(recorder: &mut TranscriptRecorder, update: &Value) {
    let line =
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}});
    see(recorder, EventKind::Update, &line);
}

fn say(recorder: &mut TranscriptRecorder, text: &str) {
    update(
        recorder,
        &json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}),
    );
}

/// Without the introduction.
fn body(transcript: &Transcript) -> &str {
    transcript.text.strip_prefix(INTRODUCTION).expect("it is introduced")
}

// contract 1.4: what both sides said, and what tools were called
#[test]
fn a_conversation_is_told() {
    let mut recorder = TranscriptRecorder::default();
    prompt(
        &mut recorder,
        &json!([
            {"type": "text", "text": "look at"}, {"type": "resource_link", "name": "a", "uri": "file:///a"},
            {"type": "resource", "resource": {"uri": "file:///b", "text": "secret"}},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        ]),
    );
    update(
        &mut recorder,
        &json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}),
    );
    say(&mut recorder, "I ");
    say(&mut recorder, "look.\n");
    update(
        &mut recorder,
        &json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "read\na", "status": "pending"}),
    );
    update(&mut recorder, &json!({"sessionUpdate": "plan", "entries": []}));
    update(
        &mut recorder,
        &json!({"sessionUpdate": "tool_call_update", "toolCallId": "2", "rawOutput": "long"}),
    );
    update(
        &mut recorder,
        &json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed"}),
    );
    say(&mut recorder, "Done.");
    see(&mut recorder, EventKind::TurnEnded, &json!({"turn": 1}));
    recorder.see(&Event::Other { kind: 999, payload: b"?" });
    ask(&mut recorder, "thanks");
    ask(&mut recorder, "more");
    let transcript = recorder.finish().expect("something was said");
    let expected = "\n\n## User\n\nlook at\n[file:///a]\n[file:///b]\n[image]\n\n## Agent\n\nI look.\
        \n\n## Tool call: read a\n\ncompleted\n\n## Tool call\n\n## Agent\n\nDone.\
        \n\n## User\n\nthanks\n\n## User\n\nmore\n";
    assert_eq!(body(&transcript), expected);
    let bytes = transcript.text.len();
    let facts = json!({"messages": 7, "omittedMessages": 0, "bytes": bytes, "truncated": false});
    assert_eq!(json!(transcript.facts()), facts);
}

#[test]
fn nothing_said_is_no_transcript() {
    let mut recorder = TranscriptRecorder::default();
    see(&mut recorder, EventKind::Created, &json!({"agent": "a", "cwd": "/"}));
    recorder.see(&Event::Update(RawMessage::stored(b"no JSON")));
    assert_eq!(recorder.finish(), None);
}

// contract 1.4: bounded, from the end, cut between messages, and it says so
#[test]
fn a_long_conversation_is_cut_between_messages() {
    let mut recorder = TranscriptRecorder::default();
    for number in 0..5_000 {
        ask(&mut recorder, &format!("question {number} {}", "x".repeat(90)));
        say(&mut recorder, &format!("answer {number} {}", "y".repeat(90)));
    }
    let transcript = recorder.finish().expect("something was said");
    assert!((LIMIT - 300..LIMIT + 400).contains(&transcript.text.len()), "{}", transcript.text.len());
    let (note, rest) = body(&transcript).trim_start().split_once("\n\n").expect("a note comes first");
    assert_eq!(note, format!("[{} earlier messages were left out]", transcript.omitted));
    assert_eq!(transcript.omitted + transcript.messages, 10_000);
    assert!(rest.starts_with("## ") && rest.ends_with("y\n") && rest.contains("answer 4999 "));
    assert_eq!(rest.matches("## ").count() as u64, transcript.messages);
    assert!(transcript.facts().truncated);
}

// contract 1.4: only one message that is too long by itself is cut within
#[test]
fn a_message_over_the_limit_keeps_its_end() {
    let mut recorder = TranscriptRecorder::default();
    ask(&mut recorder, "go on");
    for _ in 0..40_000 {
        say(&mut recorder, "héhéhéhé ");
    }
    say(&mut recorder, "the end");
    let transcript = recorder.finish().expect("something was said");
    assert!(transcript.text.len() <= LIMIT + INTRODUCTION.len() + 100, "{}", transcript.text.len());
    let text = body(&transcript);
    assert!(
        text.starts_with("\n\n[1 earlier message was left out]\n\n## Agent\n\n[the beginning of"),
        "{}",
        &text[..99]
    );
    assert!(text.ends_with("hé the end\n"));
    assert_eq!((transcript.messages, transcript.omitted, transcript.cut), (1, 1, true));
}

// contract 1.4: a resource where the agent takes one, else text, which says where it ends
#[test]
fn the_block_fits_the_agent() {
    let mut recorder = TranscriptRecorder::default();
    ask(&mut recorder, "hello");
    let transcript = recorder.finish().expect("something was said");
    let resource = json!(transcript.block(&SessionId::parse("s-1").expect("an id"), true));
    assert_eq!(
        (&resource["type"], &resource["resource"]["text"]),
        (&json!("resource"), &json!(transcript.text))
    );
    assert_eq!(resource["resource"]["uri"], "acpd://sessions/s-1/transcript");
    let text = json!(transcript.block(&SessionId::parse("s-1").expect("an id"), false));
    assert_eq!(text["type"], "text");
    let text = text["text"].as_str().expect("a text");
    let end = text.strip_prefix(transcript.text.as_str()).expect("the whole transcript");
    // The user's words come right behind it.
    assert!(end.contains("What the user says now follows.") && end.ends_with("\n\n"), "{end:?}");
}

proptest! {
    #[test]
    fn any_cut_is_in_bounds_and_counted(
        said in proptest::collection::vec((any::<bool>(), "[aé\u{1f600}\n]{0,40}"), 1..30), limit in 60usize..400,
    ) {
        let mut recorder = TranscriptRecorder::default();
        for (by_user, text) in &said {
            match by_user {
                true => ask(&mut recorder, text),
                false => say(&mut recorder, text),
            }
        }
        let all = recorder.messages.len() as u64;
        let transcript = recorder.finish_within(limit).expect("something was said");
        prop_assert_eq!(transcript.messages + transcript.omitted, all);
        prop_assert!(transcript.text.len() <= INTRODUCTION.len() + limit + 50);
        prop_assert_eq!(transcript.text.matches("## ").count() as u64, transcript.messages);
    }
}
