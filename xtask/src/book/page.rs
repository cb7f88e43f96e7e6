//! What the samples of a page are, in order: what is run, written, checked, and what is not.
//!
//! Invariant: each block of code is one step or is said to be for reading only; an unknown language, and a comment that steers
//! no block, are errors with their line. Not here: doing any of it.

use super::steering::{Steering, comments};
use anyhow::{Context, Result, bail, ensure};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// Languages of blocks that are for reading only.
const READ: [&str; 11] =
    ["", "{toctree}", "text", "ini", "yaml", "nginx", "caddy", "js", "html", "http", "diff"];

/// One sample, or what is done between two.
#[derive(Debug, PartialEq)]
pub(super) struct Step {
    /// The line of the page above the first line of the text.
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) act: Act,
    /// What it prints, and the line of the page above.
    pub(super) prints: Option<(usize, String)>,
}

/// What is done with the text of a step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Act {
    /// Run by the page's shell, with this end; on a terminal if keys are typed.
    Shell { exit: i32, keys: Option<String> },
    /// The same, which no reader sees.
    Hidden,
    /// A shell's command whose output this name stands for.
    Let(String),
    /// Run by itself, with this end.
    Program { language: Language, exit: i32 },
    /// Looked at, and written to this file if it is one.
    Data { syntax: Syntax, file: Option<String> },
    /// Not run, for this reason.
    NotRun(String),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Language {
    TypeScript,
    Python,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Syntax {
    Toml,
    Json,
    /// Nothing is known of it.
    Any,
}

/// What the comments above a block say of it.
#[derive(Debug, Default, PartialEq)]
struct Above {
    file: Option<String>,
    not_run: Option<String>,
    exit: Option<i32>,
    keys: Option<String>,
}

/// The steps of a page.
pub(super) fn steps(page: &str) -> Result<Vec<Step>> {
    let mut reading = Reading::default();
    for (event, range) in Parser::new_ext(page, Options::ENABLE_TABLES).into_offset_iter() {
        let line = page[..range.start].matches('\n').count() + 1;
        reading.take(event, line).with_context(|| format!("line {line}"))?;
    }
    reading.nothing_waits().context("the last line")?;
    Ok(reading.steps)
}

#[derive(Default)]
struct Reading {
    steps: Vec<Step>,
    above: Above,
    /// The text of the block or the HTML that is being read.
    text: Option<String>,
    language: String,
    /// What came last was a block that runs.
    after_run: bool,
}

impl Reading {
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<()> {
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                self.text = Some(String::new());
                self.language = match kind {
                    CodeBlockKind::Fenced(info) => info.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
            }
            Event::Start(Tag::HtmlBlock) => self.text = Some(String::new()),
            Event::Text(part) | Event::Html(part) if self.text.is_some() => {
                self.text.as_mut().expect("it is there").push_str(&part);
            }
            Event::End(TagEnd::CodeBlock) => {
                let text = self.text.take().unwrap_or_default();
                self.block(line, text)?;
            }
            Event::End(TagEnd::HtmlBlock) => {
                let html = self.text.take().unwrap_or_default();
                self.after_run = false;
                comments(&html)?.into_iter().try_for_each(|it| self.steer(it, line))?;
            }
            Event::InlineHtml(html) if html.starts_with("<!--") => {
                bail!("a comment stands in a line of its own")
            }
            // A block's list item may begin or end; text in between separates.
            Event::Start(Tag::List(_) | Tag::Item) | Event::End(_) => {}
            _ => {
                self.after_run = false;
                self.nothing_waits()?;
            }
        }
        Ok(())
    }

    fn nothing_waits(&self) -> Result<()> {
        ensure!(self.above == Above::default(), "no block follows the comment above");
        Ok(())
    }

    fn steer(&mut self, steering: Steering, line: usize) -> Result<()> {
        let hidden = |text, act| Step { line: line - 1, text, act, prints: None };
        let above = &mut self.above;
        let is_second = match steering {
            Steering::File(path) => above.file.replace(path).is_some(),
            Steering::NotRun(reason) => above.not_run.replace(reason).is_some(),
            Steering::Exit(status) => above.exit.replace(status).is_some(),
            Steering::Typed(keys) => above.keys.replace(keys).is_some(),
            Steering::Run(commands) => {
                self.steps.push(hidden(commands, Act::Hidden));
                false
            }
            Steering::Let(name, command) => {
                self.steps.push(hidden(command, Act::Let(name)));
                false
            }
        };
        ensure!(!is_second, "the same is said twice of one block");
        Ok(())
    }

    fn block(&mut self, line: usize, text: String) -> Result<()> {
        let above = std::mem::take(&mut self.above);
        let language = self.language.split([' ', ',']).next().unwrap_or_default();
        let after_run = std::mem::take(&mut self.after_run);
        let exit = above.exit.unwrap_or(0);
        let act = match (language, above.file, above.not_run) {
            (_, file, Some(reason)) => {
                ensure!(file.is_none() && above.exit.is_none() && above.keys.is_none(), "it is not run");
                Act::NotRun(reason)
            }
            ("toml", file, _) => Act::Data { syntax: Syntax::Toml, file },
            ("json", file, _) => Act::Data { syntax: Syntax::Json, file },
            (_, file @ Some(_), _) => Act::Data { syntax: Syntax::Any, file },
            ("sh", ..) => Act::Shell { exit, keys: above.keys.clone() },
            ("ts", ..) => Act::Program { language: Language::TypeScript, exit },
            ("python", ..) => Act::Program { language: Language::Python, exit },
            ("text", ..) if after_run => {
                let last = self.steps.last_mut().context("nothing runs before")?;
                last.prints = Some((line, text));
                return above_is_for_runs(above.exit, above.keys.as_ref());
            }
            (language, ..) if READ.contains(&language) => {
                return above_is_for_runs(above.exit, above.keys.as_ref());
            }
            (language, ..) => bail!("`{language}` is no language of samples"),
        };
        self.after_run = matches!(act, Act::Shell { .. } | Act::Program { .. });
        let (exit, keys) = (above.exit.filter(|_| !self.after_run), above.keys);
        above_is_for_runs(exit, keys.as_ref().filter(|_| !matches!(act, Act::Shell { .. })))?;
        self.steps.push(Step { line, text, act, prints: None });
        Ok(())
    }
}

