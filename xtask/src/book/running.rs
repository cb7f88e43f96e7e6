//! Does what the steps of a page say, in order, up to the first that is not as said.

use super::matching::{differs, plain};
use super::names::{Names, in_background, stays_at_daemon};
use super::page::{Act, Step, Syntax};
use super::programs::Programs;
use super::sandbox::Sandbox;
use super::shell::{LONGEST, Outcome, Shell};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// So many lines of what daemons log are shown beside a failure.
const LAST: usize = 8;

/// How many steps were what.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) run: usize,
    pub(super) checked: usize,
    /// Lines and reasons.
    pub(super) not_run: Vec<(usize, String)>,
}

/// What is wrong with a page.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) line: usize,
    /// The line of the page that was run.
    pub(super) command: String,
    pub(super) why: String,
    pub(super) output: String,
}

/// Runs a page.
pub(super) fn run(
    page: &str,
    steps: &[Step],
    acpd: &Path,
    programs: &Programs,
) -> Result<(Counts, Option<Failure>)> {
    let sandbox = Sandbox::new(acpd, &programs.path()?)?;
    symlink(programs.modules(), sandbox.blocks().join("node_modules"))?;
    let shell = Shell::start(&sandbox)?;
    let names = Names::new(sandbox.port);
    let mut running = Running { page, programs, names, shell, sandbox: &sandbox, counts: Counts::default() };
    for step in steps {
        if let Some(failure) = running.step(step).with_context(|| format!("{page}:{}", step.line + 1))? {
            return Ok((running.counts, Some(failure)));
        }
    }
    Ok((running.counts, None))
}

struct Running<'a> {
    page: &'a str,
    programs: &'a Programs,
    sandbox: &'a Sandbox,
    names: Names,
    shell: Shell,
    counts: Counts,
}

impl Running<'_> {
    fn step(&mut self, step: &Step) -> Result<Option<Failure>> {
        let text = self.names.resolve(&step.text);
        match &step.act {
            Act::NotRun(reason) => {
                self.counts.not_run.push((step.line + 1, reason.clone()));
                Ok(None)
            }
            Act::Shell { .. } if stays_at_daemon(&text) => {
                let why =
                    "a terminal stays at `acpd serve`; write `acpd serve &`, or end the block behind it";
                Ok(Some(failure(step, 1, why, String::new())))
            }
            Act::Shell { exit, keys } => {
                self.counts.run += 1;
                let outcome = self.shell.run(&in_background(&text), *exit != 0, keys.as_deref())?;
                Ok(self.judge(step, &outcome, *exit))
            }
            Act::Hidden => {
                let outcome = self.shell.run(&in_background(&text), false, None)?;
                Ok(self.judge(step, &outcome, 0))
            }
            Act::Let(name) => {
                let outcome = self.shell.run(&format!("{{ {text}\n}} 2>>\"$__log\""), false, None)?;
                let value = plain(&outcome.output);
                if outcome.status == Some(0) && (value.is_empty() || value.contains('\n')) {
                    return Ok(Some(failure(step, 1, "one line is wanted", outcome.output)));
                }
                self.names.add(name.clone(), value);
                Ok(self.judge(step, &outcome, 0))
            }
            Act::Program { exit, .. } => {
                self.counts.run += 1;
                let outcome = self.program(step, *exit)?;
                Ok(self.judge(step, &outcome, *exit))
            }
            Act::Data { syntax, file } => self.data(step, &text, *syntax, file.as_deref()),
        }
    }

    /// Runs a program in the shell's directory and environment.
    fn program(&mut self, step: &Step, exit: i32) -> Result<Outcome> {
        let (text, kind) = self.programs.source(self.page, step)?;
        let file = self.sandbox.blocks().join(format!("line{}.{kind}", step.line));
        fs::write(&file, self.names.resolve(&text))?;
        let (file, sdk) = (file.display(), self.programs.python_path());
        let command = match kind {
            "py" => format!("PYTHONPATH='{}' python -B '{file}'", sdk.display()),
            _ => format!("node '{file}'"),
        };
        self.shell.run(&command, exit != 0, None)
    }

    fn data(
        &mut self,
        step: &Step,
        text: &str,
        syntax: Syntax,
        file: Option<&str>,
    ) -> Result<Option<Failure>> {
        let place =
            file.map_or_else(|| self.sandbox.blocks().join("config.toml"), |path| self.sandbox.file(path));
        if let Some(directory) = place.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(&place, text)?;
        self.counts.checked += usize::from(syntax != Syntax::Any);
        Ok(match syntax {
            Syntax::Toml => {
                let check = format!("acpd config check '{}'", place.display());
                let outcome = self.shell.run(&check, true, None)?;
                let is_good = outcome.status == Some(0);
                (!is_good).then(|| failure(step, 1, "acpd config check finds mistakes", outcome.output))
            }
            Syntax::Json => {
                let values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
                let error = values.filter_map(Result::err).next();
                error.map(|error| failure(step, error.line(), "it is no JSON", error.to_string()))
            }
            Syntax::Any => None,
        })
    }

    fn judge(&self, step: &Step, outcome: &Outcome, exit: i32) -> Option<Failure> {
        let is_program = matches!(step.act, Act::Program { .. });
        let line = if is_program { 1 } else { outcome.line };
        let of = |why: &str| {
            let log = self.shell.log();
            let last: Vec<&str> = log.lines().rev().take(LAST).collect();
            let last: String = last.iter().rev().map(|line| format!("\n[acpd serve] {line}")).collect();
            Some(failure(step, line, why, format!("{}{last}", outcome.output.trim_end())))
        };
        match outcome.status {
            None => return of(&format!("it takes more than {} s", LONGEST.as_secs())),
            Some(status) if status != exit => {
                return of(&format!("ended with {status}, and not with {exit}"));
            }
            Some(_) => {}
        }
        let (printed, expected) = step.prints.as_ref()?;
        let at = differs(&self.names.resolve(expected), &outcome.output)?;
        let command = expected.lines().nth(at).unwrap_or("(the end)").to_owned();
        let (line, output) = (printed + at + 1, plain(&outcome.output));
        Some(Failure { line, command, why: "is not what is printed".into(), output })
    }
}

