//! Agents that run out of memory, each for real (contract 1.2, cause `out_of_memory`).
//!
//! Not here: the kernel's own killing, which needs a control group; its counter is tested where it is read.

use crate::asking::{termination, until_ended};
use acpd_e2e::{Scratch, acpd, taking_shell_agent};
use serde_json::{Value, json};

/// Prompts an agent that dies of the prompt; how its end was told, and the record.
fn dies(scratch: &Scratch, agent: &str, prompt: &str) -> (Value, Value) {
    let (mut client, session) = scratch.session(agent);
    let asked = client.prompt(&session, prompt);
    let error = client.error(&asked);
    let told = until_ended(&mut client, &session, 1);
    let info = termination(&mut client, &session);
    assert_eq!(error["data"]["terminationInfo"], info);
    client.finish();
    (told, info)
}

/// A Node.js program that answers as an agent must and lets its heap grow when it is prompted.
const HEAP: &str = r#"require("readline").createInterface({input: process.stdin}).on("line", line => {
  const {id, method} = JSON.parse(line);
  const answer = result => console.log(JSON.stringify({jsonrpc: "2.0", id, result}));
  if (method === "initialize") answer({protocolVersion: 1, agentCapabilities: {}});
  else if (method === "session/new") answer({sessionId: "node-1"});
  else { const all = []; for (;;) all.push(new Array(1000).fill("x" + all.length)); }
})"#;

// contract 1.2, TM-1: a runtime that cannot get memory says so and aborts; that is told from any other crash
#[test]
fn a_runtime_that_gives_up_ran_out_of_memory() {
    let limited = format!("ulimit -v 1000000; exec '{}' example-agent", acpd().display());
    let mut scratch = Scratch::new().shell("limited", &["-c".to_owned(), limited]);
    let mut cases = vec![("limited", "big 2000000000", "memory allocation of ")];
    if scratch.finds("node") {
        let args = ["--max-old-space-size=30", "-e", HEAP].map(str::to_owned);
        scratch = scratch.agent("node", "node", &args);
        cases.push(("node", "x", "FATAL ERROR: "));
    }
    for (agent, prompt, words) in cases {
        let (told, info) = dies(&scratch, agent, prompt);
        let message = info["message"].as_str().unwrap_or_default();
        let expected = format!("agent was killed by SIGABRT, out of memory: {words}");
        assert!(message.starts_with(&expected), "{agent}: {info:#}");
        for told in [&told, &info] {
            assert_eq!((&told["reason"], &told["signal"]), (&json!("error"), &json!("SIGABRT")));
            assert_eq!((told.get("exit_code"), told.get("exitCode")), (None, None));
            assert_eq!(told["message"], message);
        }
        assert_eq!((&info["terminatedBy"], &info["cause"]), (&json!("agent"), &json!("out_of_memory")));
        // The exact cause is not part of the basic shape.
        assert_eq!(told.get("cause"), None);
    }
}

// contract 1.2: before `initialize` too
#[test]
fn a_start_without_memory_is_told() {
    let script = "echo 'memory allocation of 8 bytes failed' >&2; kill -ABRT $$";
    let scratch = Scratch::new().shell("poor", &taking_shell_agent(script));
    let mut client = scratch.stdio("poor");
    let error = client.refused("initialize", &json!({"protocolVersion": 1}));
    let info = &error["data"]["terminationInfo"];
    assert_eq!((&info["cause"], &info["signal"]), (&json!("out_of_memory"), &json!("SIGABRT")), "{error}");
    client.finish();
}

// contract 1.2: the same death without the words, and the same words without dying of them
#[test]
fn other_deaths_are_crashes() {
    let scratch = Scratch::new();
    for (prompt, cause) in [
        ("signal ABRT", "agent_crash"),
        ("signal KILL", "agent_crash"),
        ("exit 137", "agent_crash"),
        ("stderr 3\nexit 134", "agent_crash"),
    ] {
        let (_, info) = dies(&scratch, "example", prompt);
        assert_eq!(info["cause"], cause, "{prompt}");
    }
}
