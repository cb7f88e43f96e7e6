//! How a turn and a session ended, in words, and what can be done about a bad end.

use std::time::Duration;

use serde_json::Value;

use super::facts::grouped;
use super::paint::Paint;
use crate::clean::{line, verbatim};

const WIDTH: usize = 300;
/// Lines of stderr that are shown from each end; the record has up to 50.
const STDERR_HEAD: usize = 8;
const STDERR_TAIL: usize = 12;

/// A duration as a person says it: `340 ms`, `12.3 s`, `2 m 05 s`.
pub(super) fn spoken(took: Duration) -> String {
    let millis = took.as_millis();
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => format!("{} m {:02} s", millis / 60_000, millis % 60_000 / 1_000),
    }
}

/// `4 tool calls, 1 failed`
pub(super) fn spoken_calls(total: usize, failed: usize) -> Option<String> {
    let calls = match total {
        0 => return None,
        1 => "1 tool call".to_owned(),
        total => format!("{} tool calls", grouped(total as u64)),
    };
    Some(if failed > 0 { format!("{calls}, {failed} failed") } else { calls })
}

/// The last line of a turn, and why if it was not the usual end; `is_cut` where its client had wanted an end before.
pub(super) fn turn(stop_reason: &str, is_cut: bool, facts: &[String], paint: Paint) -> Vec<String> {
    let why = match stop_reason {
        // Who cancelled it was told so.
        "end_turn" | "cancelled" => None,
        "max_tokens" => Some("the model reached its token limit; the answer may be incomplete"),
        "max_turn_requests" => Some("the agent reached its limit of model requests for one turn"),
        "refusal" => Some("the agent refused to go on"),
        _ => Some("the agent gave a reason that acpd does not know"),
    };
    let mark = if stop_reason == "end_turn" && !is_cut { paint.good("✓") } else { paint.notable("!") };
    let said = std::iter::once(line(stop_reason, 60)).chain(facts.iter().cloned()).collect::<Vec<_>>();
    let mut lines = vec![format!("{mark} {}", paint.dim(said.join(" · ")))];
    lines.extend(why.map(|why| format!("  {why}")));
    lines
}

/// The end of a session from its `terminationInfo`: one line when all is well, the record and a hint when not. Its
/// [`stderr`] belongs before it, so that what went wrong and what to do are the last lines on the screen.
/// `told` is the error that was shown last; it is not said twice.
pub(super) fn session(info: &Value, agent: &str, told: Option<&str>, paint: Paint) -> Vec<String> {
    let text = |key: &str| info[key].as_str().map(|text| line(text, WIDTH));
    let by = text("terminatedBy").unwrap_or_else(|| "?".to_owned());
    match text("reason").as_deref() {
        Some("completed") => vec![paint.dim(format_args!("session completed by {by}"))],
        Some("terminated") => {
            let who = text("initiator").unwrap_or(by);
            vec![format!("{} session terminated by {who}", paint.notable("!"))]
        }
        reason => failure(info, reason.unwrap_or("ended"), &by, agent, told, paint),
    }
}

fn failure(
    info: &Value,
    reason: &str,
    by: &str,
    agent: &str,
    told: Option<&str>,
    paint: Paint,
) -> Vec<String> {
    let text = |key: &str| info[key].as_str().map(|text| line(text, WIDTH));
    let message = text("message").unwrap_or_else(|| "no message".to_owned());
    let mut lines = Vec::new();
    // Either may have been cut.
    let is_told = |told: &str| {
        told.contains(message.trim_end_matches('…')) || message.starts_with(told.trim_end_matches('…'))
    };
    if !told.is_some_and(is_told) {
        let said = paint.bold(format_args!("the session failed: {message}"));
        lines.push(format!("{} {said}", paint.bad("✗")));
    }
    let mut facts = vec![format!("session: {reason} by {by}")];
    facts.extend(text("cause").map(|cause| cause.replace('_', " ")));
    facts.extend(info["exitCode"].as_i64().map(|code| format!("exit code {code}")));
    facts.extend(text("signal").map(|signal| format!("killed by {signal}")));
    if info["leaked"] == true {
        facts.push("processes it left behind were killed".to_owned());
    }
    lines.push(format!("  {}", paint.dim(facts.join(" · "))));
    lines.extend(hint(info, agent).map(|hint| format!("  {} {hint}", paint.kind("next:"))));
    lines
}

