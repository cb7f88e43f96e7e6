//! Terminals as text, for clients that know none.
//!
//! A tool call shows a terminal by its id. A client that makes no terminals and is not told of acpd's own can ask nobody for
//! it, and real ones then drop the whole call. Such a client gets the output as text in the place of the terminal: what
//! there is when the call is shown, and all of it at the end of the command. A terminal that acpd did not make is left out.
//!
//! Pure, owned by the page of one client. Invariant: what is kept is bounded, whatever terminals say. Not here: which
//! clients this is for.

use acpd_record::TerminalNews;
use acpd_wire::{member, span_of, splice};
use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::LazyLock;

/// Terminals whose output is kept. Full: the oldest is forgotten.
const TERMINALS: usize = 16;
/// Bytes of output that are kept of each, from its end.
const KEPT: usize = 64 << 10;
/// Calls that are changed when a terminal ends. Full: the oldest stays as it is.
const CALLS: usize = 8;
/// The longest content of a call that is kept for that, in bytes.
const CONTENT: usize = 64 << 10;

/// The longest id of a terminal, in bytes; acpd's are shorter.
const LONGEST_ID: usize = 64;

static TERMINAL: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("terminal"));

/// What one client was shown of the terminals of a session.
#[derive(Debug, Default)]
pub(super) struct TerminalTexts(VecDeque<Terminal>);

#[derive(Debug)]
struct Terminal {
    id: String,
    /// The end of its output.
    text: String,
    ended: bool,
    /// What shows it, to be shown again at its end.
    calls: VecDeque<Call>,
}

#[derive(Debug)]
struct Call {
    /// As JSON.
    id: Box<RawValue>,
    content: Box<RawValue>,
}

/// A piece of a call's content, as far as it can be a terminal.
#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default, rename = "terminalId")]
    terminal: Option<Cow<'a, str>>,
}

/// The update by which a call is shown again.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ShownAgain {
    session_update: &'static str,
    tool_call_id: Box<RawValue>,
    content: Box<RawValue>,
}

impl TerminalTexts {
    /// Returns the message of a tool call without terminals, if it shows any. `call` finds the call in the message.
    pub(super) fn rewrite(
        &mut self,
        message: &[u8],
        call: impl for<'a> FnOnce(&'a RawValue) -> Option<&'a RawValue>,
    ) -> Option<Vec<u8>> {
        // Any letter can be written as an escape.
        if TERMINAL.find(message).is_none() && memchr::memmem::find(message, b"\\u").is_none() {
            return None;
        }
        let call = call(serde_json::from_slice(message).ok()?)?;
        let content = member(call, "content")?;
        let id = member(call, "toolCallId");
        if let Some(id) = id {
            self.forget_call(id);
        }
        let shown = terminals_in(content)?;
        let text = self.as_text(content)?;
        for terminal in shown.iter().filter(|terminal| (1..=LONGEST_ID).contains(&terminal.len())) {
            let terminal = self.terminal(terminal);
            if let Some(id) = id.filter(|_| !terminal.ended && content.get().len() <= CONTENT) {
                push(&mut terminal.calls, Call { id: id.to_owned(), content: content.to_owned() }, CALLS);
            }
        }
        let mut rewritten = Vec::with_capacity(message.len());
        splice(&mut rewritten, message, &[(span_of(message, content)?, text.get().as_bytes())]);
        Some(rewritten)
    }

    /// Takes what a terminal says; returns the calls that are to be shown again.
    pub(super) fn hear(&mut self, news: &TerminalNews<'_>) -> Vec<ShownAgain> {
        match news {
            TerminalNews::Output(said) => {
                let terminal = self.terminal(&said.terminal_id);
                terminal.text.push_str(&said.output);
                cut(&mut terminal.text);
                Vec::new()
            }
            TerminalNews::Ended(end) => {
                let terminal = self.terminal(&end.terminal_id);
                terminal.ended = true;
                let calls = std::mem::take(&mut terminal.calls);
                // Whole, as long as it is shown; then the end of it is kept.
                terminal.text = end.final_output.text.clone().into_owned();
                let again = |call: Call| {
                    let content = self.as_text(&call.content)?;
                    Some(ShownAgain { session_update: "tool_call_update", tool_call_id: call.id, content })
                };
                let shown = calls.into_iter().filter_map(again).collect();
                cut(&mut self.terminal(&end.terminal_id).text);
                shown
            }
        }
    }

    fn terminal(&mut self, id: &str) -> &mut Terminal {
        let at = self.0.iter().position(|known| known.id == id).unwrap_or_else(|| {
            let (id, text) = (id.to_owned(), String::new());
            push(&mut self.0, Terminal { id, text, ended: false, calls: VecDeque::new() }, TERMINALS);
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// What was shown of a call before is not shown any more.
    fn forget_call(&mut self, id: &RawValue) {
        for terminal in &mut self.0 {
            terminal.calls.retain(|call| call.id.get() != id.get());
        }
    }

    /// The content of a call with text in the place of each terminal that is known, and without the others.
    fn as_text(&self, content: &RawValue) -> Option<Box<RawValue>> {
        let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
        let text = |block: &RawValue| -> Option<Box<RawValue>> {
            let Some(terminal) = terminal_of(block) else { return Some(block.to_owned()) };
            let known = self.0.iter().find(|known| known.id == terminal && !known.text.is_empty())?;
            let text = Text { kind: "content", content: Inner { kind: "text", text: &known.text } };
            serde_json::value::to_raw_value(&text).ok()
        };
        serde_json::value::to_raw_value(&blocks.into_iter().filter_map(text).collect::<Vec<_>>()).ok()
    }
}

#[derive(Serialize)]
struct Text<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    content: Inner<'a>,
}

#[derive(Serialize)]
struct Inner<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

/// The ids of the terminals among the blocks; None without any.
fn terminals_in(content: &RawValue) -> Option<Vec<Cow<'_, str>>> {
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    let found: Vec<_> = blocks.into_iter().filter_map(terminal_of).collect();
    (!found.is_empty()).then_some(found)
}

