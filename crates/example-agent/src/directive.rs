//! A line of a prompt to a directive. Pure.
//!
//! Invariants: a prompt is read whole before anything of it is done; text that is no directive is an echo.
//! Not the doing: see perform and client_services.

use std::time::Duration;

use serde_json::Value;

use crate::quirks::{Quirk, quirk};

/// A directive that was given wrongly.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum DirectiveError {
    #[error("bad arguments of {name}: usage is `{usage}`")]
    Arguments { name: String, usage: &'static str },
    #[error("unknown quirk {name}; `quirk` lists them")]
    Quirk { name: String },
}

/// One thing to do in a turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Directive {
    Crash,
    Exit(u8),
    Signal(i32),
    Stream { count: u64, bytes: usize },
    Think(String),
    Plan(Vec<String>),
    Title(String),
    Commands(Vec<String>),
    Mode(String),
    Usage { used: u64, size: u64, cost: Option<(f64, String)> },
    TurnUsage(Vec<(String, u64)>),
    Tools(Vec<String>),
    Tool(String),
    Sleep(Duration),
    Hang,
    StopReason(String),
    IgnoreCancel,
    IgnoreSigterm,
    Fork { own_session: bool },
    Stderr(u64),
    Garbage,
    Big(usize),
    BadUtf8,
    Env(String),
    Cwd,
    Params,
    CloseStdout,
    Flood(u64),
    FloodStderr(u64),
    Quirk(Quirk),
    ListQuirks,
    Ask(ClientRequest),
    Echo(String),
}

/// A directive that needs the client's services.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ClientRequest {
    Permission { kind: String, title: String, withdrawn: bool },
    Read { path: String, line: Option<u64>, limit: Option<u64> },
    Write { path: String, text: String },
    Run { words: Vec<String>, limit: Option<Duration> },
    Elicit(String),
}

const USAGES: [&str; 36] = [
    "exit N",
    "signal NAME",
    "stream N [BYTES]",
    "think TEXT",
    "plan A,B,C",
    "title TEXT",
    "commands A,B",
    "mode ID",
    "usage USED SIZE [COST CURRENCY]",
    "turn-usage KIND N...",
    "tools A,B",
    "tool TITLE",
    "sleep MS",
    "hang",
    "stop-reason REASON",
    "ignore-cancel",
    "ignore-sigterm",
    "fork [setsid]",
    "stderr N",
    "garbage",
    "big BYTES",
    "badutf8",
    "env NAME",
    "cwd",
    "params",
    "close-stdout",
    "flood BYTES",
    "flood-stderr BYTES",
    "ask KIND [TITLE]",
    "withdraw KIND",
    "read PATH [LINE [LIMIT]]",
    "write PATH TEXT",
    "run CMD ARGS...",
    "elicit MESSAGE",
    "quirk [NAME]",
    "quirks",
];

const RUN_TIMEOUT_USAGE: &str = "run-timeout MS CMD ARGS...";

/// The directives of a prompt's content blocks, in order.
pub(crate) fn directives(blocks: &[Value]) -> Result<Vec<Directive>, DirectiveError> {
    let mut directives = Vec::new();
    for block in blocks {
        if let Some(text) = block["text"].as_str() {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            for line in lines {
                directives.push(parse(line)?);
            }
        } else {
            directives.push(Directive::Echo(name_of(block)));
        }
    }
    Ok(directives)
}

/// How a block that is not text is echoed.
fn name_of(block: &Value) -> String {
    let kind = block["type"].as_str().unwrap_or("block");
    let names = [&block["uri"], &block["resource"]["uri"], &block["mimeType"]];
    let name = names.into_iter().find_map(Value::as_str).unwrap_or("without a name");
    format!("[{kind} {name}]")
}

