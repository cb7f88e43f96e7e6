//! The rule for titles of sessions: one line of at most 200 characters that is not blank.
//!
//! A client's choice has to follow it; an agent's title is made to, wherever a session is shown. The agent's own update stays in
//! the log as it came.

use crate::json::lenient;
use serde::Deserializer;
use std::borrow::Cow;

/// The longest title, in characters (contract 7.3).
pub const LONGEST_TITLE: usize = 200;

/// Whether a title follows the rule.
pub fn is_title(title: &str) -> bool {
    title.chars().nth(LONGEST_TITLE).is_none()
        && !title.trim().is_empty()
        && !title.chars().any(|char| char.is_control() || matches!(char, '\u{2028}' | '\u{2029}'))
}

/// The title that a session is shown by: one line, cut behind an ellipsis. None where it says nothing.
pub(crate) fn title_line(given: &str) -> Option<Cow<'_, str>> {
    if is_title(given) {
        return Some(Cow::Borrowed(given));
    }
    let words = given.split_whitespace().flat_map(|word| [" ", word]).skip(1).flat_map(str::chars);
    // A terminal or a browser must not be driven by it.
    let mut words = words.map(|char| if char.is_control() { '\u{fffd}' } else { char });
    let mut line: String = words.by_ref().take(LONGEST_TITLE).collect();
    if words.next().is_some() {
        line.pop();
        line.push('…');
    }
    (!line.is_empty()).then_some(Cow::Owned(line))
}

/// For a member that is a stored title: earlier versions stored whatever the agent gave.
pub(crate) fn stored<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: From<String>,
{
    let title: Option<String> = lenient(deserializer)?;
    Ok(title.and_then(|title| title_line(&title).map(|line| T::from(line.into_owned()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: what an agent calls a session is shown as one line of 200 characters at most; a blank title is none
    #[test]
    fn a_title_is_one_short_line() {
        for (given, shown) in [
            ("Fix the parser", Some("Fix the parser")),
            ("two  blanks ", Some("two  blanks ")),
            ("a\nb\rc\r\n\td", Some("a b c d")),
            ("a\u{2028}b\u{85}c", Some("a b c")),
            ("a\u{1b}[2Jb", Some("a\u{fffd}[2Jb")),
            ("", None),
            ("  \u{a0}\n", None),
        ] {
            assert_eq!(title_line(given).as_deref(), shown, "{given:?}");
            assert!(shown.is_none_or(is_title), "{given:?}");
        }
        let chars = |text: &str| text.chars().count();
        let full = "ä".repeat(LONGEST_TITLE);
        assert_eq!(title_line(&full).as_deref(), Some(&*full));
        let long = title_line(&"word ".repeat(400_000)).expect("it says something").into_owned();
        assert!(is_title(&long) && long.ends_with('…') && chars(&long) == LONGEST_TITLE, "{long}");
        let exact = title_line(&format!("{}\n{}", "x".repeat(100), "y".repeat(99))).map(Cow::into_owned);
        assert!(exact.is_some_and(|line| chars(&line) == LONGEST_TITLE && line.ends_with('y')));
    }
}
