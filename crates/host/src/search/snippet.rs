//! What is shown of a turn that was found.
//!
//! Pure. No control character of what was said comes out.

use super::turns::Said;
use acpd_api::Part;
use acpd_eventlog::{Found, SearchText};

/// Characters that are shown before the first of the words.
const BEFORE: usize = 40;
/// Characters that are shown in all.
const ALL: usize = 160;

/// The part with the most of the words, and its text around the first of them.
pub(super) fn snippet(said: &Said, text: &SearchText) -> (Part, String) {
    let parts = [(Part::Prompt, &said.prompt), (Part::Answer, &said.answer), (Part::Tool, &said.tools)];
    let found = parts.map(|(part, words)| (part, words, text.found_in(words)));
    // The first of several with as many.
    let best = found.iter().rev().max_by_key(|(_, _, found)| count(found.as_ref()));
    match best {
        Some((part, text, Some(Found { place, .. }))) => (*part, around(text, place.start)),
        _ => (Part::Prompt, around(&said.prompt, 0)),
    }
}

fn count(found: Option<&Found>) -> u32 {
    found.map_or(0, |found| found.words.count_ones())
}

/// The text around a place in one line, cut between words where that is near.
fn around(text: &str, place: usize) -> String {
    let begin = text[..place].char_indices().rev().take(BEFORE).last().map_or(place, |(at, _)| at);
    let begin = match begin {
        0 => 0,
        _ => text[begin..place].find(char::is_whitespace).map_or(begin, |space| begin + space),
    };
    let mut rest = text[begin..].split_whitespace().peekable();
    let mut shown = String::new();
    if !text[..begin].trim().is_empty() {
        shown.push('…');
    }
    while let Some(word) = rest.next() {
        let clean = word.chars().filter(|c| !c.is_control());
        shown.extend(clean);
        let (length, more) = (shown.chars().count(), rest.peek().is_some());
        if length > ALL {
            shown = shown.chars().take(ALL).collect();
        }
        if more {
            shown.push(' ');
        }
        if length >= ALL {
            shown.truncate(shown.trim_end().len());
            if more || length > ALL {
                shown.push('…');
            }
            break;
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(prompt: &str, answer: &str, tools: &str) -> Said {
        Said { prompt: prompt.into(), answer: answer.into(), tools: tools.into(), ..Said::default() }
    }

    // issue 11, deliver 3: which part matched, and a snippet of it
    #[test]
    fn the_part_with_the_most_words_is_shown() {
        for (words, part, shown) in [
            ("fix", Part::Prompt, "please fix it"),
            ("parser", Part::Answer, "the parser is fixed"),
            ("fix parser", Part::Prompt, "please fix it"),
            ("read fix x", Part::Tool, "read x"),
            ("missing", Part::Prompt, "please fix it"),
        ] {
            let said = said("please\n\u{1b}fix  it", "the parser is fixed", "read x\n");
            let text = SearchText::parse(words).expect("words");
            assert_eq!(snippet(&said, &text), (part, shown.to_owned()), "{words}");
        }
    }

    // issue 11, deliver 3: a snippet is short, and begins and ends where words do
    #[test]
    fn a_snippet_is_cut() {
        let long = "lorem ipsum ".repeat(30) + "needle " + &"dolor sit ".repeat(30);
        let (_, shown) = snippet(&said(&long, "", ""), &SearchText::parse("needle").expect("a word"));
        assert!(shown.starts_with("…ipsum lorem ipsum") || shown.starts_with("…lorem"), "{shown}");
        assert!(shown.ends_with('…') && shown.contains(" needle dolor "), "{shown}");
        assert!(shown.chars().count() <= ALL + 2, "{shown}");
        let (_, shown) = snippet(&said(&"é".repeat(500), "", ""), &SearchText::parse("x").expect("a word"));
        assert_eq!(shown.chars().count(), ALL + 1);
    }
}
