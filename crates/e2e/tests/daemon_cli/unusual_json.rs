//! Messages of agents that no value can hold: numbers out of range, and thousands of levels of nesting.

use crate::cli::{both, done, json, run};
use acpd_e2e::{Exit, Scratch, taking_shell_agent, until};

/// The levels of nesting.
const LEVELS: usize = 5000;

/// Agents whose every message has such metadata: one that ends its turn after an answer, and the names of both kinds.
fn scratch() -> Scratch {
    let deep = format!("{}{}", "[".repeat(LEVELS), "]".repeat(LEVELS));
    let agent = |meta: &str| {
        let member = format!("\"_meta\":{{\"odd\":{meta}}}");
        let update = |update: &str| {
            format!(
                "echo '{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"a\",\"update\":{{{update},{member}}}}}}}'\n"
            )
        };
        let said = |text: &str| {
            update(&format!(
                "\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"{text}\"}}"
            ))
        };
        let script = [
            format!("take; answer '{{\"protocolVersion\":1,\"agentCapabilities\":{{}},{member}}}'\n"),
            format!("take; answer '{{\"sessionId\":\"a\",\"modes\":{{\"currentModeId\":5}},{member}}}'\n"),
            "take; prompt=$id\n".to_owned(),
            said("greengage "),
            update("\"sessionUpdate\":\"session_info_update\",\"title\":\"Greengages\""),
            update(
                "\"sessionUpdate\":\"usage_update\",\"used\":5,\"size\":10,\"cost\":{\"amount\":0.5,\"currency\":\"USD\"}",
            ),
            format!(
                "echo '{{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"session/request_permission\",\"params\":{{\"sessionId\":\"a\",\"toolCall\":{{\"toolCallId\":\"t\",\"title\":\"Boil it\",\"kind\":\"edit\"}},\"options\":[{{\"optionId\":\"yes\",\"name\":\"Boil\",\"kind\":\"allow_once\"}},{{\"optionId\":\"no\",\"name\":\"Stop\",\"kind\":\"reject_once\"}}],{member}}}}}'\n"
            ),
            "take; case \"$line\" in *'\"yes\"'*)\n".to_owned(),
            said("boiled"),
            ";; *)\n".to_owned(),
            said("raw"),
            ";; esac\n".to_owned(),
            format!("id=$prompt; answer '{{\"stopReason\":\"end_turn\",{member}}}'\ntake\n"),
        ];
        taking_shell_agent(&script.concat())
    };
    Scratch::new().shell("huge", &agent("1e400")).shell("deep", &agent(&deep))
}

/// The only session of the agent.
fn session(scratch: &Scratch, agent: &str, flags: &[&str]) -> String {
    let listed = json(scratch, &[&["sessions", "list"], flags].concat());
    let all = listed["sessions"].as_array().expect("a list");
    let of_agent = |session: &&serde_json::Value| session["agent"] == agent;
    let one = all.iter().find(of_agent).unwrap_or_else(|| panic!("{agent} has none: {listed}"));
    one["sessionId"].as_str().expect("an id").to_owned()
}

// FR-8, contract 7.1: what says an agent is heard, with a host inside and with a daemon, and a session that it begins is used
// quirk unusual-meta (agents that number without bounds): it is passed on as it came, and acpd reads the rest of the message
#[test]
fn what_has_odd_metadata_is_shown_and_answered() {
    let scratch = scratch();
    both(&scratch, |flags| {
        let words =
            ["run", "--format", "quiet", "--permission-mode", "bypassPermissions", "quirk unusual-meta"];
        let (exit, out, err) = run(&scratch, &[&words[..1], flags, &words[1..]].concat());
        assert!(exit == Exit::Code(0) && out.starts_with("greengage compote"), "{out}{err}");
        for agent in ["huge", "deep"] {
            let words =
                ["run", "--agent", agent, "--format", "quiet", "--permission-mode", "acceptEdits", "go"];
            let (exit, out, err) = run(&scratch, &[&words[..1], flags, &words[1..]].concat());
            assert_eq!((exit, out.trim_end()), (Exit::Code(0), "greengage boiled"), "{agent}: {err}");
            // Nobody can be asked, which is said.
            let words = ["run", "--agent", agent, "go"];
            let (_, out, err) = run(&scratch, &[&words[..1], flags, &words[1..]].concat());
            assert!(err.contains("refused: edit Boil it (Stop)"), "{agent}: {err}");
            assert_eq!(out.trim_end(), "greengage raw", "{agent}: {err}");
        }
    });
    let mut daemon = scratch.serve();
    for agent in ["huge", "deep"] {
        let id = session(&scratch, agent, &[]);
        let shown = json(&scratch, &["sessions", "show", &id]);
        assert_eq!(
            (&shown["title"], &shown["usage"]["cost"]["USD"]),
            (&"Greengages".into(), &0.5.into()),
            "{shown}"
        );
        let events = done(&scratch, &["sessions", "events", &id]);
        assert!(events.contains("greengage") && events.contains("Boil it [Boil, Stop]"), "{events}");
        assert!(!events.contains(" ? "), "{events}");
    }
    daemon.stop();
}

// FR-8, contract 7.1: a question with such metadata is shown and answered from the command line, of a session that runs alone
// quirk unusual-meta
#[test]
fn a_question_with_odd_metadata_is_answered() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    for agent in ["huge", "deep"] {
        let id = done(&scratch, &["run", "--agent", agent, "--detach", "go"]).trim_end().to_owned();
        until("a question", || {
            (json(&scratch, &["sessions", "show", &id])["state"] == "waiting").then_some(())
        });
        let asked = done(&scratch, &["sessions", "answer", &id]);
        assert!(asked.contains("Boil it") && asked.contains("yes"), "{agent}: {asked}");
        done(&scratch, &["sessions", "answer", &id, "yes"]);
        let events = done(&scratch, &["sessions", "events", &id, "--follow"]);
        assert!(events.contains("boiled"), "{agent}: {events}");
    }
    daemon.stop();
}

// contract 7.3: what was recorded is exported, and what was exported can be taken over, whatever an agent has sent
// quirk unusual-meta
#[test]
fn a_session_with_odd_metadata_moves() {
    let scratch = scratch();
    let mut daemon = scratch.serve();
    for agent in ["huge", "deep"] {
        done(&scratch, &["run", "--agent", agent, "--permission-mode", "acceptEdits", "go"]);
        let id = session(&scratch, agent, &[]);
        let file = scratch.path("session.jsonl");
        let whole = done(&scratch, &["sessions", "export", &id]);
        std::fs::write(&file, &whole).expect("there is room");
        done(&scratch, &["sessions", "delete", &id]);
        done(&scratch, &["sessions", "import", file.to_str().expect("a text")]);
        assert_eq!(done(&scratch, &["sessions", "export", &id]), whole, "{agent}");
    }
    daemon.stop();
}