/// A failure at a line of a step, from 1.
fn failure(step: &Step, line: usize, why: &str, output: String) -> Failure {
    let command = step.text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim().to_owned();
    Failure { line: step.line + line, command, why: why.to_owned(), output }
}

#[cfg(test)]
mod tests {
    use super::super::page::steps;
    use super::*;

    /// The line that fails and why, of a page for which any `acpd` succeeds.
    fn fails(page: &str) -> Option<(usize, String)> {
        let steps = steps(page).expect("a good page");
        let programs = Programs::new(&[], Path::new("/")).expect("nothing to compile");
        let (_, failure) = run("a.md", &steps, Path::new("/bin/true"), &programs).expect("it runs");
        failure.map(|failure| (failure.line, failure.why))
    }

    #[test]
    fn a_page_is_as_said_or_its_first_wrong_line_is_told() {
        let at = |line, why: &str| Some((line, why.to_owned()));
        for (page, failure) in [
            ("```sh\necho a\n```\n\n```text\na\n```\n", None),
            ("```sh\necho a\n```\n\n```text\nb\n```\n", at(6, "is not what is printed")),
            ("```sh\necho a\n```\n\n```text\n```\n", at(6, "is not what is printed")),
            ("```sh\ntrue\nfalse\n```\n", at(3, "ended with 1, and not with 0")),
            ("<!-- exit: 1 -->\n```sh\nfalse\n```\n", None),
            ("<!-- exit: 1 -->\n```sh\ntrue\n```\n", at(3, "ended with 0, and not with 1")),
            ("<!-- run: echo b >a -->\n```sh\ngrep b a\n```\n", None),
            ("<!-- run: false -->\n```sh\ntrue\n```\n", at(1, "ended with 1, and not with 0")),
            ("<!-- let 5f: echo abc -->\n```sh\necho 5f | tr a A\n```\n```text\nAbc\n```\n", None),
            ("<!-- let 5f: true -->\n", at(1, "one line is wanted")),
            ("<!-- file: ~/b/c.json -->\n```json\n{}\n```\n```sh\ngrep {} ~/b/c.json\n```\n", None),
            ("```json\n{\n]\n```\n", at(3, "it is no JSON")),
            ("```json\n{}\n{}\n```\n", None),
            ("<!-- not run: a -->\n```sh\nfalse\n```\n", None),
        ] {
            assert_eq!(fails(page), failure, "{page}");
        }
    }
}
