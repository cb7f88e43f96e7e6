//! The updates that are one short remark, and the plan. Text in, lines out.

use std::collections::BTreeMap;

use serde_json::Value;

use super::paint::Paint;
use crate::clean::line;

const WIDTH: usize = 200;
const SHOWN_ENTRIES: usize = 50;
/// Names of unknown updates that were mentioned; each is mentioned once, and a flood of new names is not.
const MENTIONED: usize = 64;

/// What is remembered of the session, so that only changes are mentioned.
#[derive(Debug, Default)]
pub(super) struct Facts {
    title: String,
    mode: String,
    options: BTreeMap<String, String>,
    plan: Vec<String>,
    mentioned: Vec<String>,
    /// The last usage report in words.
    pub(super) usage: Option<String>,
}

impl Facts {
    /// `current_mode_update`
    pub(super) fn mode(&mut self, update: &Value, paint: Paint) -> Option<String> {
        let mode = line(update.get("currentModeId")?.as_str()?, WIDTH);
        changed(&mut self.mode, mode).map(|mode| paint.dim(format_args!("mode: {mode}")))
    }

    /// `session_info_update`
    pub(super) fn info(&mut self, update: &Value, paint: Paint) -> Option<String> {
        let title = line(update.get("title")?.as_str()?, WIDTH);
        changed(&mut self.title, title).map(|title| paint.dim(format_args!("title: {title}")))
    }

    /// `config_option_update`: the options whose value is another one than before.
    pub(super) fn options(&mut self, update: &Value, paint: Paint) -> Vec<String> {
        let Some(options) = update["configOptions"].as_array() else { return Vec::new() };
        let mut lines = Vec::new();
        for option in options.iter().take(SHOWN_ENTRIES) {
            let Some(id) = option["id"].as_str() else { continue };
            let value = match &option["currentValue"] {
                Value::String(value) => line(value, WIDTH),
                Value::Bool(value) => value.to_string(),
                _ => continue,
            };
            let id = line(id, WIDTH);
            if self.options.get(&id).is_some_and(|before| *before != value) {
                lines.push(paint.dim(format_args!("{id}: {value}")));
            }
            if self.options.len() < MENTIONED || self.options.contains_key(&id) {
                self.options.insert(id, value);
            }
        }
        lines
    }

    /// `usage_update`: kept for the summary, because some agents send one for each message.
    pub(super) fn usage(&mut self, update: &Value) {
        let number = |key: &str| update.get(key).and_then(Value::as_u64);
        let (Some(used), Some(size)) = (number("used"), number("size")) else { return };
        let amount = update.pointer("/cost/amount").and_then(Value::as_f64).filter(|amount| *amount > 0.0);
        let currency = update.pointer("/cost/currency").and_then(Value::as_str).unwrap_or_default();
        let cost = amount.map(|amount| format!(" · {}", paid(amount, currency)));
        let cost = cost.unwrap_or_default();
        self.usage = Some(format!("{} of {} tokens{cost}", grouped(used), grouped(size)));
    }

    /// `plan`: all of it, if it is another one than before.
    pub(super) fn plan(&mut self, update: &Value, paint: Paint) -> Option<Vec<String>> {
        let entries = update.get("entries")?.as_array()?;
        let mut lines: Vec<String> = entries
            .iter()
            .take(SHOWN_ENTRIES)
            .map(|entry| {
                let content = line(entry["content"].as_str().unwrap_or("?"), WIDTH);
                match entry["status"].as_str() {
                    Some("completed") => format!("  {} {}", paint.good("✓"), paint.dim(content)),
                    Some("in_progress") => format!("  {} {}", paint.notable("▸"), paint.bold(content)),
                    _ => format!("  {} {content}", paint.dim("○")),
                }
            })
            .collect();
        if entries.len() > SHOWN_ENTRIES {
            lines.push(paint.dim(format_args!("  ... {} more", entries.len() - SHOWN_ENTRIES)));
        }
        let head = if lines.is_empty() { "plan: empty" } else { "plan" };
        lines.insert(0, paint.kind(head));
        (lines != self.plan).then(|| {
            self.plan.clone_from(&lines);
            lines
        })
    }

    /// An update this view has no picture for: its name, once.
    pub(super) fn unknown(&mut self, name: &str, paint: Paint) -> Option<String> {
        let name = line(name, 60);
        if self.mentioned.len() == MENTIONED || self.mentioned.contains(&name) {
            return None;
        }
        self.mentioned.push(name.clone());
        Some(paint.dim(format_args!("· {name}")))
    }
}

/// `notice`
pub(super) fn notice(update: &Value, paint: Paint) -> Option<String> {
    let title = line(update["title"].as_str()?, WIDTH);
    let text = match update["description"].as_str().map(|text| line(text, WIDTH)) {
        Some(description) if !description.is_empty() => format!("{title}: {description}"),
        _ => title,
    };
    Some(match update["severity"].as_str() {
        Some("error") => format!("{} {text}", paint.bad("error:")),
        Some("warning") => format!("{} {text}", paint.notable("warning:")),
        _ => paint.dim(format_args!("notice: {text}")),
    })
}

/// `compaction_update`
pub(super) fn compaction(update: &Value, paint: Paint) -> Option<String> {
    let error =
        update.get("error").map(|error| error.as_str().map_or_else(|| error.to_string(), str::to_owned));
    let why = error.map(|error| format!(": {}", line(&error, WIDTH))).unwrap_or_default();
    Some(match update["status"].as_str()? {
        "in_progress" => paint.dim("compacting the conversation..."),
        "completed" => paint.dim("conversation compacted"),
        "failed" => format!("{} compaction failed{why}", paint.notable("warning:")),
        other => paint.dim(format_args!("compaction {}{why}", line(other, 40))),
    })
}

fn changed(known: &mut String, now: String) -> Option<String> {
    if *known == now || now.is_empty() {
        return None;
    }
    known.clone_from(&now);
    Some(now)
}

/// 1234567 as 1,234,567.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let (first, rest) = digits.split_at((digits.len() - 1) % 3 + 1);
    let groups = rest.as_bytes().chunks(3).map(|group| String::from_utf8_lossy(group));
    std::iter::once(first.into()).chain(groups).collect::<Vec<_>>().join(",")
}

/// An amount of a currency, with what can be told apart of a small one.
pub(super) fn paid(amount: f64, currency: &str) -> String {
    let digits = if amount > 0.0 && amount < 0.01 { 4 } else { 2 };
    format!("{amount:.digits$} {}", line(currency, 8))
}
