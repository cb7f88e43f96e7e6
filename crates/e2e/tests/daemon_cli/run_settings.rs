//! What `acpd run` sets a session to (contract 7.1), with a host inside and with a daemon: model, mode, options, MCP servers,
//! and an agent that is a command.

use crate::cli::{both, fails, json, run};
use acpd_e2e::{Exit, Scratch, acpd};

// contract 7.1: --model, --mode and --option by the agent's own ids and names; --session sets a session that is there
#[test]
fn a_session_is_set_before_its_prompt() {
    let scratch = Scratch::new();
    both(&scratch, |place| {
        let flags = ["--model", "Example Large", "--mode", "plan", "--option", "shout=on", "hello"];
        let (exit, out, err) = run(&scratch, &[&["run"], place, &flags].concat());
        assert_eq!((exit, out.as_str()), (Exit::Code(0), "HELLO\n"), "{err}");
        if place.is_empty() {
            let listed = json(&scratch, &["sessions", "list"]);
            let session = &listed["sessions"][0];
            assert_eq!(
                (&session["model"], &session["mode"]),
                (&"example-large".into(), &"plan".into()),
                "{listed}"
            );
        }
        let (exit, out, err) = run(
            &scratch,
            &[&["run", "-c"], place, &["--option", "shout=no", "-m", "example-large", "hello"]].concat(),
        );
        assert_eq!((exit, out.as_str()), (Exit::Code(0), "hello\n"), "{err}");
    });
}

// contract 7.1: listed when wrong, with 2; the prompt is not sent and nothing is left running
#[test]
fn what_the_agent_does_not_offer_is_listed() {
    let scratch = Scratch::new();
    both(&scratch, |place| {
        for (flags, words) in [
            (
                ["--model", "example-lage"],
                "error: --model example-lage: the agent has no such value; it has example-small (Example Small), \
                 example-large (Example Large); did you mean example-large?\n",
            ),
            (["--option", "loud=1"], "--option loud=1: the agent has no such option; it has model, shout"),
            (["--option", "loud"], "ID=VALUE is required, such as thought_level=high"),
            (["--mode", "dream"], "it has default, plan"),
            (["--command", "'sh"], "a quote has no end"),
        ] {
            let (exit, out, err) = run(&scratch, &[&["run"], place, &flags, &["crash"]].concat());
            assert_eq!((exit, out.as_str()), (Exit::Code(2), ""), "{flags:?}: {err}");
            assert!(err.contains(words), "{flags:?}: {err}");
        }
        if place.is_empty() {
            let listed = json(&scratch, &["sessions", "list"]);
            let sessions = listed["sessions"].as_array().expect("a list");
            // issue 28, C8: nor is one left that nothing was said in
            assert!(sessions.is_empty(), "{listed}");
        }
    });
}

// contract 7.1: --mcp FILE, the mcpServers object that editors use; what the agent takes no servers of is refused with 2
#[test]
fn servers_of_an_editor_reach_the_agent() {
    let scratch = Scratch::new();
    let file = scratch.path("mcp.json");
    let file = file.to_str().expect("text");
    both(&scratch, |place| {
        let servers = r#"{"mcpServers": {"files": {"command": "files", "args": ["-v"], "env": {"A": "b"}}}}"#;
        std::fs::write(file, servers).expect("a file");
        let (exit, out, err) = run(&scratch, &[&["run"], place, &["--mcp", file, "params"]].concat());
        assert_eq!(exit, Exit::Code(0), "{err}");
        let server = r#"{"name":"files","command":"files","args":["-v"],"env":[{"name":"A","value":"b"}]}"#;
        assert!(out.contains(server), "{out}");
        for (servers, words) in [
            (r#"{"mcpServers": {"x": {}}}"#, "mcpServers.x: command or url is required"),
            (r#"{"mcpServers": {"x": {"type": "sse", "url": "http://x"}}}"#, "takes no MCP servers over sse"),
        ] {
            std::fs::write(file, servers).expect("a file");
            let (exit, out, err) = run(&scratch, &[&["run"], place, &["--mcp", file, "params"]].concat());
            assert_eq!((exit, out.as_str()), (Exit::Code(2), ""), "{err}");
            assert!(err.contains(words), "{err}");
        }
    });
}

// contract 7.1: --command 'PROGRAM ARGS', an agent without an entry; it implies --embedded, also beside a daemon, and is
// exit 2 with --connect
#[test]
fn an_agent_may_be_a_command() {
    let scratch = Scratch::new();
    let daemon = scratch.serve();
    let link = scratch.path("an agent");
    std::os::unix::fs::symlink(acpd(), &link).expect("a link");
    let named = scratch.path("other");
    std::os::unix::fs::symlink(acpd(), &named).expect("a link");
    let command = format!("'{}' example-agent --without fork", named.display());
    for flags in [vec!["run", "--command", &command], vec!["run", "-c", "--command", &command]] {
        let (exit, out, err) = run(&scratch, &[&flags[..], &["hello"]].concat());
        assert_eq!((exit, out.as_str()), (Exit::Code(0), "hello\n"), "{err}");
    }
    let listed = json(&scratch, &["sessions", "list"]);
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed["sessions"][0]["agent"], "other");
    let odd = format!("'{}' example-agent", link.display());
    let (exit, _, err) = run(&scratch, &["run", "--command", &odd, "hello"]);
    assert_eq!(exit, Exit::Code(2), "{err}");
    assert!(err.contains("\"an agent\" is not a name"), "{err}");
    let url = format!("http://{}", daemon.address());
    let told = fails(&scratch, 2, &["run", "--connect", &url, "--command", &command, "hello"]);
    assert!(told.contains("--connect"), "{told}");
    let (exit, _, err) = run(&scratch, &["run", "--command", "no-such-program acp", "hello"]);
    assert_eq!(exit, Exit::Code(1), "{err}");
    assert!(err.contains("no-such-program"), "{err}");
}
