//! The comments that steer the samples of a page, as values.
//!
//! Not here: which block a comment belongs to.

use crate::tree::pattern;
use anyhow::{Context, Result, bail, ensure};

/// One comment.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Steering {
    /// The block is the content of this file.
    File(String),
    /// The block is not run, for this reason.
    NotRun(String),
    /// The block ends with this exit status.
    Exit(i32),
    /// The block runs on a terminal, on which these keys are pressed.
    Typed(String),
    /// Commands that a reader does not see run here.
    Run(String),
    /// From here on a text of blocks stands for what a command prints.
    Let(String, String),
}

/// What the comments in a piece of HTML say; anything else in it is a reader's.
pub(super) fn comments(html: &str) -> Result<Vec<Steering>> {
    let comment = pattern(r"(?s)<!--(.*?)-->");
    comment.captures_iter(html).map(|found| steering(found[1].trim())).collect()
}

fn steering(text: &str) -> Result<Steering> {
    let (word, rest) = text.split_once(':').unwrap_or((text, ""));
    let rest = rest.trim();
    ensure!(!rest.is_empty(), "the comment `{text}` is not `WORD: VALUE`");
    Ok(match word.split_once(' ').unwrap_or((word, "")) {
        ("file", "") => Steering::File(rest.to_owned()),
        ("not", "run") => Steering::NotRun(rest.to_owned()),
        ("exit", "") => Steering::Exit(rest.parse().with_context(|| format!("`{rest}` is no exit status"))?),
        ("typed", "") => Steering::Typed(keys(rest)?),
        ("run", "") => Steering::Run(rest.to_owned()),
        ("let", name) if !name.is_empty() => Steering::Let(name.to_owned(), rest.to_owned()),
        _ => bail!("`{word}` steers nothing; file, not run, exit, typed, run and let NAME do"),
    })
}

/// Keys as they are written: `\r`, `\n`, `\t`, `\e`, `\\` and `\x` with two digits.
fn keys(text: &str) -> Result<String> {
    let mut keys = String::new();
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        keys.push(match next {
            '\\' => match rest.next() {
                Some('r') => '\r',
                Some('n') => '\n',
                Some('t') => '\t',
                Some('e') => '\x1b',
                Some('\\') => '\\',
                Some('x') => {
                    let digits: String = rest.by_ref().take(2).collect();
                    let code = u8::from_str_radix(&digits, 16).ok().filter(u8::is_ascii);
                    code.with_context(|| format!("`\\x{digits}` is no key"))?.into()
                }
                other => bail!("`\\{}` is no key", other.map(String::from).unwrap_or_default()),
            },
            other => other,
        });
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_steering_and_what_is_none_is_an_error() {
        let of = |text: &str| comments(text).map_err(|error| error.to_string());
        let one = |it: Steering| Ok(vec![it]);
        assert_eq!(
            of("<!-- file: ~/.config/acpd/config.toml -->"),
            one(Steering::File("~/.config/acpd/config.toml".into()))
        );
        assert_eq!(of("<!-- not run: it costs: money -->"), one(Steering::NotRun("it costs: money".into())));
        assert_eq!(of("<!-- exit: 4 -->"), one(Steering::Exit(4)));
        assert_eq!(of(r"<!-- typed: a\r\x04\e\\ -->"), one(Steering::Typed("a\r\x04\x1b\\".into())));
        assert_eq!(of("<!-- run: a\nb: c -->"), one(Steering::Run("a\nb: c".into())));
        let both = vec![Steering::Let("5f".into(), "date".into()), Steering::Exit(1)];
        assert_eq!(of("<!-- let 5f: date -->\n<b>\n<!-- exit: 1 -->"), Ok(both));
        assert_eq!(of("<details>"), Ok(Vec::new()));
        for wrong in
            ["exit: x", "exit:", "remark", "let: x", "not: x", "file a: x", r"typed: \q", r"typed: \xzz"]
        {
            assert!(of(&format!("<!-- {wrong} -->")).is_err(), "{wrong}");
        }
    }
}
