//! Words of what people know a session by: its title or first prompt, its directory, its agent's name, its id.
//!
//! Pure. A list can be of many sessions of which few are meant: most rows are told apart by their bytes.

use acpd_eventlog::{RowFilter, RowText, plain};
use acpd_record::SessionMeta;
use memchr::memmem::Finder;

/// Each of the words must be somewhere, without regard to case and diacritics; in an id at its beginning or end, as ids are
/// shortened. None without words.
pub(crate) fn known_by(text: &str) -> Option<RowFilter> {
    let words: Vec<Word> = plain(text).split_whitespace().map(Word::new).collect();
    (!words.is_empty()).then(|| RowFilter::new(move |row| may_be_meant(&words, row) && is_meant(&words, row)))
}

/// Whether a session that is not in this log is known by each of the words.
pub fn is_known_by(text: &str, row: RowText<'_>) -> bool {
    is_meant(&plain(text).split_whitespace().map(Word::new).collect::<Vec<_>>(), row)
}

struct Word {
    text: String,
    finder: Finder<'static>,
}

impl Word {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), finder: Finder::new(text).into_owned() }
    }
}

fn is_meant(words: &[Word], row: RowText<'_>) -> bool {
    let (id, known_by) = (row.id.to_ascii_lowercase(), [plain(row.agent), plain(row.cwd)]);
    let of_id = |word: &str| id.starts_with(word) || id.ends_with(word);
    let is_known = |word: &str| of_id(word) || known_by.iter().any(|text| text.contains(word));
    let mut rest = words.iter().filter(|word| !is_known(&word.text));
    let Some(first) = rest.next() else { return true };
    // It takes the most to read.
    let title = plain(&SessionMeta::brief(row.info).known_as().unwrap_or_default());
    title.contains(&first.text) && rest.all(|word| title.contains(&word.text))
}

/// False only if a word is nowhere in the row: what is ASCII without escapes has no other way to say it.
fn may_be_meant(words: &[Word], row: RowText<'_>) -> bool {
    let texts = [row.id.as_bytes(), row.agent.as_bytes(), row.cwd.as_bytes(), row.info];
    if !texts.iter().all(|text| text.is_ascii()) || memchr::memchr(b'\\', row.info).is_some() {
        return true;
    }
    let mut all = Vec::with_capacity(texts.iter().map(|text| text.len() + 1).sum());
    for text in texts {
        all.extend_from_slice(text);
        // No word has white space in it.
        all.push(b' ');
    }
    all.make_ascii_lowercase();
    words.iter().all(|word| word.finder.find(&all).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: GET /v1/sessions?q=: each word is in the title, the directory or the agent's name, or begins or ends
    // the id, however it is written in the row
    #[test]
    fn words_are_found_in_what_a_session_is_known_by() {
        let plain_row = br#"{"title":"Fix the Parser","model":"opus","client":"editor"}"#;
        let escaped = br#"{"title":"Fix the p\u0061rser \"now\"","model":"opus"}"#;
        let accented = r#"{"title":"Résumé 漢字"}"#.as_bytes();
        for (info, text, found) in [
            (&plain_row[..], "parser", true),
            (plain_row, "FIX  parser", true),
            (plain_row, "parser example /SRC 019A", true),
            (plain_row, "parser other", false),
            (plain_row, "17f6-BC", true),
            (plain_row, "019a-17f6-bc", true),
            // Within the id, of which lists show an end.
            (plain_row, "17", false),
            (plain_row, "parser -17f6", false),
            // In the row, but nothing that it is known by.
            (plain_row, "opus", false),
            (plain_row, "title", false),
            (plain_row, "résumé", false),
            (escaped, "parser", true),
            (escaped, "\"now\"", true),
            (escaped, "u0061", false),
            (accented, "resume", true),
            (accented, "RÉSUMÉ 漢", true),
            (accented, "字漢", false),
            (b"", "example", true),
            (b"", "parser", false),
        ] {
            let words: Vec<Word> = plain(text).split_whitespace().map(Word::new).collect();
            let row = RowText { id: "019a-17f6-bc", agent: "example", cwd: "/src/one", info };
            assert_eq!(is_meant(&words, row), found, "{text}");
            assert!(may_be_meant(&words, row) || !found, "{text}");
        }
        assert!(known_by("  ").is_none());
    }
}
