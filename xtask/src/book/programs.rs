//! What runs TypeScript and Python of pages: the packages under `sdk/`, and the compiler.
//!
//! All TypeScript is compiled at once, which is what takes time. Not here: running it.

use super::page::{Act, Language, Step};
use crate::outside::{beside, path, target_directory};
use crate::run::{self, Counts};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// As strict as the package itself is.
const SETTINGS: &str = r#"{ "compilerOptions": {
    "target": "ES2022", "module": "NodeNext", "lib": ["ES2023", "DOM", "DOM.Iterable", "DOM.AsyncIterable"], "types": ["node"],
    "strict": true, "exactOptionalPropertyTypes": true, "noUncheckedIndexedAccess": true, "noImplicitOverride": true,
    "moduleDetection": "force", "skipLibCheck": true, "noEmitOnError": true, "outDir": "built" },
    "include": ["*.ts"] }"#;

/// The environment that the tests of `sdk/python` have, made if it is not there.
const INSTALL: &str = "import check, pathlib, sys; check.install(pathlib.Path(sys.argv[1]).absolute())";

/// The programs of all pages, compiled.
pub(super) struct Programs {
    place: PathBuf,
    root: PathBuf,
    compiled: BTreeMap<(String, usize), PathBuf>,
}

impl Programs {
    /// Compiles what `pages` have.
    pub(super) fn new(pages: &[(String, Vec<Step>)], root: &Path) -> Result<Self> {
        let place = target_directory(root).join("book-samples");
        let mut programs = Self { place, root: root.to_owned(), compiled: BTreeMap::new() };
        let all = pages.iter().flat_map(|(page, steps)| steps.iter().map(move |step| (page, step)));
        let typed: Vec<(&String, &Step)> = all.filter(|(_, step)| is(step, Language::TypeScript)).collect();
        if !typed.is_empty() {
            programs.compile(&typed)?;
        }
        if pages.iter().any(|(_, steps)| steps.iter().any(|step| is(step, Language::Python))) {
            let mut install = beside("python3 -B -c", "sdk/python", root);
            install.arg(INSTALL).arg(target_directory(root).join("sdk-python"));
            run::run(install, &mut Counts::default())?;
        }
        Ok(programs)
    }

    fn compile(&mut self, samples: &[(&String, &Step)]) -> Result<()> {
        let (place, sdk) = (&self.place, self.root.join("sdk/typescript"));
        if place.exists() {
            fs::remove_dir_all(place)?;
        }
        let package = place.join("node_modules/acpd-client");
        fs::create_dir_all(&package)?;
        let installed = sdk.join("node_modules");
        if !installed.exists() {
            run::run(beside("npm ci", "sdk/typescript", &self.root), &mut Counts::default())?;
        }
        for name in ["@agentclientprotocol", "@types"] {
            symlink(installed.join(name), place.join("node_modules").join(name))?;
        }
        fs::copy(sdk.join("package.json"), package.join("package.json"))?;
        let compiler = installed.join("typescript/bin/tsc");
        let tsc = || {
            let mut command = run::command("node");
            command.arg(&compiler).args(["--pretty", "false"]).env("PATH", path(&self.root));
            command
        };
        let mut build = tsc();
        build.arg("-p").arg(sdk.join("tsconfig.build.json")).arg("--outDir").arg(package.join("dist"));
        printed(build).context("the package for TypeScript is not built")?;
        fs::write(place.join("package.json"), r#"{ "type": "module" }"#)?;
        fs::write(place.join("tsconfig.json"), SETTINGS)?;
        for (at, (page, step)) in samples.iter().enumerate() {
            fs::write(place.join(format!("sample{at}.ts")), &step.text)?;
            let built = place.join(format!("built/sample{at}.js"));
            self.compiled.insert(((*page).clone(), step.line), built);
        }
        let mut check = tsc();
        check.current_dir(place).args(["-p", "."]);
        let Err(error) = printed(check) else { return Ok(()) };
        bail!("{}", placed(&error.to_string(), samples))
    }

    /// The command that runs a program of a page, but for the text, which goes into a file in this directory.
    pub(super) fn source(&self, page: &str, step: &Step) -> Result<(String, &'static str)> {
        match self.compiled.get(&(page.to_owned(), step.line)) {
            Some(built) => Ok((fs::read_to_string(built)?, "mjs")),
            None => Ok((step.text.clone(), "py")),
        }
    }

    /// Where node finds the packages.
    pub(super) fn modules(&self) -> PathBuf {
        self.place.join("node_modules")
    }

    /// Where Python finds the package of `sdk/python`.
    pub(super) fn python_path(&self) -> PathBuf {
        self.root.join("sdk/python/src")
    }

    /// Where programs are looked for: a Python with what the package depends on, a Node.js that is new enough.
    pub(super) fn path(&self) -> Result<OsString> {
        let python = target_directory(&self.root).join("sdk-python/bin");
        let machine = path(&self.root);
        Ok(std::env::join_paths(std::iter::once(python).chain(std::env::split_paths(&machine)))?)
    }
}

fn is(step: &Step, wanted: Language) -> bool {
    matches!(step.act, Act::Program { language, .. } if language == wanted)
}

/// Runs a command; an error is what it prints.
fn printed(mut command: Command) -> Result<()> {
    let output = command.output().context("cannot be started")?;
    if !output.status.success() {
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        bail!("{out}{err}");
    }
    Ok(())
}

/// What the compiler says, with the pages' names and lines.
fn placed(said: &str, samples: &[(&String, &Step)]) -> String {
    let place = crate::tree::pattern(r"(?m)^sample(\d+)\.ts\((\d+),(\d+)\)");
    let replaced = place.replace_all(said, |found: &regex_lite::Captures<'_>| {
        let number = |at: usize| found[at].parse::<usize>().unwrap_or(0);
        let (page, step) = samples[number(1)];
        format!("{page}:{}:{}", step.line + number(2), &found[3])
    });
    replaced.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_compiler_says_is_said_of_the_page() {
        let act = Act::Program { language: Language::TypeScript, exit: 0 };
        let step = Step { line: 40, text: String::new(), act, prints: None };
        let page = "docs/a.md".to_owned();
        let said = "sample0.ts(3,5): error TS1: no\n  more\n";
        assert_eq!(placed(said, &[(&page, &step)]), "docs/a.md:43:5: error TS1: no\n  more");
    }
}
