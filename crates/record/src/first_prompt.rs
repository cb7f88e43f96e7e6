//! The words that a session began with, by which people know one without a title.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Characters that are kept.
const MOST: usize = 80;

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    text: Cow<'a, str>,
}

/// The beginning of the text of a prompt, as one line. None where there is no text.
pub(crate) fn first_words(prompt: &RawValue) -> Option<Box<str>> {
    let blocks: Vec<Block<'_>> = serde_json::from_str(prompt.get()).ok()?;
    let texts = blocks.iter().filter(|block| block.kind == "text");
    let words = texts.flat_map(|block| block.text.split_whitespace());
    let mut line = String::new();
    let mut room = MOST;
    for word in words {
        for c in (!line.is_empty()).then_some(' ').into_iter().chain(word.chars()) {
            if room == 0 {
                return Some(line.trim_end().into());
            }
            room -= 1;
            // What it is shown on must not be driven by it.
            line.push(if c.is_control() { '\u{fffd}' } else { c });
        }
    }
    (!line.is_empty()).then(|| line.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json, value::to_raw_value};

    fn words(prompt: &Value) -> Option<Box<str>> {
        first_words(&to_raw_value(prompt).expect("JSON"))
    }

    // contract 7.3: a list tells what a session began with
    #[test]
    fn the_first_words_are_one_short_line() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let image = json!({"type": "image", "data": "", "mimeType": "image/png"});
        for (prompt, shown) in [
            (json!([text("  Fix the\n parser ")]), Some("Fix the parser")),
            (json!([image, text("what is\tthis?"), text("and that")]), Some("what is this? and that")),
            (json!([text("a\u{1b}[2Jb")]), Some("a\u{fffd}[2Jb")),
            (json!([text(" \n")]), None),
            (json!([image]), None),
            (json!([]), None),
            (json!("text"), None),
            (json!([7]), None),
        ] {
            assert_eq!(words(&prompt).as_deref(), shown, "{prompt}");
        }
        let long = words(&json!([text(&"漢字x ".repeat(100))])).expect("words");
        assert_eq!(long.chars().count(), 80 - 1, "a cut behind a word leaves no space");
        assert_eq!(words(&json!([text(&"x".repeat(81))])).as_deref(), Some("x".repeat(80).as_str()));
    }
}