/// The directive of one line.
pub(crate) fn parse(line: &str) -> Result<Directive, DirectiveError> {
    if line.contains("crash") {
        return Ok(Directive::Crash);
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let usage = USAGES.iter().find(|usage| usage.split(' ').next() == Some(name)).copied();
    let usage = usage.or_else(|| (name == "run-timeout").then_some(RUN_TIMEOUT_USAGE));
    let Some(usage) = usage else { return Ok(Directive::Echo(line.to_owned())) };
    if name == "quirk" && !rest.trim().is_empty() {
        let unknown = || DirectiveError::Quirk { name: rest.trim().to_owned() };
        return quirk(rest.trim()).map(Directive::Quirk).ok_or_else(unknown);
    }
    known(name, rest.trim()).ok_or_else(|| DirectiveError::Arguments { name: name.to_owned(), usage })
}

fn known(name: &str, rest: &str) -> Option<Directive> {
    let text = || (!rest.is_empty()).then(|| rest.to_owned());
    let list = || text().map(|_| rest.split(',').map(|item| item.trim().to_owned()).collect());
    let word = || text().filter(|_| !rest.contains(char::is_whitespace));
    let alone = |directive| rest.is_empty().then_some(directive);
    Some(match name {
        "exit" => Directive::Exit(rest.parse().ok()?),
        "signal" => Directive::Signal(signal_number(rest)?),
        "stream" => {
            let (count, bytes) = rest.split_once(char::is_whitespace).unwrap_or((rest, "64"));
            Directive::Stream { count: count.parse().ok()?, bytes: bytes.trim().parse().ok()? }
        }
        "think" => Directive::Think(text()?),
        "plan" => Directive::Plan(list()?),
        "title" => Directive::Title(text()?),
        "commands" => Directive::Commands(list()?),
        "mode" => Directive::Mode(word()?),
        "usage" => {
            let words: Vec<&str> = rest.split_whitespace().collect();
            let (used, size, cost) = match words[..] {
                [used, size] => (used, size, None),
                [used, size, cost, currency] => {
                    let cost = cost.parse().ok().filter(|cost: &f64| cost.is_finite())?;
                    (used, size, Some((cost, currency.to_owned())))
                }
                _ => return None,
            };
            Directive::Usage { used: used.parse().ok()?, size: size.parse().ok()?, cost }
        }
        "turn-usage" => {
            let words: Vec<&str> = rest.split_whitespace().collect();
            let (counts @ [_, ..], []) = words.as_chunks::<2>() else { return None };
            let count = |[kind, count]: &[&str; 2]| Some(((*kind).to_owned(), count.parse().ok()?));
            Directive::TurnUsage(counts.iter().map(count).collect::<Option<_>>()?)
        }
        "tools" => Directive::Tools(list()?),
        "tool" => Directive::Tool(text()?),
        "sleep" => Directive::Sleep(Duration::from_millis(rest.parse().ok()?)),
        "hang" => alone(Directive::Hang)?,
        "stop-reason" => Directive::StopReason(word()?),
        "ignore-cancel" => alone(Directive::IgnoreCancel)?,
        "ignore-sigterm" => alone(Directive::IgnoreSigterm)?,
        "fork" if rest == "setsid" => Directive::Fork { own_session: true },
        "fork" => alone(Directive::Fork { own_session: false })?,
        "stderr" => Directive::Stderr(rest.parse().ok()?),
        "garbage" => alone(Directive::Garbage)?,
        "big" => Directive::Big(rest.parse().ok()?),
        "badutf8" => alone(Directive::BadUtf8)?,
        "env" => Directive::Env(word()?),
        "cwd" => alone(Directive::Cwd)?,
        "params" => alone(Directive::Params)?,
        "close-stdout" => alone(Directive::CloseStdout)?,
        "flood" => Directive::Flood(rest.parse().ok()?),
        "flood-stderr" => Directive::FloodStderr(rest.parse().ok()?),
        "quirk" | "quirks" => alone(Directive::ListQuirks)?,
        _ => Directive::Ask(client_request(name, rest)?),
    })
}

fn client_request(name: &str, rest: &str) -> Option<ClientRequest> {
    let (first, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let after = after.trim();
    if first.is_empty() {
        return None;
    }
    Some(match name {
        "ask" => {
            let title = if after.is_empty() { format!("example {first}") } else { after.to_owned() };
            ClientRequest::Permission { kind: first.to_owned(), title, withdrawn: false }
        }
        "withdraw" if after.is_empty() => {
            let title = format!("example {first}");
            ClientRequest::Permission { kind: first.to_owned(), title, withdrawn: true }
        }
        "read" => {
            let numbers = after.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
            if numbers.len() > 2 {
                return None;
            }
            let (line, limit) = (numbers.first().copied(), numbers.get(1).copied());
            ClientRequest::Read { path: first.to_owned(), line, limit }
        }
        "write" => ClientRequest::Write { path: first.to_owned(), text: unescape(after) },
        "run" => ClientRequest::Run { words: words(rest)?, limit: None },
        "run-timeout" => {
            let limit = Duration::from_millis(first.parse().ok()?);
            ClientRequest::Run { words: words(after)?, limit: Some(limit) }
        }
        "elicit" => ClientRequest::Elicit(rest.to_owned()),
        _ => return None,
    })
}

/// `KILL`, `sigkill` and `9` are the same.
fn signal_number(name: &str) -> Option<i32> {
    let name = name.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    (1..32).find(|number| {
        let known = signal_hook::low_level::signal_name(*number);
        known.is_some_and(|known| &known[3..] == name || number.to_string() == name)
    })
}

fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('t') => plain.push('\t'),
            Some('\\') | None => plain.push('\\'),
            Some(other) => plain.extend(['\\', other]),
        }
    }
    plain
}

