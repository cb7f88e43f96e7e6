//! The marks above tests that name what they show: `// contract 1.2, SU-2: text; PR-4: more text`.
//!
//! A mark that is misspelt or names nothing would make a search for a requirement's tests miss one. Not here:
//! whether the test shows it, or whether every requirement has a test.

use super::Finding;
use super::tree::Tree;
use crate::conformance::requirements::{self, GROUPS};

/// Sections of the contract, with the number of their subsections.
const CONTRACT: &[(u32, u32)] = &[(1, 7), (2, 3), (3, 2), (4, 0), (5, 0), (6, 0), (7, 4)];

/// Sections of the architecture.
const ARCHITECTURE: u32 = 5;

/// What a test shows.
pub(crate) struct Mark<'a> {
    /// Such as `SU-2` or `contract 1.2`.
    pub(crate) name: &'a str,
    /// The function below.
    pub(crate) test: &'a str,
}

/// A line of the comments right above a test.
struct Comment<'a> {
    /// From 0.
    line: usize,
    text: &'a str,
    is_doc: bool,
    test: &'a str,
}

/// The well-formed marks in a Rust file.
pub(crate) fn marks(text: &str) -> Vec<Mark<'_>> {
    let mut marks = Vec::new();
    for comment in comments(text).into_iter().filter(|comment| !comment.is_doc) {
        for part in parts(comment.text).filter(|part| is_mark(part)) {
            marks.extend(names(part).map(|name| Mark { name, test: comment.test }));
        }
    }
    marks
}

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust_files() {
        for comment in comments(&file.text) {
            if parts(comment.text).any(|part| comment.is_doc || !is_mark(part)) {
                findings.push(Finding::new(
                    &file.path,
                    comment.line + 1,
                    format!("not a mark that can be searched for: {}", comment.text),
                    "write `// contract 1.2, SU-2: text`, with numbers that exist",
                ));
            }
        }
    }
    findings
}

fn comments(text: &str) -> Vec<Comment<'_>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut comments = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(comment) = line.strip_prefix("//") else { continue };
        let Some(test) = test_below(&lines[at + 1..]) else { continue };
        let is_doc = comment.starts_with('/');
        comments.push(Comment { line: at, text: comment.trim_start_matches('/').trim(), is_doc, test });
    }
    comments
}

/// The name of the test that begins below, after further comments and attributes.
fn test_below<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let mut above = lines.iter().take_while(|line| line.starts_with("//") || line.starts_with("#["));
    let at = above.position(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))?;
    let head = lines[at..].iter().filter(|line| !line.starts_with("//"));
    let (_, name) = head.filter_map(|line| line.split_once("fn ")).next()?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// The parts of a comment that begin like marks: it may name one thing after another, each with its text.
fn parts(comment: &str) -> impl Iterator<Item = &str> {
    comment.split("; ").filter(|part| looks_like_mark(part))
}

/// Whether a part of a comment begins like a mark, however it is spelt: `Contract 1.2`, `fr-5`, `FR 5`, `requirement FR-5`.
fn looks_like_mark(comment: &str) -> bool {
    let mut words = comment.split([' ', ',', ':']);
    let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let begins_with_digit = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let letters = first.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
    let numbered = letters.len() < first.len();
    let is_group = |letters: &str| GROUPS.iter().any(|group| group.name.eq_ignore_ascii_case(letters));
    match letters.to_ascii_lowercase().as_str() {
        "requirement" | "requirements" => true,
        "contract" | "architecture" => numbered || begins_with_digit(second),
        // "In 3 rounds" is a sentence, "IN 3" a mark.
        lower => is_group(lower) && (numbered || (is_upper(first) && begins_with_digit(second))),
    }
}

fn is_upper(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_uppercase())
}

/// What the marks before the text name.
fn names(part: &str) -> impl Iterator<Item = &str> {
    part.split_once(':').map_or(part, |(names, _)| names).split(", ")
}

/// `MARK, MARK: text`, the text being optional.
fn is_mark(part: &str) -> bool {
    names(part).all(|mark| {
        if let Some(section) = mark.strip_prefix("contract ") {
            is_section(section)
        } else if let Some(section) = mark.strip_prefix("architecture ") {
            number(section).is_some_and(|section| (1..=ARCHITECTURE).contains(&section))
        } else {
            requirements::find(mark).is_some()
        }
    })
}

fn is_section(section: &str) -> bool {
    let (main, sub) = section.split_once('.').map_or((section, None), |(main, sub)| (main, Some(sub)));
    let Some(&(_, subs)) = CONTRACT.iter().find(|(known, _)| number(main) == Some(*known)) else {
        return false;
    };
    sub.is_none_or(|sub| number(sub).is_some_and(|sub| (1..=subs).contains(&sub)))
}

/// A number without sign, spaces or leading zeros.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number: &u32| number.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(comment: &str) -> bool {
        let text = format!("{comment}\n#[test]\nfn a() {{}}\n");
        !check(&Tree::of(&[("crates/wire/src/frame.rs", &text)])).is_empty()
    }

    #[test]
    fn well_formed_marks_and_other_comments_pass_and_malformed_marks_are_found() {
        let good = "contract 1.2|contract 7.4: text|contract 4: the directives|contract 3.2, SU-2\
            |FR-5, FR-6: one error for an array|architecture 4: the ladder\
            |SU-2: one thing; TM-4, contract 1.2: another; the rest is text\
            |in the end all is well|contract tests are elsewhere|In 3 rounds all are gone";
        for good in good.split('|') {
            assert!(!finds(&format!("    // {good}")), "{good}");
        }
        let bad = "Contract 1.2|contract 1.9|contract 7.5|contract 8|contract1.2|requirement FR-5|fr-5|FR5|FR 5\
            |FR-11: no such line|SU-2 and FR-5|FR-05|/ SU-2: a doc comment|SU-2: one thing; TM 4: another";
        for bad in bad.split('|') {
            assert!(finds(&format!("// {bad}").replace("// / ", "/// ")), "{bad}");
        }
    }

    #[test]
    fn only_comments_above_tests_are_marks() {
        let text = "// FR 5 is shown below\nfn a() {}\n";
        assert!(check(&Tree::of(&[("crates/wire/src/frame.rs", text)])).is_empty());
    }

    #[test]
    fn marks_name_the_test_below_them() {
        let text = "// contract 1.2, SU-2: a; TM-4: b\n// more, SU-3\n#[expect(x)]\n#[tokio::test]\n\
            async fn gone() {}\n// SU-1\n/// SU-4\n#[test]\nfn kept(a in 0..9) {}\n// SU-5\nfn none() {}\n";
        let found: Vec<_> = marks(text).iter().map(|mark| (mark.name, mark.test)).collect();
        assert_eq!(found, [("contract 1.2", "gone"), ("SU-2", "gone"), ("TM-4", "gone"), ("SU-1", "kept")]);
    }
}
