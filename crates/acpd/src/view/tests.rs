//! The view from the outside: updates in, text out; on pipes as it is, on a terminal as a person sees it.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use serde_json::json;

use super::*;

const PIPES: Screen = Screen { terminal: false, colour: false, shared: false };
const TERMINAL: Screen = Screen { terminal: true, colour: false, shared: true };

impl<O: Write, E: Write> View<O, E> {
    /// Shows the end of a session alone, without a turn that failed with it.
    fn session_ended(&mut self, termination_info: &Value) -> io::Result<()> {
        self.close_turn()?;
        let paint = self.page.paint();
        let mut lines = ending::stderr(termination_info, paint);
        lines.extend(ending::session(termination_info, &self.agent_or("NAME"), None, paint));
        self.page.block(Block::Ending, Paragraph::Ends, &lines)
    }

    /// Ends the last line, takes progress off the screen, and gives the writers back.
    fn finish(mut self) -> io::Result<(O, E)> {
        self.interrupted()?;
        Ok((self.page.out, self.page.err))
    }
}

/// A view on two pipes.
fn piped() -> View<Vec<u8>, Vec<u8>> {
    View::new(Vec::new(), Vec::new(), PIPES, Some("/src".into()))
}

/// What went to stdout and to stderr.
fn texts(view: View<Vec<u8>, Vec<u8>>) -> (String, String) {
    let (out, err) = view.finish().expect("a Vec takes everything");
    (String::from_utf8(out).expect("UTF-8"), String::from_utf8(err).expect("UTF-8"))
}

/// What these updates write to stdout and to stderr.
fn shown(updates: &[Value]) -> (String, String) {
    let mut view = piped();
    for update in updates {
        view.update_value(update).unwrap();
    }
    texts(view)
}

/// What these updates write to stderr; stdout stays empty.
fn remarks(updates: &[Value]) -> String {
    let (out, err) = shown(updates);
    assert_eq!(out, "");
    err
}

/// A terminal that both streams go to: rows of text, and the few sequences that the view may use.
#[derive(Clone, Default)]
struct Terminal {
    rows: Rc<RefCell<Vec<Vec<char>>>>,
    cursor: Rc<RefCell<(usize, usize)>>,
    raw: Rc<RefCell<String>>,
}

impl Terminal {
    fn text(&self) -> String {
        let rows = self.rows.borrow();
        let text: Vec<String> = rows.iter().map(|row| row.iter().collect::<String>()).collect();
        text.join("\n").trim_end_matches('\n').to_owned()
    }

    fn print(&self, c: char) {
        let (mut rows, mut cursor) = (self.rows.borrow_mut(), self.cursor.borrow_mut());
        if rows.len() <= cursor.0 {
            rows.resize(cursor.0 + 1, Vec::new());
        }
        match c {
            '\n' => *cursor = (cursor.0 + 1, 0),
            '\r' => cursor.1 = 0,
            c => {
                let row = &mut rows[cursor.0];
                row.truncate(cursor.1);
                row.push(c);
                cursor.1 += 1;
            }
        }
    }

    fn escape(&self, sequence: &str) {
        let (mut rows, mut cursor) = (self.rows.borrow_mut(), self.cursor.borrow_mut());
        match sequence {
            "[?7l" | "[?7h" => {}
            "[J" => {
                rows.truncate(cursor.0 + 1);
                if let Some(row) = rows.get_mut(cursor.0) {
                    row.truncate(cursor.1);
                }
            }
            up => {
                let up = up.strip_prefix('[').and_then(|up| up.strip_suffix('A')).expect("a known sequence");
                cursor.0 -= up.parse::<usize>().expect("a number of rows");
            }
        }
    }
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = str::from_utf8(bytes).expect("whole characters");
        self.raw.borrow_mut().push_str(text);
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            if c == '\u{1b}' {
                let mut sequence = String::new();
                loop {
                    sequence.push(rest.next().expect("whole sequences"));
                    if sequence.len() > 1 && sequence.ends_with(|c: char| c.is_ascii_alphabetic()) {
                        break;
                    }
                }
                self.escape(&sequence);
            } else {
                self.print(c);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn on_terminal() -> (Terminal, View<Terminal, Terminal>) {
    let terminal = Terminal::default();
    let view = View::new(terminal.clone(), terminal.clone(), TERMINAL, Some("/src".into()));
    (terminal, view)
}

fn text(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

fn thought(text: &str) -> Value {
    json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}})
}

fn call(id: &str, fields: Value) -> Value {
    with(json!({"sessionUpdate": "tool_call", "toolCallId": id}), fields)
}

fn call_update(id: &str, fields: Value) -> Value {
    with(json!({"sessionUpdate": "tool_call_update", "toolCallId": id}), fields)
}

/// A turn that failed with this message.
fn turn_failed<'a>(message: &'a str, ended: Option<&'a Value>) -> Failed<'a> {
    Failed { step: Step::Turn, message, details: None, ended, logins: &[], command: None }
}

fn with(mut update: Value, fields: Value) -> Value {
    let (Value::Object(object), Value::Object(fields)) = (&mut update, fields) else { panic!("objects") };
    object.extend(fields);
    update
}

mod endings;
mod hostile;
mod questions;
mod terminal;
mod variants;
