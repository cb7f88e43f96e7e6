//! `cargo xtask book`: builds the book of `docs/`, and runs every command and sample of its pages and of the README.
//!
//! CONTRIBUTING.md has the rules by which samples are run. Invariant: a page meets no daemon and no agent of the machine, and
//! leaves no process and no file. Not here: what pages say.

mod matching;
mod names;
mod page;
mod programs;
mod running;
mod sandbox;
mod shell;
mod steering;

use crate::outside::target_directory;
use crate::run;
use crate::{BAD, inspector, tree, venv};
use anyhow::{Context, Result, ensure};
use clap::Args;
use page::Step;
use programs::Programs;
use running::{Counts, Failure};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// What the command line says.
#[derive(Args, Default)]
pub(crate) struct Options {
    /// Run the samples of this page only, and do not build the book
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Vec<String>,
    /// The daemon is built.
    #[arg(skip)]
    pub(crate) is_built: bool,
}

/// How many pages run at once: their samples wait more than they compute.
const AT_ONCE: usize = 2;
const REQUIREMENTS: &str = "docs/requirements.txt";
/// Of what a failed sample printed.
const LONGEST_OUTPUT: usize = 60;

/// What one of the threads does.
enum Job {
    Build,
    Page(String, Vec<Step>),
}

/// Runs the command; true when all is well. Samples run against `ACPD_BIN`, or what is built here.
pub(crate) fn run(options: &Options, root: &Path) -> Result<bool> {
    let acpd = match std::env::var_os("ACPD_BIN") {
        Some(file) => PathBuf::from(file),
        None => {
            if !options.is_built {
                run::run(run::line("cargo build --quiet --locked", root), &mut run::Counts::default())?;
            }
            target_directory(root).join("debug/acpd")
        }
    };
    let acpd = acpd.canonicalize().with_context(|| acpd.display().to_string())?;
    let builds = options.page.is_empty();
    let pages = if builds { pages(root)? } else { options.page.clone() };
    let read = |page: String| {
        let text = std::fs::read_to_string(root.join(&page)).with_context(|| page.clone())?;
        let steps = page::steps(&text).with_context(|| page.clone())?;
        Ok((page, steps))
    };
    let mut pages: Vec<(String, Vec<Step>)> = pages.into_iter().map(read).collect::<Result<_>>()?;
    pages.retain(|(_, steps)| !steps.is_empty());
    let programs = Programs::new(&pages, root)?;
    // The longest first.
    pages.sort_by_key(|(_, steps)| std::cmp::Reverse(steps.len()));
    let build = builds.then_some(Job::Build);
    let jobs = pages.into_iter().map(|(page, steps)| Job::Page(page, steps));
    let jobs = Mutex::new(build.into_iter().chain(jobs).collect::<VecDeque<_>>());
    let all = Mutex::new(Done { good: true, ..Done::default() });
    let next = || jobs.lock().expect("no thread panics with it").pop_front();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(job) = next() {
                    let done = perform(job, &acpd, &programs, root).unwrap_or_else(|error| {
                        anstream::println!("{BAD}{error:#}{BAD:#}");
                        Done::default()
                    });
                    all.lock().expect("no thread panics with it").add(done);
                }
            });
        }
    });
    let Done { good, count, mut not_run } = all.into_inner().expect("the threads have ended");
    not_run.sort();
    for line in &not_run {
        anstream::println!("not run: {line}");
    }
    anstream::println!("{count} samples run or checked, {} not run", not_run.len());
    Ok(good)
}

/// The README and the pages of the book, but for those that are generated or records.
fn pages(root: &Path) -> Result<Vec<String>> {
    let mut pages = vec!["README.md".to_owned()];
    for entry in std::fs::read_dir(root.join("docs"))? {
        let name = entry?.file_name().into_string().ok().context("a name that is not UTF-8")?;
        pages.extend(name.ends_with(".md").then(|| format!("docs/{name}")));
    }
    Ok(pages)
}

/// What jobs came to.
#[derive(Default)]
struct Done {
    good: bool,
    /// Samples that were run or checked.
    count: usize,
    not_run: Vec<String>,
}

impl Done {
    fn add(&mut self, other: Self) {
        self.good &= other.good;
        self.count += other.count;
        self.not_run.extend(other.not_run);
    }
}