fn above_is_for_runs(exit: Option<i32>, keys: Option<&String>) -> Result<()> {
    ensure!(exit.is_none() && keys.is_none(), "`exit` and `typed` are for what is run");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acts(page: &str) -> Vec<(usize, String, Act)> {
        let steps = steps(page).expect("a good page");
        steps.into_iter().map(|step| (step.line, step.text, step.act)).collect()
    }

    const RUN: Act = Act::Shell { exit: 0, keys: None };

    #[test]
    fn each_block_is_a_step_with_its_line_and_what_is_for_reading_is_none() {
        let page = "# T\n\n```sh\na\nb\n```\n\n- item\n\n  ```python\n  x = 1\n  ```\n\n```ini\nq\n```\n\n    indented\n\n```json\n{}\n```\n";
        let python = Act::Program { language: Language::Python, exit: 0 };
        let json = Act::Data { syntax: Syntax::Json, file: None };
        let of = |line, text: &str, act| (line, text.to_owned(), act);
        assert_eq!(acts(page), [of(3, "a\nb\n", RUN), of(10, "x = 1\n", python), of(20, "{}\n", json)]);
    }

    #[test]
    fn comments_belong_to_the_block_below_them() {
        for (page, act) in [
            ("<!-- exit: 3 -->\n```sh\n```\n", Act::Shell { exit: 3, keys: None }),
            (
                "<!-- exit: 3 -->\n<!-- typed: a -->\n\n```sh\n```\n",
                Act::Shell { exit: 3, keys: Some("a".into()) },
            ),
            ("<!-- not run: b -->\n```sh\n```\n", Act::NotRun("b".into())),
            ("<!-- file: a -->\n```toml\n```\n", Act::Data { syntax: Syntax::Toml, file: Some("a".into()) }),
            ("<!-- file: a -->\n```ini\n```\n", Act::Data { syntax: Syntax::Any, file: Some("a".into()) }),
            ("<!-- run: a -->\n", Act::Hidden),
            ("<!-- let 5f: a -->\n", Act::Let("5f".into())),
        ] {
            assert_eq!(acts(page)[0].2, act, "{page}");
        }
        let wrong = |page: &str| steps(page).map_err(|error| format!("{error:#}")).expect_err(page);
        assert_eq!(wrong("a\n\n```ruby\n```\n"), "line 3: `ruby` is no language of samples");
        assert_eq!(
            wrong("<!-- exit: 1 -->\n\ntext\n\n```sh\n```\n"),
            "line 3: no block follows the comment above"
        );
        for page in [
            "<!-- exit: 1 -->\n",
            "<!-- exit: 1 -->\n```toml\n```\n",
            "<!-- exit: 1 -->\n```text\n```\n",
            "<!-- typed: a -->\n```ts\n```\n",
            "<!-- exit: 1 -->\n<!-- exit: 1 -->\n```sh\n```\n",
            "<!-- file: a -->\n<!-- not run: b -->\n```sh\n```\n",
            "<!-- not known: 1 -->\n",
            "words <!-- run: a -->\n",
        ] {
            wrong(page);
        }
    }

    #[test]
    fn text_right_below_what_runs_is_what_it_prints() {
        let prints = |page: &str| steps(page).expect("a good page").remove(0).prints;
        assert_eq!(prints("```sh\na\n```\n\n```text\nb\n```\n"), Some((5, "b\n".into())));
        assert_eq!(prints("```ts\na\n```\n```text\nb\n```\n"), Some((4, "b\n".into())));
        assert_eq!(prints("```sh\na\n```\n\nand\n\n```text\nb\n```\n"), None);
        assert_eq!(prints("```sh\na\n```\n<!-- run: x -->\n```text\nb\n```\n"), None);
        assert_eq!(prints("<!-- not run: x -->\n```sh\na\n```\n```text\nb\n```\n"), None);
    }
}
