//! The directives that need nothing of the client.
//!
//! Invariant: before a directive ends the process, everything that happened has been sent and kept.
//! Not the parsing, and not the client's services.

use std::io::Write;

use serde_json::{Value, json};

use crate::children;
use crate::directive::Directive;
use crate::filler::Filler;
use crate::turn::{Cancelled, Turn};

/// Stands where an invalid byte will be; one byte in JSON as in UTF-8.
const PLACEHOLDER: u8 = b'#';

impl Turn {
    pub(crate) fn perform(&mut self, directive: &Directive) -> Result<(), Cancelled> {
        match directive {
            Directive::Crash => self.crash(),
            Directive::Exit(code) => self.exit(*code),
            Directive::Signal(number) => self.die_by(*number),
            Directive::Stream { count, bytes } => self.fill(Filler { count: *count, text_bytes: *bytes }),
            Directive::Think(text) => self.think(text),
            Directive::Plan(entries) => self.plan(entries),
            Directive::Title(title) => {
                self.update(json!({"sessionUpdate": "session_info_update", "title": title}));
            }
            Directive::Commands(names) => self.commands(names),
            Directive::Mode(mode) => {
                self.session.state().settings.mode.clone_from(mode);
                self.update(json!({"sessionUpdate": "current_mode_update", "currentModeId": mode}));
            }
            Directive::Usage { used, size, cost } => self.usage(*used, *size, cost.as_ref()),
            Directive::TurnUsage(counts) => {
                self.usage.extend(counts.iter().map(|(kind, count)| (format!("{kind}Tokens"), json!(count))));
            }
            Directive::Tools(names) => {
                let params = json!({"sessionId": self.session.id, "tools": names});
                self.agent.output.notify("session/started", &params);
            }
            Directive::Tool(title) => self.tool(title),
            Directive::Sleep(time) => self.wait(Some(*time))?,
            Directive::Hang => self.wait(None)?,
            Directive::StopReason(reason) => self.stop_reason.clone_from(reason),
            Directive::IgnoreCancel => self.session.ignore_cancel(),
            Directive::IgnoreSigterm => self.ignore_sigterm(),
            Directive::Fork { own_session } => self.fork(*own_session),
            Directive::Stderr(lines) => to_stderr(&numbered_lines("stderr line", *lines)),
            Directive::Garbage => self.agent.output.raw(b"this line is not JSON\n{\"half\": \n\xff\xfe\n"),
            Directive::Big(bytes) => {
                self.fill(Filler::one_line_of(*bytes, &self.session.id, &self.message("agent")));
            }
            Directive::BadUtf8 => self.bad_utf8(),
            Directive::Env(name) => match std::env::var_os(name) {
                Some(value) => self.say(&value.to_string_lossy()),
                None => self.say(&format!("{name} is not set")),
            },
            Directive::Cwd => self.cwd(),
            Directive::Params => self.say(&self.session.params.to_string()),
            Directive::CloseStdout => {
                if let Err(error) = self.agent.output.close() {
                    self.say(&format!("cannot close stdout: {error}"));
                }
            }
            Directive::Flood(bytes) => self.flood(*bytes),
            Directive::FloodStderr(bytes) => flood_stderr(*bytes),
            Directive::Quirk(quirk) => self.play_quirk(*quirk)?,
            Directive::ListQuirks => self.list_quirks(),
            Directive::Ask(request) => self.ask_client(request)?,
            Directive::Echo(line) => self.echo(line),
        }
        Ok(())
    }

    fn echo(&mut self, line: &str) {
        let shout = self.session.state().settings.shout;
        let line = if shout { line.to_uppercase() } else { line.to_owned() };
        let mut words = line.split_inclusive(' ');
        // One word at a time, so that a cancel can come between them.
        if let Some(first) = words.next() {
            let signal = std::sync::Arc::clone(&self.signal);
            let rest = words.take_while(|_| !signal.is_cancelled());
            self.say_in_chunks(std::iter::once(first).chain(rest));
        }
    }

    fn think(&mut self, text: &str) {
        self.update(json!({"sessionUpdate": "agent_thought_chunk", "messageId": self.message("thought"),
            "content": {"type": "text", "text": text}}));
    }

    fn usage(&mut self, used: u64, size: u64, cost: Option<&(f64, String)>) {
        let mut update = json!({"sessionUpdate": "usage_update", "used": used, "size": size});
        if let Some((amount, currency)) = cost {
            update["cost"] = json!({"amount": amount, "currency": currency});
        }
        self.update(update);
    }