fn perform(job: Job, acpd: &Path, programs: &Programs, root: &Path) -> Result<Done> {
    let started = now();
    let seconds = || format!("{:.1} s", started.elapsed().as_secs_f64());
    let Job::Page(page, steps) = job else {
        build(root).context("book")?;
        anstream::println!("book: built in {}", seconds());
        return Ok(Done { good: true, ..Done::default() });
    };
    let (counts, failure) = running::run(&page, &steps, acpd, programs).with_context(|| page.clone())?;
    anstream::println!("{}", line(&page, &counts, &seconds()));
    if let Some(failure) = &failure {
        anstream::println!("{}", told(&page, failure));
    }
    let not_run = counts.not_run.iter().map(|(line, reason)| format!("{page}:{line}: {reason}"));
    Ok(Done { good: failure.is_none(), count: counts.run + counts.checked, not_run: not_run.collect() })
}

fn line(page: &str, counts: &Counts, seconds: &str) -> String {
    format!(
        "{page}: {} run, {} checked, {} not run, {seconds}",
        counts.run,
        counts.checked,
        counts.not_run.len()
    )
}

fn told(page: &str, failure: &Failure) -> String {
    let Failure { line, command, why, output } = failure;
    let lines: Vec<&str> = output.lines().collect();
    let left = lines.len().saturating_sub(LONGEST_OUTPUT);
    let mut text = format!("{BAD}{page}:{line}: {command}{BAD:#}\n  {why}");
    if left > 0 {
        text.push_str(&format!("\n  | ({left} lines)"));
    }
    for line in &lines[left..] {
        text.push_str("\n  | ");
        text.push_str(line);
    }
    text
}

/// Builds the pages into `target/book`; what Sphinx warns of is an error.
fn build(root: &Path) -> Result<()> {
    let requirements = std::fs::read_to_string(root.join(REQUIREMENTS))?;
    let target = target_directory(root);
    let programs = venv::install(&target.join("book-tools"), &requirements)?;
    let book = target.join("book");
    if book.exists() {
        std::fs::remove_dir_all(&book)?;
    }
    let mut sphinx = run::command(programs.join("python"));
    sphinx.args([
        "-B",
        "-m",
        "sphinx",
        "--builder",
        "html",
        "--quiet",
        "--fail-on-warning",
        "--keep-going",
        "--fresh-env",
    ]);
    sphinx.arg("--doctree-dir").arg(target.join("book-tools/doctrees"));
    sphinx.arg(root.join("docs")).arg(&book).current_dir(root);
    run::run(sphinx, &mut run::Counts::default())?;
    for (path, content) in inspector::files(&book)?.iter().filter(|(path, _)| path.ends_with(".html")) {
        let loaded = loaded(&String::from_utf8_lossy(content)).join(", ");
        ensure!(loaded.is_empty(), "{path} loads what is elsewhere: {loaded}");
    }
    Ok(())
}

/// What a page has a browser load from elsewhere.
fn loaded(html: &str) -> Vec<String> {
    let load = tree::pattern(
        r#"<(?:link|script|img|iframe|source|video)\b[^>]*?\b(?:href|src|srcset)="((?:https?:)?//[^"]*)""#,
    );
    load.captures_iter(html).map(|found| found[1].to_owned()).collect()
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "it only shows how long pages take")]
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    // inspector: nothing loaded from elsewhere
    #[test]
    fn what_a_page_loads_from_elsewhere_is_found() {
        let good = r#"<a href="https://a.example">a</a><img src="_images/a.png"><script src="_static/a.js?v=//"></script>"#;
        assert!(loaded(good).is_empty());
        let bad =
            r#"<link rel="stylesheet" href="https://a.example/b.css"><script async src="//a.example/c.js">"#;
        assert_eq!(loaded(bad), ["https://a.example/b.css", "//a.example/c.js"]);
    }

    #[test]
    fn a_failure_is_told_with_its_place_and_the_end_of_what_was_printed() {
        let output = (1..=62).map(|line| format!("{line}\n")).collect();
        let failure = Failure { line: 7, command: "false".into(), why: "ended with 1".into(), output };
        let told = anstream::adapter::strip_str(&told("docs/a.md", &failure)).to_string();
        assert!(told.starts_with("docs/a.md:7: false\n  ended with 1\n  | (2 lines)\n  | 3\n"), "{told}");
        assert!(told.ends_with("\n  | 62"));
        let not_run = vec![(3, "a".to_owned())];
        let counts = Counts { run: 2, checked: 1, not_run };
        assert_eq!(line("docs/a.md", &counts, "1.0 s"), "docs/a.md: 2 run, 1 checked, 1 not run, 1.0 s");
    }
}
