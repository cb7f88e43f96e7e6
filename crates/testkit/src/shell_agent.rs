//! Agents of a few lines of shell, for what no well-built agent can be asked to do.

/// An agent as `sh -c` arguments that answers `initialize`, `session/new` and then runs `body`. In it, `take` reads
/// a request (into `$line`, its id into `$id`), `answer JSON` answers it, and `update TEXT` sends a chunk.
pub fn shell_agent(body: &str) -> Vec<String> {
    taking_shell_agent(&format!(
        "take; answer '{{\"protocolVersion\":1,\"agentCapabilities\":{{}}}}'\n\
         take; answer '{{\"sessionId\":\"shell-1\"}}'\n{body}"
    ))
}

/// As [`shell_agent`], with nothing answered before `body`.
pub fn taking_shell_agent(body: &str) -> Vec<String> {
    let script = format!("{PREAMBLE}{body}\n");
    vec!["-c".to_owned(), script]
}

const PREAMBLE: &str = r#"
take() { IFS= read -r line || exit 0; id=${line#*'"id":'}; id=${id%%[,\}]*}; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
update() {
    printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"shell-1","update":'
    printf '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$1"
}
"#;
