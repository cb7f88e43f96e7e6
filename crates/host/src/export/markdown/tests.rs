//! What each event is in words.

use super::*;

fn update(update: &str) -> (u16, String) {
    (
        4,
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
        ),
    )
}

fn said(text: &str) -> (u16, String) {
    update(&format!(
        r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}"#
    ))
}

fn call(id: &str, rest: &str) -> (u16, String) {
    update(&format!(r#"{{"sessionUpdate":"tool_call_update","toolCallId":"{id}"{rest}}}"#))
}

fn stored(kind: u16, payload: &str) -> (u16, String) {
    (kind, payload.to_owned())
}

fn told(events: &[(u16, String)]) -> String {
    written(events, false)
}

fn written(events: &[(u16, String)], has_details: bool) -> String {
    let (mut markdown, mut out) = (Markdown::new(has_details), String::new());
    for (kind, payload) in events {
        markdown.see(&Event::read(*kind, payload.as_bytes()).expect("its own shape"), &mut out);
    }
    out + &markdown.finish()
}

const ASKED: &str = r#"{"request":4,"message":{"id":1,"params":{"toolCall":{"title":"rm x"},"options":[{"optionId":"a","name":"Allow once"}]}}}"#;

// contract 7.3: prompts, answers, tool calls with titles and status, who answered what, how it ended
#[test]
fn each_event_is_told_in_words() {
    let prompt = stored(
        3,
        r#"{"turn":1,"by":"editor","prompt":[{"type":"text","text":"do it\n"},{"type":"resource_link","uri":"file:///a"}]}"#,
    );
    let chosen = r#"{"request":4,"by":{"client":"editor"},"result":{"outcome":{"outcome":"selected","optionId":"a"}}}"#;
    for (events, expected) in [
        (vec![stored(2, "{}")], ""),
        (vec![stored(2, "{}"), stored(2, r#"{"by":"c"}"#)], "\n- Taken up again by c\n"),
        (vec![prompt.clone()], "\n## User (editor)\n\ndo it\n\n[file:///a]\n"),
        (vec![said("one "), said("two")], "\n## Agent\n\none two\n"),
        (vec![prompt, said("yes")], "\n## User (editor)\n\ndo it\n\n[file:///a]\n\n## Agent\n\nyes\n"),
        (
            vec![
                said("a"),
                call("1", r#","title":"list","status":"pending""#),
                said("b"),
                call("1", r#","status":"completed""#),
                said("c"),
            ],
            "\n## Agent\n\nab\n\n- Tool call: list: completed\n\n## Agent\n\nc\n",
        ),
        (
            vec![call("1", r#","title":"list""#), stored(6, r#"{"turn":1,"stopReason":"end_turn"}"#)],
            "\n- Tool call: list: pending\n",
        ),
        (vec![call("1", "")], "\n- Tool call: without a title: pending\n"),
        // issue 28, RA10: the command or path, unless the title has it
        (
            vec![
                call("1", r#","title":"Shell","rawInput":{"command":"ls `x`","n":1}"#),
                call("1", r#","status":"failed""#),
                call(
                    "2",
                    r#","title":"write","rawInput":{"command":7},"locations":[{"path":"/w/a"}],"status":"completed""#,
                ),
                call("3", r#","title":"`ls -l`","rawInput":{"cmd":["ls","-l"]},"status":"completed""#),
                call("4", r#","title":"odd","rawInput":"x","locations":{},"status":"completed""#),
            ],
            "\n- Tool call: Shell (`` ls `x` ``): failed\n- Tool call: write (`/w/a`): completed\n\
             - Tool call: `ls -l`: completed\n- Tool call: odd: completed\n",
        ),
        // issue 28, RA10: an agent is never taken for a person
        (
            vec![
                said("yes\\n## Us"),
                said("er (you)\\n\\nno\\n```"),
                call("1", r#","title":"t","status":"completed""#),
            ],
            "\n## Agent\n\nyes\n\\## User (you)\n\nno\n```\n```\n\n- Tool call: t: completed\n",
        ),
        (vec![stored(12, ASKED), stored(13, chosen)], "\n- Question: rm x: Allow once (by editor)\n"),
        (
            vec![
                stored(12, ASKED),
                stored(
                    13,
                    r#"{"request":4,"by":{"cause":"cancel"},"result":{"outcome":{"outcome":"cancelled"}}}"#,
                ),
            ],
            "\n- Question: rm x: cancelled (without a client: cancel)\n",
        ),
        (
            vec![stored(12, ASKED), stored(13, r#"{"request":4,"by":{"mode":"deny"},"result":7}"#)],
            "\n- Question: rm x: answered (by mode deny)\n",
        ),
        (
            vec![
                stored(14, r#"{"request":4,"message":{"id":1,"params":{"message":"Your name?"}}}"#),
                stored(15, r#"{"request":4,"by":{"client":"c"},"result":{"action":"decline"}}"#),
            ],
            "\n- Question: Your name?: decline (by c)\n",
        ),
        (vec![stored(13, chosen)], ""),
        (
            vec![stored(7, r#"{"by":"c"}"#), stored(6, r#"{"turn":1,"stopReason":"cancelled"}"#)],
            "\n- Cancel requested by c\n- The turn ended: cancelled\n",
        ),
        (
            vec![stored(6, r#"{"turn":1,"error":{"code":1,"message":"no\nmoney"}}"#)],
            "\n- The turn failed: no money\n",
        ),
        (
            vec![stored(
                9,
                r#"{"reason":"error","terminatedBy":"agent","message":"agent exited with code 3","endedAt":"T","cause":"agent_crash","turnActive":false,"leaked":false}"#,
            )],
            "\n- Ended T: error (agent_crash): agent exited with code 3\n",
        ),
        (vec![stored(5, r#"{"method":"x"}"#), stored(999, "{}"), update(r#"{"sessionUpdate":"plan"}"#)], ""),
    ] {
        assert_eq!(told(&events), expected, "{events:?}");
    }
}

// contract 7.3: what is in a file of another goes to no terminal as an order
#[test]
fn control_characters_are_left_out() {
    let events = [said(r"a\u001b[2Jb\tc\nd"), call("1", r#","title":"x\u001b]0;y\u0007","status":"failed""#)];
    assert_eq!(told(&events), "\n## Agent\n\na[2Jb\tc\nd\n\n- Tool call: x ]0;y: failed\n");
    let head = ExportHead {
        session_id: acpd_record::SessionId::parse("s").expect("an id"),
        agent: "a".to_owned(),
        cwd: "/w\u{1b}".to_owned(),
        created_ms: 0,
        title: Some("T\n# T".to_owned()),
        forked_from: acpd_record::SessionId::parse("s-0"),
        events: 1,
    };
    let expected = "# T # T\n\n- Session: s\n- Agent: a\n- Directory: /w\n- Created: 1970-01-01T00:00:00.000Z\n- Forked from: s-0\n";
    assert_eq!(Markdown::default().begin(head.clone()), expected);
    // issue 28, RA10: without a title, the first prompt is the heading
    let untitled = ExportHead { title: Some(" ".to_owned()), ..head };
    let (mut markdown, mut out) = (Markdown::default(), String::new());
    assert_eq!(markdown.begin(untitled.clone()), "");
    for (kind, payload) in
        [(2, "{}"), (3, r#"{"turn":1,"by":"c","prompt":[{"type":"text","text":"do\nit"}]}"#)]
    {
        markdown.see(&Event::read(kind, payload.as_bytes()).expect("its own shape"), &mut out);
    }
    assert!(
        out.starts_with("# do it\n\n- Session: s\n") && out.ends_with("\n\n## User (c)\n\ndo\nit\n"),
        "{out}"
    );
    let mut empty = Markdown::default();
    empty.begin(ExportHead { title: None, ..untitled });
    assert!(empty.finish().starts_with("# Session s\n"));
}

// contract 7.3: what is held of a session is bounded, whatever its agent does
#[test]
fn what_stays_open_is_bounded() {
    let (mut markdown, mut out) = (Markdown::default(), String::new());
    for number in 0..3 * OPEN {
        for (kind, payload) in [
            call(&number.to_string(), ""),
            stored(12, &ASKED.replace("\"request\":4", &format!("\"request\":{number}"))),
        ] {
            markdown.see(&Event::read(kind, payload.as_bytes()).expect("its own shape"), &mut out);
        }
    }
    assert_eq!((markdown.calls.len(), markdown.questions.len()), (OPEN, OPEN));
}

fn wrote(id: &str, output: &str) -> (u16, String) {
    stored(17, &format!(r#"{{"terminalId":"{id}","output":"{output}"}}"#))
}

fn exited(id: &str, rest: &str) -> (u16, String) {
    stored(17, &format!(r#"{{"terminalId":"{id}",{rest}}}"#))
}

const CODE_1: &str = r#""state":"finished","exitStatus":{"exitCode":1,"signal":null},"finalOutput":{"text":"b\n","truncated":true}"#;
const KILLED: &str = r#""state":"killed","exitStatus":{"exitCode":null,"signal":"SIGTERM"},"finalOutput":{"text":"","truncated":false}"#;
const DIFF: &str = r#""content":[{"type":"diff","path":"/w/a","oldText":"1\n","newText":"2\n"}]"#;
const SHOWN_DIFF: &str = "```diff\n--- /w/a\n+++ /w/a\n@@ -1,1 +1,1 @@\n-1\n+2\n```\n";

// issue 28, RA10: with details the page has changes of files and outputs of tool calls and terminals, each once; without, none
#[test]
fn details_are_below_their_tool_calls() {
    let end = stored(6, r#"{"turn":1,"stopReason":"end_turn"}"#);
    let done = |title: &str| format!("\n- Tool call: {title}: completed\n");
    let of = |id: &str, rest: &str| call(id, &format!(r#","title":"t","status":"completed",{rest}"#));
    for (events, expected) in [
        (vec![of("1", DIFF)], format!("{}\n{SHOWN_DIFF}", done("t"))),
        // What comes later has no change in it, and takes none away.
        (
            vec![
                call("1", &format!(r#","title":"t",{DIFF}"#)),
                of("1", r#""content":[{"type":"content","content":{"type":"text","text":"ok"}}]"#),
                said("x"),
            ],
            format!("{}\n{SHOWN_DIFF}\n```\nok\n```\n\n## Agent\n\nx\n", done("t")),
        ),
        (
            vec![
                of("1", r#""content":[],"rawOutput":"```\nout\n```""#),
                of("2", r#""rawOutput":{"code":7}"#),
                of("3", &format!(r#""rawOutput":"again",{DIFF}"#)),
                of("4", r#""content":7,"rawOutput":null"#),
            ],
            format!(
                "{0}\n````\n```\nout\n```\n````\n{0}\n```json\n{{\"code\":7}}\n```\n{0}\n{SHOWN_DIFF}{0}",
                done("t")
            ),
        ),
        (
            vec![
                call("1", r#","title":"t","content":[{"type":"terminal","terminalId":"t-1"}]"#),
                wrote("t-1", "a\\nb\\n"),
                exited("t-1", CODE_1),
                wrote("t-2", "other"),
                call("1", r#","status":"completed""#),
                end.clone(),
                exited("t-2", KILLED),
                end.clone(),
                wrote("t-3", "x"),
            ],
            format!(
                "{}- Terminal t-1: exit code 1; the end of its output\n\n```\nb\n```\n\n\
                 - Terminal t-2: killed, SIGTERM\n- Terminal t-3: runs\n\n```\nx\n```\n",
                done("t")
            ),
        ),
        // One that runs when its call is over is told when it is over itself.
        (
            vec![
                of("1", r#""content":[{"type":"terminal","terminalId":"t-1"}]"#),
                end.clone(),
                exited("t-1", CODE_1),
                said("x"),
                end,
            ],
            format!(
                "{}\n## Agent\n\nx\n\n- Terminal t-1: exit code 1; the end of its output\n\n```\nb\n```\n",
                done("t")
            ),
        ),
    ] {
        assert_eq!(written(&events, true), expected, "{events:?}");
        let without = written(&events, false);
        assert!(!without.contains("```") && !without.contains("Terminal"), "{without}");
    }
}

// contract 7.3: what is held of a session is bounded, also by what its tool calls and terminals brought
#[test]
fn what_details_hold_is_bounded() {
    let (mut markdown, mut out) = (Markdown::new(true), String::new());
    let text = "x".repeat(1 << 20);
    for number in 0..12 {
        for (kind, payload) in [
            call(
                &format!("c-{number}"),
                &format!(r#","content":[{{"type":"content","content":{{"type":"text","text":"{text}"}}}}]"#),
            ),
            wrote(&format!("t-{number}"), &text),
        ] {
            markdown.see(&Event::read(kind, payload.as_bytes()).expect("its own shape"), &mut out);
            assert!(markdown.held() <= HELD, "{}", markdown.held());
        }
    }
    assert!(out.len() + markdown.finish().len() > 24 << 20, "all of it is told");
    let mut many = Markdown::new(true);
    for number in 0..2 * OPEN {
        let (kind, payload) = wrote(&number.to_string(), "x");
        many.see(&Event::read(kind, payload.as_bytes()).expect("its own shape"), &mut out);
    }
    assert_eq!(many.terminals.len(), OPEN);
}