    fn plan(&mut self, entries: &[String]) {
        let entry = |entry: &String| {
            let (content, status) = marked(entry);
            json!({"content": content, "priority": "medium", "status": status})
        };
        let entries: Vec<Value> = entries.iter().map(entry).collect();
        self.update(json!({"sessionUpdate": "plan", "entries": entries}));
    }

    fn commands(&mut self, names: &[String]) {
        let command = |name| json!({"name": name, "description": format!("example command {name}")});
        let commands: Vec<Value> = names.iter().map(command).collect();
        self.update(json!({"sessionUpdate": "available_commands_update", "availableCommands": commands}));
    }

    fn tool(&mut self, title: &str) {
        let id = self.next_tool_call();
        self.update(json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": "other",
            "status": "pending", "rawInput": {"title": title}}));
        self.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"}));
        let content = json!({"type": "content", "content": {"type": "text", "text": format!("did {title}")}});
        self.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed",
            "content": [content], "rawOutput": {"ok": true}}));
    }

    fn crash(&mut self) {
        to_stderr(&numbered_lines("crash line", 250));
        self.exit(1);
    }

    fn exit(&mut self, code: u8) {
        self.keep();
        std::process::exit(i32::from(code));
    }

    fn die_by(&mut self, number: i32) {
        self.keep();
        if let Err(error) = signal_hook::low_level::emulate_default_handler(number) {
            self.say(&format!("cannot raise signal {number}: {error}"));
        }
    }

    fn ignore_sigterm(&mut self) {
        self.agent.output.outlive_client();
        // A handler that only notes it: unlike SIG_IGN it is not inherited by the children of `fork`.
        let noted = std::sync::Arc::default();
        if let Err(error) = signal_hook::flag::register(signal_hook::consts::SIGTERM, noted) {
            self.say(&format!("cannot ignore SIGTERM: {error}"));
        }
    }

    fn fork(&mut self, own_session: bool) {
        let child = if own_session { children::leave_in_own_session() } else { children::leave_in_group() };
        match child {
            Ok(pid) => self.say(&format!("forked {pid}")),
            Err(error) => self.say(&format!("cannot fork: {error}")),
        }
    }

    fn bad_utf8(&mut self) {
        let update = json!({"sessionUpdate": "agent_message_chunk", "messageId": self.message("agent"),
            "content": {"type": "text", "text": char::from(PLACEHOLDER).to_string()}});
        let params = json!({"sessionId": self.session.id, "update": update});
        let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string();
        let mut bytes = line.into_bytes();
        if let Some(at) = bytes.iter().rposition(|byte| *byte == PLACEHOLDER) {
            bytes[at] = 0xff;
        }
        bytes.push(b'\n');
        self.agent.output.raw(&bytes);
    }

    /// The session's directory, and the process's where it differs.
    fn cwd(&mut self) {
        let mut text = self.session.cwd.clone();
        match std::env::current_dir() {
            Ok(directory) if directory.as_os_str() == text.as_str() => {}
            Ok(directory) => text.push_str(&format!(" (process in {})", directory.display())),
            Err(error) => text.push_str(&format!(" (process: {error})")),
        }
        self.say(&text);
    }

    /// One line; its newline comes at the end, so that the conversation can go on behind it.
    fn flood(&mut self, bytes: u64) {
        let (signal, piece) = (&self.signal, flood_piece());
        let pieces = pieces(bytes, &piece).take_while(|_| !signal.is_cancelled());
        self.agent.output.parts(pieces.chain(std::iter::once(b"\n".as_slice())));
    }
}

/// 64 KiB, made when they are wanted: the program would be larger by them.
fn flood_piece() -> Vec<u8> {
    vec![b'x'; 64 * 1024]
}

fn flood_stderr(bytes: u64) {
    for piece in pieces(bytes, &flood_piece()) {
        to_stderr(piece);
    }
}

/// `bytes` bytes in pieces of at most `source`'s length.
fn pieces(bytes: u64, source: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut left = bytes;
    std::iter::from_fn(move || {
        let piece = usize::try_from(left).unwrap_or(usize::MAX).min(source.len());
        left -= piece as u64;
        (piece > 0).then(|| &source[..piece])
    })
}

fn numbered_lines(text: &str, count: u64) -> Vec<u8> {
    (1..=count).flat_map(|number| format!("{text} {number}\n").into_bytes()).collect()
}

/// A stderr that is not read any more is no reason to stop.
fn to_stderr(bytes: &[u8]) {
    std::io::stderr().write_all(bytes).ok();
}

/// An entry of a plan without its mark, and its status.
fn marked(entry: &str) -> (&str, &'static str) {
    if let Some(done) = entry.strip_prefix("[x] ") {
        return (done, "completed");
    }
    entry.strip_prefix("[>] ").map_or((entry, "pending"), |at_work| (at_work, "in_progress"))
}