/// How to log in: the command, and the ways as the agent says them.
pub(super) fn logins(ways: &[String], command: Option<&str>, agent: &str, paint: Paint) -> Vec<String> {
    let next = paint.kind("next:");
    match (command, ways) {
        (Some(command), []) => vec![format!("  {next} {command}, then try again")],
        (None, []) => vec![format!(
            "  {next} log in with the agent's own program, then try again: {agent} names no way"
        )],
        (Some(command), [way]) => vec![format!("  {next} {command}, then try again: {way}")],
        (None, [way]) => vec![format!("  {next} log in, then try again: {way}")],
        (command, ways) => {
            let log_in = command.unwrap_or("log in");
            let head = format!("  {next} {log_in}, in one of the ways that {agent} names, then try again:");
            std::iter::once(head).chain(ways.iter().map(|way| format!("    {way}"))).collect()
        }
    }
}

/// The first and last lines of the stderr of a process, from its `terminationInfo`.
pub(super) fn stderr(info: &Value, paint: Paint) -> Vec<String> {
    let mut lines = stderr_lines(&info["stderr"], [STDERR_HEAD, STDERR_TAIL], WIDTH, paint);
    if let Some(head) = lines.first_mut() {
        *head = format!("  {}", paint.dim(format_args!("stderr of the agent, {head}:")));
    }
    lines
}

/// How many lines of stderr there were, and behind it at most so many of the first and of the last; nothing without any.
pub(super) fn stderr_lines(stderr: &Value, most: [usize; 2], width: usize, paint: Paint) -> Vec<String> {
    let part = |key: &str| -> Vec<&str> { stderr[key].as_str().unwrap_or_default().lines().collect() };
    let (head, tail) = (part("head"), part("tail"));
    let (first, last) = head.split_at(head.len().min(most[0]));
    // Without a tail, the head is all there was.
    let last = if tail.is_empty() { last } else { tail.as_slice() };
    let last = &last[last.len().saturating_sub(most[1])..];
    let told = (first.len() + last.len()) as u64;
    let total = stderr["totalLines"].as_u64().unwrap_or(told).max(told);
    if total == 0 {
        return Vec::new();
    }
    let shown = |text: &&str| format!("  {} {}", paint.dim("│"), verbatim(text, width));
    let left_out = format_args!("┊ {} lines left out", grouped(total.saturating_sub(told))).to_string();
    let left_out = (total > told).then(|| format!("  {}", paint.dim(left_out)));
    let count = format!("{} {}", grouped(total), if total == 1 { "line" } else { "lines" });
    let shown = first.iter().map(shown).chain(left_out).chain(last.iter().map(shown));
    std::iter::once(count).chain(shown).collect()
}

/// What to do next. The cause decides; a kill without a known cause is most often the kernel's.
pub(super) fn hint(info: &Value, agent: &str) -> Option<String> {
    let signal = info["signal"].as_str().unwrap_or_default();
    let is_of_fleet = info["message"].as_str().unwrap_or_default().starts_with("node ");
    let hint = match info["cause"].as_str()? {
        "spawn_failed" => {
            "is the command of [agents.AGENT] installed and in PATH? `acpd agents check AGENT` tries it"
        }
        "initialize_timeout" => {
            "does the command of [agents.AGENT] speak ACP? a slow start needs a larger `[timeouts] initialize`"
        }
        "protocol_error" => {
            "does the command of [agents.AGENT] speak ACP on stdout? `acpd -vv agents check AGENT` shows more"
        }
        "out_of_memory" => "the agent needs more memory than there is",
        "agent_crash" if signal == "SIGKILL" => {
            "something outside killed it; if you did not, look for the kernel's out-of-memory killer"
        }
        "agent_crash" if matches!(signal, "SIGTERM" | "SIGINT" | "SIGHUP" | "SIGQUIT") => {
            "something outside ended it with SIGNAL: a person, a script or a service manager; run the prompt again"
        }
        "agent_crash" | "agent_exit" if info["stderr"]["head"].as_str().unwrap_or_default().is_empty() => {
            "it wrote nothing to stderr; `acpd agents check AGENT` shows if it starts at all"
        }
        "agent_crash" | "agent_exit" => {
            "its stderr is the best lead; `acpd agents check AGENT` shows if it starts at all"
        }
        "daemon_lost" => "acpd was killed or crashed; run the prompt again",
        "daemon_upgrade" => {
            "acpd was replaced by a version that could not go on with the agent; run the prompt again"
        }
        "fenced" => {
            "this node was cut off from its fleet; look there, or on another node, whether one has taken the session up: `acpd sessions list`"
        }
        "superseded" if is_of_fleet => "go on with the session on that node",
        "superseded" => "look for another daemon or program that uses this state directory",
        _ => return None,
    };
    Some(hint.replace("SIGNAL", signal).replace("AGENT", agent))
}
