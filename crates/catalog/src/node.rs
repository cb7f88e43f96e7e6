//! The Node.js that a program of npm needs, by the manifest of its package.
//!
//! Pure but for the files that it reads. A range that is not understood fits every version: npm itself only warns.

use crate::package::manifest_above;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The longest first line of a script that is read.
const FIRST_LINE: u64 = 256;
/// The longest range that is kept.
const LONGEST: usize = 100;

/// A need for Node.js.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeNeed {
    /// The versions that do, as `engines` has them: `>=22.19.0`.
    pub range: String,
    /// The program that runs the script: a name to look for in `PATH`, or a path.
    pub program: String,
}

/// The Node.js that a program needs; none where it is no script of Node.js, or its package does not say.
pub fn needed_node(file: &Path) -> Option<NodeNeed> {
    let real = std::fs::canonicalize(file).ok()?;
    let program = interpreter(&real)?;
    let manifest: Value = serde_json::from_slice(&manifest_above(&real)?).ok()?;
    let range = manifest["engines"]["node"].as_str()?.trim();
    let is_plain =
        !range.is_empty() && range.len() <= LONGEST && range.chars().all(|c| (' '..='~').contains(&c));
    is_plain.then(|| NodeNeed { range: range.to_owned(), program })
}

/// The Node.js in the first line of a script.
fn interpreter(script: &Path) -> Option<String> {
    let mut first = Vec::new();
    // A pipe or a device is not waited for.
    script.metadata().ok().filter(|found| found.is_file())?;
    File::open(script).ok()?.take(FIRST_LINE).read_to_end(&mut first).ok()?;
    let first = String::from_utf8_lossy(&first);
    let mut words = first.strip_prefix("#!")?.lines().next()?.split_whitespace();
    let program = match words.next()? {
        // What stands before the program are options and variables.
        env if env.ends_with("/env") => words.find(|word| !word.starts_with('-') && !word.contains('='))?,
        program => program,
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    ["node", "nodejs"].contains(&name).then(|| program.to_owned())
}

/// Whether a version of Node.js is in a range as npm has them: `>=18.0.0 <21 || ^22.1`.
pub fn node_fits(range: &str, version: &str) -> bool {
    let Some(version) = Bound::read(version).and_then(|bound| bound.exact()) else { return true };
    range.split("||").any(|part| part_fits(part, version).unwrap_or(true))
}

type Exact = [u64; 3];

/// One that is met by all of its comparators; None where one of them is not understood.
fn part_fits(part: &str, version: Exact) -> Option<bool> {
    if let Some((from, to)) = part.split_once(" - ") {
        let (from, to) = (Bound::read(from)?, Bound::read(to)?);
        return Some(version >= from.lowest() && to.above().is_none_or(|above| version < above));
    }
    // `>= 18` is one comparator.
    let mut joined = String::new();
    for word in part.split_whitespace() {
        let is_open = joined.ends_with(['>', '<', '=', '^', '~']);
        joined.push_str(if joined.is_empty() || is_open { "" } else { " " });
        joined.push_str(word);
    }
    let mut all = true;
    for comparator in joined.split(' ').filter(|comparator| !comparator.is_empty()) {
        all &= comparator_fits(comparator, version)?;
    }
    Some(all)
}

fn comparator_fits(comparator: &str, version: Exact) -> Option<bool> {
    let (operator, bound) =
        comparator.split_at(comparator.find(|c| !"<>=^~".contains(c)).unwrap_or(comparator.len()));
    let bound = Bound::read(bound)?;
    let (lowest, above) = (bound.lowest(), bound.above());
    let is_below = |above: Option<Exact>| above.is_none_or(|above| version < above);
    Some(match operator {
        "" | "=" => version >= lowest && is_below(above),
        ">=" => version >= lowest,
        ">" => above
            .is_some_and(|above| if bound.exact().is_some() { version > lowest } else { version >= above }),
        "<" => version < lowest,
        "<=" => is_below(above),
        "^" => version >= lowest && is_below(bound.caret()),
        "~" => version >= lowest && is_below(bound.tilde()),
        _ => return None,
    })
}

/// A version of which the last numbers may be missing: `22`, `22.x`, `*`.
struct Bound(Vec<u64>);

impl Bound {
    fn read(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches(['v', '=']);
        let text = text.split(['-', '+']).next().unwrap_or(text);
        let mut numbers = Vec::new();
        for part in text.split('.').filter(|part| !part.is_empty()) {
            match part {
                "x" | "X" | "*" => break,
                number => numbers.push(number.parse().ok()?),
            }
        }
        (numbers.len() <= 3).then_some(Self(numbers))
    }

    fn exact(&self) -> Option<Exact> {
        self.0[..].try_into().ok()
    }

    fn lowest(&self) -> Exact {
        let at = |at: usize| self.0.get(at).copied().unwrap_or_default();
        [at(0), at(1), at(2)]
    }

    /// The first version behind those that it stands for; None where it stands for all.
    fn above(&self) -> Option<Exact> {
        self.next(self.0.len())
    }

    fn tilde(&self) -> Option<Exact> {
        self.next(self.0.len().min(2))
    }

    /// The first number that is not 0 stays.
    fn caret(&self) -> Option<Exact> {
        let kept = self.0.iter().position(|number| *number > 0).map_or(self.0.len(), |at| at + 1);
        self.next(kept)
    }

    /// With the number at `kept` raised, and those behind it 0.
    fn next(&self, kept: usize) -> Option<Exact> {
        let mut next = self.lowest();
        let last = kept.checked_sub(1)?;
        next[last] = next[last].saturating_add(1);
        next[kept..].fill(0);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    // issue 28, RA6: ranges as packages of agents have them
    #[test]
    fn ranges_are_compared() {
        for (range, fitting, not) in [
            (">=22.19.0", &["22.19.0", "v24.0.0"][..], &["20.20.0", "22.18.9"][..]),
            (">= 18", &["18.0.0"], &["17.9.9"]),
            (">=18.0.0 <21", &["18.0.0", "20.9.9"], &["21.0.0", "17.0.0"]),
            ("^20.10 || >=22", &["20.10.0", "20.99.0", "22.0.0"], &["20.9.0", "21.0.0"]),
            ("20.x", &["20.0.0", "20.9.0"], &["21.0.0"]),
            ("~20.1", &["20.1.5"], &["20.2.0"]),
            ("18 - 20", &["18.0.0", "20.9.9"], &["21.0.0"]),
            (">20", &["21.0.0"], &["20.9.9"]),
            (">20.1.0 <=22", &["20.1.1", "22.9.0"], &["20.1.0", "23.0.0"]),
            ("*", &["1.0.0"], &[]),
            ("", &["1.0.0"], &[]),
            // Not understood: left to npm.
            ("lts", &["1.0.0"], &[]),
        ] {
            assert!(fitting.iter().all(|version| node_fits(range, version)), "{range}");
            assert!(not.iter().all(|version| !node_fits(range, version)), "{range}");
        }
        assert!(node_fits(">=22", "not a version"));
    }

    // issue 28, RA6: the need is that of the package a script belongs to, behind links; other programs have none
    #[test]
    fn the_need_stands_in_the_manifest_of_the_package() {
        let dir = tempfile::tempdir().expect("a directory");
        let package = dir.path().join("node_modules/agent");
        std::fs::create_dir_all(package.join("dist")).expect("a directory");
        std::fs::write(
            package.join("package.json"),
            r#"{"name":"agent","version":"1.0.0","engines":{"node":">=22"}}"#,
        )
        .expect("a file");
        let linked = dir.path().join("agent");
        let script = package.join("dist/main.js");
        symlink(&script, &linked).expect("a link");
        for (first, program) in [
            ("#!/usr/bin/env node\n", Some("node")),
            ("#!/usr/bin/env -S A=b node --no-warnings\n", Some("node")),
            ("#!/opt/node/bin/node\n", Some("/opt/node/bin/node")),
            ("#!/bin/sh\n", None),
            ("\u{7f}ELF", None),
            ("", None),
        ] {
            std::fs::write(&script, first).expect("a file");
            let need = needed_node(&linked);
            assert_eq!(need.as_ref().map(|need| need.program.as_str()), program, "{first:?}");
            assert!(need.is_none_or(|need| need.range == ">=22"));
        }
        assert_eq!(needed_node(&dir.path().join("absent")), None);
    }
}