/// Words separated by blanks; single and double quotes group. At least one word, no open quote.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for character in text.chars() {
        match quote {
            Some(open) if character == open => quote = None,
            Some(_) => word.get_or_insert_default().push(character),
            None if matches!(character, '\'' | '"') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            None if character.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    (quote.is_none() && !words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // contract 4
    #[test]
    fn each_line_is_a_directive() {
        let blocks = [
            json!({"type": "text", "text": "stream 5\r\n\n  hello world \nthis will crash\nstream 1 200"}),
            json!({"type": "resource_link", "name": "a", "uri": "file:///a"}),
        ];
        let expected = [
            Directive::Stream { count: 5, bytes: 64 },
            Directive::Echo("hello world".into()),
            Directive::Crash,
            Directive::Stream { count: 1, bytes: 200 },
            Directive::Echo("[resource_link file:///a]".into()),
        ];
        assert_eq!(directives(&blocks), Ok(expected.into()));
    }

    // contract 4
    #[test]
    fn bad_arguments_name_the_usage() {
        for line in [
            "exit",
            "exit 256",
            "signal NOPE",
            "stream x",
            "think",
            "plan",
            "mode a b",
            "usage 5",
            "usage 5 10 0.1",
            "usage 5 10 NaN USD",
            "turn-usage",
            "turn-usage input",
            "turn-usage input many",
            "sleep soon",
            "hang on",
            "fork twice",
            "big",
            "env",
            "ask",
            "read /a b",
            "write",
            "run",
            "run 'a",
            "run-timeout 5",
            "run-timeout x ls",
            "elicit",
            "withdraw",
            "flood",
            "quirks more",
        ] {
            let error = parse(line).expect_err(line).to_string();
            let name = line.split(' ').next().unwrap();
            assert!(error.starts_with(&format!("bad arguments of {name}: usage is `{name}")), "{error}");
        }
    }

    // contract 4
    #[test]
    fn quotes_group_and_escapes_are_read() {
        assert_eq!(words(r#"sh -c 'echo "a b"' "" x"#).unwrap(), ["sh", "-c", r#"echo "a b""#, "", "x"]);
        assert_eq!(unescape(r"a\nb\\n\q"), "a\nb\\n\\q");
        for name in ["KILL", "SIGKILL", "kill", "9"] {
            assert_eq!(signal_number(name), Some(9));
        }
    }
}
