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
    let (mut markdown, mut out) = (Markdown::default(), String::new());
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
