//! The words of a text: as they are indexed, as they are asked for, and where they stand. One rule for all three, so that what
//! is found can be shown.
//!
//! Pure. A word is a run of letters, digits and marks, without case and diacritics. Where nothing separates words, as in Chinese,
//! Japanese, Thai, Lao, Khmer and Burmese, and where words grow by what is written behind them, as in Korean, each character is
//! a word with its marks. Not here: what is indexed.

use std::ops::Range;
use std::str::CharIndices;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

/// Changes with what this module makes of a text: an index of other words is made again.
pub(crate) const VERSION: i64 = 2;

/// Characters of a word that count; what is longer is a hash or a blob.
const LONGEST: usize = 32;

/// Words that can be asked for at once.
const MOST: usize = 32;

/// The words of a text in order, each with its place.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    text: &'a str,
    chars: CharIndices<'a>,
}

/// The words of a text in order, each with its place.
pub fn words(text: &str) -> Words<'_> {
    Words { text, chars: text.char_indices() }
}

impl Iterator for Words<'_> {
    type Item = (Range<usize>, String);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (start, first) = self.chars.by_ref().find(|(_, c)| is_part(*c))?;
            let mut end = start + first.len_utf8();
            let mut before = first;
            while let Some((at, c)) = self.chars.clone().next().filter(|(_, c)| is_joined(before, *c)) {
                (before, end) = (c, at + c.len_utf8());
                self.chars.next();
            }
            let word = fold(&self.text[start..end]);
            if !word.is_empty() {
                return Some((start..end, word));
            }
        }
    }
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || (!c.is_ascii() && is_combining_mark(c))
}

/// Whether a character goes on with the word of the one before it.
fn is_joined(before: char, c: char) -> bool {
    match (stands_alone(before), stands_alone(c)) {
        (false, false) => is_part(c),
        // The parts of a Korean syllable that was taken apart: a lead, vowels, tails.
        (true, true) if is_syllable_part(c) => {
            matches!(before, '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97c}')
        }
        (true, _) => !c.is_ascii() && is_combining_mark(c),
        (false, true) => false,
    }
}

/// A vowel or a tail, without which the lead before it is no syllable.
fn is_syllable_part(c: char) -> bool {
    matches!(c, '\u{1160}'..='\u{11ff}' | '\u{d7b0}'..='\u{d7fb}')
}

/// Han, Hiragana and Katakana, also of half width; Hangul; Thai, Lao, Burmese, Khmer.
fn stands_alone(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' | '\u{ff66}'..='\u{ff9f}'
        | '\u{1100}'..='\u{11ff}' | '\u{3131}'..='\u{318e}' | '\u{a960}'..='\u{a97c}' | '\u{ac00}'..='\u{d7fb}'
        | '\u{ffa0}'..='\u{ffdc}' | '\u{e01}'..='\u{e4e}' | '\u{e81}'..='\u{ece}' | '\u{edc}'..='\u{edf}'
        | '\u{1000}'..='\u{103f}' | '\u{1050}'..='\u{108f}' | '\u{109a}'..='\u{109f}' | '\u{aa60}'..='\u{aa7f}'
        | '\u{a9e0}'..='\u{a9ef}' | '\u{a9fa}'..='\u{a9fe}' | '\u{1780}'..='\u{17d3}' | '\u{17dc}'..='\u{17dd}')
}

/// Without case and diacritics. What comes out has no ASCII but letters and digits, which the index does not cut further.
fn fold(word: &str) -> String {
    if word.is_ascii() {
        return word[..word.len().min(LONGEST)].to_ascii_lowercase();
    }
    let plain = word.nfkd().filter(|c| is_part(*c) && canonical_combining_class(*c) == 0);
    plain.flat_map(without_case).filter(|c| is_part(*c)).nfc().take(LONGEST).collect()
}

/// Unicode's full case folding but for the dotless i, which is an i here: by way of the capital, which of ß is SS.
fn without_case(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

/// A text without case and diacritics, with all that stands between its words.
pub fn plain(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfkd().filter(|c| canonical_combining_class(*c) == 0).flat_map(without_case).nfc().collect()
}

/// What is searched for: words that must all be there. One that is followed by `*` stands for all that begin so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchText {
    words: Vec<Wanted>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    word: String,
    /// It is the beginning of a word.
    begins: bool,
}

/// Why a text cannot be searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchTextError {
    /// There is no letter and no digit in it.
    #[error("a word to search for is required")]
    Empty,
    /// There are too many words in it.
    #[error("at most {MOST} words can be searched for")]
    TooLong,
}

impl SearchText {
    /// Reads what was typed; nothing but `*` behind a word has a meaning.
    ///
    /// # Errors
    ///
    /// When there are no words in it, or too many.
    pub fn parse(text: &str) -> Result<Self, SearchTextError> {
        let mut wanted: Vec<Wanted> = Vec::new();
        for (place, word) in words(text) {
            let one = Wanted { word, begins: text[place.end..].starts_with('*') };
            if !wanted.contains(&one) {
                wanted.push(one);
            }
            if wanted.len() > MOST {
                return Err(SearchTextError::TooLong);
            }
        }
        match wanted.is_empty() {
            true => Err(SearchTextError::Empty),
            false => Ok(Self { words: wanted }),
        }
    }

    /// Which of its words stand in a text, as a number for each in order, and where the first of them does.
    pub fn found_in(&self, text: &str) -> Option<Found> {
        let mut found: Option<Found> = None;
        for (place, word) in words(text) {
            for (at, _) in self.words.iter().enumerate().filter(|(_, wanted)| wanted.is(&word)) {
                let found = found.get_or_insert(Found { place: place.clone(), words: 0 });
                found.words |= 1 << at;
            }
        }
        found
    }