/// The id of the terminal that a block is; an empty one where it has none.
fn terminal_of(block: &RawValue) -> Option<Cow<'_, str>> {
    let block: Block<'_> = serde_json::from_str(block.get()).ok()?;
    (block.kind == "terminal").then(|| block.terminal.unwrap_or_default())
}

/// Puts an entry behind the others, the first of which leaves where there are too many.
fn push<T>(entries: &mut VecDeque<T>, entry: T, most: usize) {
    if entries.len() >= most {
        entries.pop_front();
    }
    entries.push_back(entry);
}

/// Keeps the end of a text.
fn cut(text: &mut String) {
    if text.len() > KEPT {
        let start = text.ceil_char_boundary(text.len() - KEPT);
        text.drain(..start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(texts: &mut TerminalTexts, news: &str) -> Vec<String> {
        let news: TerminalNews<'_> = serde_json::from_str(news).expect("news");
        texts.hear(&news).iter().map(|again| serde_json::to_string(again).expect("JSON")).collect()
    }

    fn output(id: &str, text: &str) -> String {
        format!(r#"{{"terminalId":"{id}","output":"{text}"}}"#)
    }

    fn end(id: &str, text: &str) -> String {
        let status = r#"{"exitCode":0,"signal":null}"#;
        format!(
            r#"{{"terminalId":"{id}","state":"finished","exitStatus":{status},"finalOutput":{{"text":"{text}","truncated":false}}}}"#
        )
    }

    fn rewritten(texts: &mut TerminalTexts, content: &str) -> Option<String> {
        let message = format!(r#"{{"call":{{"toolCallId":"c","content":{content}}},"rest":1}}"#);
        let rewritten = texts.rewrite(message.as_bytes(), |message| member(message, "call"))?;
        let text = String::from_utf8(rewritten).expect("text");
        let content = text.strip_prefix(r#"{"call":{"toolCallId":"c","content":"#)?;
        Some(content.strip_suffix(r#"},"rest":1}"#).expect("the rest stays").to_owned())
    }

    const TEXT: &str = r#"{"type":"content","content":{"type":"text","text":"TEXT"}}"#;

    // quirk foreign-terminal (agents that run commands by themselves): a client that knows no terminals gets the output as
    // text, what there is and all of it at the end; a terminal that acpd did not make is left out
    #[test]
    fn a_terminal_is_shown_as_text() {
        let mut texts = TerminalTexts::default();
        let (one, diff) =
            (r#"{"type":"terminal","terminalId":"t1"}"#, r#"{"type":"diff","path":"/a","newText":"b"}"#);
        assert_eq!(
            rewritten(&mut texts, &format!("[{one},{diff}]")),
            Some(format!("[{diff}]")),
            "nothing is known yet"
        );
        assert_eq!(hear(&mut texts, &output("t1", "so ")), Vec::<String>::new());
        assert_eq!(hear(&mut texts, &output("t1", "far")), Vec::<String>::new());
        let shown = TEXT.replace("TEXT", "so far");
        assert_eq!(rewritten(&mut texts, &format!("[{diff},{one}]")), Some(format!("[{diff},{shown}]")));
        let escaped = r#"{"terminalId":"t1","type":"\u0074ermina\u006c"}"#;
        assert_eq!(rewritten(&mut texts, &format!("[{diff},{escaped}]")), Some(format!("[{diff},{shown}]")));
        let whole = TEXT.replace("TEXT", "so far and on");
        assert_eq!(
            hear(&mut texts, &end("t1", "so far and on")),
            [format!(
                r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{diff},{whole}]}}"#
            )]
        );
        assert_eq!(
            rewritten(&mut texts, &format!("[{one}]")),
            Some(format!("[{whole}]")),
            "after its end, too"
        );
        for other in [r#"{"type":"terminal","terminalId":"elsewhere"}"#, r#"{"type":"terminal"}"#] {
            assert_eq!(rewritten(&mut texts, &format!("[{other}]")).as_deref(), Some("[]"));
        }
        for plain in
            [format!("[{diff}]"), format!("[{}]", TEXT.replace("TEXT", "a terminal")), "null".to_owned()]
        {
            assert_eq!(rewritten(&mut texts, &plain), None, "{plain}");
        }
    }

    // contract 7.3: a call that shows something else meanwhile is left alone at the end of the terminal
    #[test]
    fn a_call_that_shows_something_else_is_not_shown_again() {
        let mut texts = TerminalTexts::default();
        hear(&mut texts, &output("t1", "x"));
        rewritten(&mut texts, r#"[{"type":"terminal","terminalId":"t1"}]"#);
        rewritten(&mut texts, &format!("[{}]", TEXT.replace("TEXT", "no terminal")));
        assert_eq!(hear(&mut texts, &end("t1", "x")), Vec::<String>::new());
    }

    // contract 7.3: what is kept is bounded
    #[test]
    fn what_is_kept_is_bounded() {
        let mut texts = TerminalTexts::default();
        for number in 0..2 * TERMINALS {
            hear(&mut texts, &output(&format!("t{number}"), &"é".repeat(KEPT)));
        }
        assert_eq!(texts.0.len(), TERMINALS);
        assert!(texts.0.iter().all(|terminal| terminal.text.len() <= KEPT && !terminal.text.is_empty()));
    }
}
