//! What a session's lines mean: one record per line, folded into the session's past. Without an owner, all values.
//!
//! Invariants: a replay sends what was sent live, in the same order and with the same message ids; a line that
//! cannot be read (torn by a kill, written by a newer version) is skipped, never fatal.
//! Not the store: it reads and writes strings.

use serde_json::{Value, json};

use crate::filler::Filler;
use crate::output::Output;
use crate::quirk_steps::update_line;
use crate::settings::Settings;

/// One line of a session's history.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Record {
    Opened {
        cwd: String,
        additional_directories: Vec<String>,
    },
    /// The blocks of one prompt; each begins a turn.
    Prompt(Vec<Value>),
    Update(Value),
    /// An update that was sent letter by letter, which need not be good JSON.
    Verbatim(String),
    Filler(Filler, String),
    /// A config option set by the client, who got it as an answer and not as an update.
    Config {
        id: String,
        value: Value,
    },
}

impl Record {
    /// The record as a line with its newline.
    pub(crate) fn to_line(&self) -> String {
        let value = match self {
            Self::Opened { cwd, additional_directories } => {
                json!({"opened": {"cwd": cwd, "additionalDirectories": additional_directories}})
            }
            Self::Prompt(blocks) => json!({"prompt": blocks}),
            Self::Update(update) => json!({"update": update}),
            Self::Verbatim(update) => json!({"verbatim": update}),
            Self::Filler(filler, message) => json!({"filler": filler.to_json(message)}),
            Self::Config { id, value } => json!({"config": {"id": id, "value": value}}),
        };
        format!("{value}\n")
    }

    fn from_line(line: &str) -> Option<Self> {
        let Value::Object(mut members) = serde_json::from_str(line).ok()? else { return None };
        let mut take = |name: &str| members.remove(name);
        if let Some(update) = take("update") {
            Some(Self::Update(update))
        } else if let Some(Value::String(update)) = take("verbatim") {
            Some(Self::Verbatim(update))
        } else if let Some(filler) = take("filler") {
            Filler::from_json(&filler).map(|(filler, message)| Self::Filler(filler, message))
        } else if let Some(Value::Array(blocks)) = take("prompt") {
            Some(Self::Prompt(blocks))
        } else if let Some(opened) = take("opened") {
            let additional = opened["additionalDirectories"].as_array().into_iter().flatten();
            Some(Self::Opened {
                cwd: opened["cwd"].as_str()?.to_owned(),
                additional_directories: additional.filter_map(Value::as_str).map(str::to_owned).collect(),
            })
        } else {
            let config = take("config")?;
            Some(Self::Config { id: config["id"].as_str()?.to_owned(), value: config["value"].clone() })
        }
    }
}

/// A session's history, read.
#[derive(Debug, Default)]
pub(crate) struct Past {
    pub(crate) cwd: String,
    pub(crate) additional_directories: Vec<String>,
    pub(crate) title: Option<String>,
    pub(crate) settings: Settings,
    /// Prompts so far; the next turn is numbered one higher.
    pub(crate) turns: u64,
    records: Vec<Record>,
}

impl Past {
    pub(crate) fn read(lines: &str) -> Self {
        let mut past = Self::default();
        for record in lines.lines().filter_map(Record::from_line) {
            past.add(record);
        }
        past
    }

    fn add(&mut self, record: Record) {
        match &record {
            Record::Opened { cwd, additional_directories } => {
                self.cwd.clone_from(cwd);
                self.additional_directories.clone_from(additional_directories);
            }
            Record::Prompt(_) => self.turns += 1,
            Record::Update(update) => self.fold(update),
            Record::Config { id, value } => {
                self.settings.set_option(id, value).ok();
            }
            Record::Filler(..) | Record::Verbatim(_) => {}
        }
        self.records.push(record);
    }

    fn fold(&mut self, update: &Value) {
        match update["sessionUpdate"].as_str() {
            Some("current_mode_update") => {
                if let Some(mode) = update["currentModeId"].as_str() {
                    mode.clone_into(&mut self.settings.mode);
                }
            }
            Some("session_info_update") => {
                if let Some(title) = update.get("title") {
                    self.title = title.as_str().map(str::to_owned);
                }
            }
            _ => {}
        }
    }

    /// Sends everything again.
    pub(crate) fn replay(&self, output: &Output, session: &str) {
        let mut turn = 0;
        for record in &self.records {
            match record {
                Record::Prompt(blocks) => {
                    turn += 1;
                    for block in blocks {
                        let chunk = json!({"sessionUpdate": "user_message_chunk",
                            "messageId": message_id(turn, "user"), "content": block});
                        output.update(session, &chunk);
                    }
                }
                Record::Update(update) => output.update(session, update),
                Record::Verbatim(update) => output.raw(update_line(session, update).as_bytes()),
                Record::Filler(filler, message) => {
                    filler.write(output, session, message, || false);
                }
                Record::Opened { .. } | Record::Config { .. } => {}
            }
        }
    }

    /// The lines of a copy that works elsewhere.
    pub(crate) fn copied_to(&self, opened: &Record) -> String {
        let kept = self.records.iter().filter(|record| !matches!(record, Record::Opened { .. }));
        std::iter::once(opened).chain(kept).map(Record::to_line).collect()
    }
}

/// Message ids follow from the place in the session: the same prompts give the same ids.
pub(crate) fn message_id(turn: u64, speaker: &str) -> String {
    format!("turn-{turn}-{speaker}")
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 4, UP-5
    #[test]
    fn records_survive_a_round_trip_and_torn_lines_are_skipped() {
        let records = [
            Record::Opened { cwd: "/a".into(), additional_directories: vec!["/b".into()] },
            Record::Prompt(vec![json!({"type": "text", "text": "hello"})]),
            Record::Update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"})),
            Record::Update(json!({"sessionUpdate": "session_info_update", "title": "A title"})),
            Record::Verbatim(r#"{"title":"\ud83d"}"#.into()),
            Record::Filler(Filler { count: 3, text_bytes: 9 }, "turn-1-agent".into()),
            Record::Config { id: "shout".into(), value: json!(true) },
        ];
        let mut lines: String = records.iter().map(Record::to_line).collect();
        lines.push_str("{\"update\":{\"sessionUp");
        let past = Past::read(&lines);
        assert_eq!(past.records, records);
        assert_eq!((past.cwd.as_str(), past.turns, past.title.as_deref()), ("/a", 1, Some("A title")));
        assert_eq!((past.settings.mode.as_str(), past.settings.shout), ("plan", true));
    }
}