    /// As the index is asked.
    pub(crate) fn expression(&self) -> String {
        let word = |wanted: &Wanted| format!("\"{}\"{}", wanted.word, if wanted.begins { "*" } else { "" });
        self.words.iter().map(word).collect::<Vec<_>>().join(" AND ")
    }
}

/// What of a [`SearchText`] stands in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The first of its words.
    pub place: Range<usize>,
    /// A bit for each of its words that is there.
    pub words: u64,
}

impl Wanted {
    fn is(&self, word: &str) -> bool {
        if self.begins { word.starts_with(&self.word) } else { word == self.word }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        words(text).map(|(_, word)| word).collect()
    }

    // issue 11, deliver 3: words, whatever stands between them, their case and their marks
    #[test]
    fn texts_have_words() {
        for (text, expected) in [
            ("", &[][..]),
            ("Fix the `Tests`, please!", &["fix", "the", "tests", "please"]),
            ("crates/eventlog/src/words.rs:12", &["crates", "eventlog", "src", "words", "rs", "12"]),
            ("Ängström naïve NAI\u{308}VE İstanbul", &["angstrom", "naive", "naive", "istanbul"]),
            ("ﬁne ½ x²", &["fine", "12", "x2"]),
            ("漢字のテスト x", &["漢", "字", "の", "テ", "ス", "ト", "x"]),
            ("가나x हिन्दी", &["가", "나", "x", "हिनदी"]),
            ("\u{301} \u{301}a\u{301}", &["a"]),
        ] {
            assert_eq!(all(text), expected, "{text}");
        }
        assert_eq!(all(&"x".repeat(100)), ["x".repeat(LONGEST)]);
        let places: Vec<_> = words("née: ok").map(|(place, _)| place).collect();
        assert_eq!(places, [0..4, 6..8]);
    }

    // contract 7.3: the same words, however they are written, also where nothing separates them
    #[test]
    fn scripts_have_their_own_words() {
        for (text, expected) in [
            // Of half width, and in full.
            ("ﾃﾞｰﾀ", &["テ", "ー", "タ"][..]),
            ("データ", &["テ", "ー", "タ"]),
            ("de\u{30c6}\u{3099}", &["de", "テ"]),
            ("Straße STRASSE ﬂuß ẞ", &["strasse", "strasse", "fluss", "ss"]),
            ("ΟΔΟΣ οδος", &["οδοσ", "οδοσ"]),
            ("ﬃx", &["ffix"]),
            // Syllables, and the same taken apart.
            ("한국어를", &["한", "국", "어", "를"]),
            ("\u{1112}\u{1161}\u{11ab}\u{1100}\u{116e}\u{11a8}", &["한", "국"]),
            ("ㅋㅋ", &["ᄏ", "ᄏ"]),
            // With their vowels and without their tones.
            ("กินข้าว", &["กิ", "น", "ข", "า", "ว"]),
            ("ພາສາ", &["ພ", "າ", "ສ", "າ"]),
            ("ខ្មែរ1", &["ខ", "មែ", "រ", "1"]),
            ("မြန်မာx", &["မြ", "န", "မာ", "x"]),
        ] {
            assert_eq!(all(text), expected, "{text}");
        }
        for (said, sought) in [
            ("x ﾃﾞｰﾀ x", "データ"),
            ("ฉันกินข้าวเช้า", "ข้าว"),
            ("한국어를 배웁니다", "국어"),
            ("Straße", "STRASSE"),
            ("မြန်မာစာ", "မာစာ"),
            ("ភាសាខ្មែរ", "ខ្មែរ"),
        ] {
            let sought = SearchText::parse(sought).expect("words");
            let found = sought.found_in(said).expect(said);
            assert_eq!(found.words.count_ones() as usize, sought.words.len(), "{said}");
        }
    }

    // issue 11, deliver 3: what is typed is words, and never the language of the index
    #[test]
    fn what_is_typed_is_quoted() {
        for (text, expected) in [
            ("Fix tests", r#""fix" AND "tests""#),
            ("fix fix", r#""fix""#),
            ("te* \"x\" OR NOT(y) *", r#""te"* AND "x" AND "or" AND "not" AND "y""#),
            ("a-b:c^2 ; DROP", r#""a" AND "b" AND "c" AND "2" AND "drop""#),
        ] {
            assert_eq!(SearchText::parse(text).map(|text| text.expression()).as_deref(), Ok(expected));
        }
        for (text, error) in [
            ("", SearchTextError::Empty),
            (" *\"' --", SearchTextError::Empty),
            (&(0..40).map(|n| format!("w{n} ")).collect::<String>(), SearchTextError::TooLong),
        ] {
            assert_eq!(SearchText::parse(text), Err(error));
        }
    }

    // issue 11, deliver 3: the part that matched is known by the same words
    #[test]
    fn words_are_found_again() {
        let text = SearchText::parse("naive te*").expect("words");
        assert_eq!(text.found_in("a NAÏVE thing"), Some(Found { place: 2..8, words: 1 }));
        assert_eq!(text.found_in("Tests, naïve"), Some(Found { place: 0..5, words: 3 }));
        assert_eq!(text.found_in("naives at"), None);
    }

    // issue 11, deliver 3: lists are looked through by the same letters
    #[test]
    fn plain_text_has_no_case_and_no_marks() {
        assert_eq!(plain("/Src/Ängström: X"), "/src/angstrom: x");
    }
}
