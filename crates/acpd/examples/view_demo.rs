//! Shows what `acpd run` looks like: `cargo run --example view_demo [FILE]`, where FILE has one ACP update per
//! line, as `acpd run --json` prints them. Without FILE, a turn that has a bit of everything and ends badly.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use acpd::view::{Failed, Screen, Step, View};
use serde_json::json;

const TURN: &str = r##"
{"sessionUpdate":"available_commands_update","availableCommands":[]}
{"sessionUpdate":"current_mode_update","currentModeId":"build"}
{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"The user wants a greeting.\nI look at "}}
{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"the file first."}}
{"sessionUpdate":"plan","entries":[{"content":"Read hello.txt","status":"in_progress"},{"content":"Write the greeting","status":"pending"},{"content":"Run the tests","status":"pending"}]}
{"sessionUpdate":"agent_message_chunk","messageId":"1","content":{"type":"text","text":"I will read "}}
{"sessionUpdate":"session_info_update","title":"Greet the world"}
{"sessionUpdate":"agent_message_chunk","messageId":"1","content":{"type":"text","text":"the file and then change it."}}
{"sessionUpdate":"tool_call","toolCallId":"a","title":"Read hello.txt","kind":"read","status":"pending","locations":[{"path":"/src/hello.txt","line":3}]}
{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed"}
{"sessionUpdate":"plan","entries":[{"content":"Read hello.txt","status":"completed"},{"content":"Write the greeting","status":"in_progress"},{"content":"Run the tests","status":"pending"}]}
{"sessionUpdate":"tool_call","toolCallId":"b","title":"write","kind":"edit","status":"pending"}
{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"in_progress","title":"Write the greeting","locations":[{"path":"/src/hello.txt"}],"content":[{"type":"diff","path":"/src/hello.txt","oldText":"# Hi\n\nHello.\nBye.\n","newText":"# Hi\n\nHello, world.\nHow are you?\nBye.\n"}]}
{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"completed"}
{"sessionUpdate":"tool_call","toolCallId":"c","title":"Terminal","kind":"execute","status":"pending","rawInput":{}}
{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"cargo test --workspace"}
{"sessionUpdate":"notice","severity":"warning","title":"rate limit","description":"retrying in 3 s"}
{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed","content":[{"type":"content","content":{"type":"text","text":"```\nerror: could not compile `hello`\n```"}}]}
{"sessionUpdate":"usage_update","used":18250,"size":200000,"cost":{"amount":0.0312,"currency":"USD"}}
{"sessionUpdate":"surprise_update","x":1}
{"sessionUpdate":"agent_message_chunk","messageId":"2","content":{"type":"text","text":"The tests do not compile:\n\n- `hello` is missing\n- \u001b[31mand this is not red"}}
{"sessionUpdate":"tool_call","toolCallId":"d","title":"sleep 1000","kind":"execute","status":"in_progress"}
"##;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let turn = match std::env::args_os().nth(1) {
        Some(file) => std::fs::read_to_string(file)?,
        None => TURN.to_owned(),
    };
    let mut view = View::new(io::stdout(), io::stderr(), Screen::of_process(), Some(PathBuf::from("/src")));
    view.starting("opencode")?;
    view.tick(Duration::from_secs(1))?;
    let info = json!({"name": "OpenCode", "version": "1.18.33"});
    view.started(Some(&info), Duration::from_millis(1540))?;
    let mut elapsed = Duration::ZERO;
    for update in turn.lines().filter(|line| !line.is_empty()) {
        view.update(update)?;
        elapsed += Duration::from_millis(700);
        view.tick(elapsed)?;
    }
    if turn == TURN {
        let head: String = (1..=50).map(|n| format!("crash line {n}\n")).collect();
        let tail: String = (201..=250).map(|n| format!("crash line {n}\n")).collect();
        let info = json!({
            "reason": "error", "terminatedBy": "agent", "cause": "agent_crash", "exitCode": 1,
            "message": "agent exited with exit status: 1",
            "stderr": {"head": head, "tail": tail, "truncated": true, "totalLines": 250},
        });
        let message = "agent exited with exit status: 1";
        let failed = Failed {
            step: Step::Turn,
            message,
            details: None,
            ended: Some(&info),
            logins: &[],
            command: None,
        };
        view.failed(&failed, elapsed)?;
    } else {
        view.turn_ended("end_turn", elapsed)?;
    }
    view.interrupted()?;
    Ok(())
}
