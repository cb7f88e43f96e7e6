//! What `acpd run` prints for programs (contract 7.1): JSON lines, and the answer alone.

use acpd_e2e::{Exit, Scratch, cut_off, run_lines};
use serde_json::{Value, json};

/// `acpd run`, hosting by itself.
fn run(scratch: &Scratch, args: &[&str]) -> (Exit, String, String) {
    let (state, config) = (scratch.state(), scratch.config_file());
    let places = [state.to_str(), config.to_str()].map(|path| path.expect("scratch paths are text"));
    let mut all = vec!["run", "--state-dir", places[0], "--config", places[1]];
    all.extend(args);
    scratch.run(&all)
}

fn types(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["type"].as_str().expect("a type")).collect()
}

// contract 7.1: the session, updates, permissions and terminals with their numbers, and the result
#[test]
fn lines_tell_a_turn() {
    let scratch = Scratch::new();
    let prompt = "plan a\nask edit Write it\nrun echo hi\nhello";
    for flag in ["--json", "--format=json"] {
        let (exit, out, err) = run(&scratch, &[flag, prompt]);
        assert_eq!(exit, Exit::Code(0), "{err}");
        let lines = run_lines(&out);
        let first = &lines[0];
        assert_eq!((&first["type"], &first["agent"]), (&json!("session"), &json!("example")));
        let seqs: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
        assert!(seqs.is_sorted_by(|a, b| a < b) && seqs.len() == lines.len() - 2, "{seqs:?}");
        let updates = lines.iter().filter_map(|line| line["update"]["sessionUpdate"].as_str());
        let expected = ["plan", "tool_call", "tool_call_update", "agent_message_chunk", "tool_call"];
        assert_eq!(updates.take(5).collect::<Vec<_>>(), expected);
        let of = |name: &str| -> Vec<&Value> { lines.iter().filter(|line| line["type"] == name).collect() };
        let [permission] = of("permission")[..] else { panic!("one permission was asked for: {out}") };
        assert_eq!(permission["request"]["toolCall"]["title"], "Write it");
        assert_eq!(permission["outcome"], json!({"outcome": "selected", "optionId": "reject-once"}));
        assert_eq!(permission["by"], json!({"client": "acpd run"}));
        let [output, end] = of("terminal")[..] else { panic!("a command wrote something: {out}") };
        assert_eq!((&output["output"], &end["exitStatus"]["exitCode"]), (&json!("hi\n"), &json!(0)));
        let result = &lines[lines.len() - 1];
        assert_eq!((&result["stopReason"], &result["sessionId"]), (&json!("end_turn"), &first["sessionId"]));
    }
}

// contract 7.1: the result is the last line whatever happens, and there is one when not even an agent was started
#[test]
fn there_is_always_a_result() {
    let scratch = Scratch::new();
    for (args, code, expected, stop, words) in [
        (vec!["hi\nexit 7"], 1, vec!["session", "update", "result"], Value::Null, "the agent ended"),
        (vec!["stop-reason refusal"], 1, vec!["session", "result"], json!("refusal"), ""),
        (vec!["stream x"], 1, vec!["session", "result"], Value::Null, "usage is"),
        (
            vec!["--timeout", "TIME", "hi\nhang"],
            3,
            vec!["session", "update", "result"],
            json!("cancelled"),
            "",
        ),
        (vec!["--agent", "nobody", "hi"], 4, vec!["result"], Value::Null, "no agent is called"),
        (vec!["--connect", "http://127.0.0.1:1", "hi"], 4, vec!["result"], Value::Null, "no daemon answers"),
    ] {
        let timed =
            |time| args.iter().map(|word| if *word == "TIME" { time } else { *word }).collect::<Vec<_>>();
        let (_, (exit, out, err)) = cut_off(
            |time| run(&scratch, &[&["--json"], &timed(time)[..]].concat()),
            |(_, out, _)| types(&run_lines(out)) == expected,
        );
        assert_eq!(exit, Exit::Code(code), "{args:?}: {err}");
        let lines = run_lines(&out);
        assert_eq!(types(&lines), expected, "{args:?}");
        let result = &lines[lines.len() - 1];
        assert_eq!(result["stopReason"], stop, "{args:?}: {result}");
        let message = result["error"]["message"].as_str().unwrap_or_default();
        assert!(
            message.contains(words) && result["error"].is_null() == words.is_empty(),
            "{args:?}: {result}"
        );
    }
    // contract 1.2: the record is there once.
    let (_, out, _) = run(&scratch, &["--json", "exit 7"]);
    let result = run_lines(&out).pop().expect("a result");
    assert_eq!((&result["terminationInfo"]["exitCode"], &result["error"]["data"]), (&json!(7), &Value::Null));
}

// contract 7.1: quiet has the answer on stdout and nothing on stderr, but what went wrong
#[test]
fn quiet_has_only_the_answer() {
    let scratch = Scratch::new();
    let (exit, out, err) =
        run(&scratch, &["--format", "quiet", "think hard\ntool look\nplan a,b\nhello wide world"]);
    assert_eq!((exit, out.as_str(), err.as_str()), (Exit::Code(0), "hello wide world\n", ""));
    let (exit, out, err) = run(&scratch, &["--format", "quiet", "hello\nexit 7"]);
    assert_eq!((exit, out.as_str(), err.lines().count()), (Exit::Code(1), "hello\n", 1), "{err}");
    assert!(err.starts_with("error: agent example: ") && err.contains("exit status: 7"), "{err}");
    let (exit, out, err) = run(&scratch, &["--format", "quiet", "--json", "hello"]);
    assert!((exit, out.as_str()) == (Exit::Code(2), "") && err.contains("--format"), "{err}");
}
