//! The step `packages`: packs the program that was built, installs each package into an empty place, and runs the quick start
//! from there, as its user would.
//!
//! Invariants: nothing is fetched and nothing outside of `target/` changes; what was started has ended. Packages are a draft of the
//! program that tests run: that the one which is handed out needs no newer glibc is judged where it is built (`dist/build.rs`).

use crate::dist::{self, crates};
use crate::outside::{path, target_directory};
use crate::run::{self, Counts};
use crate::tree::pattern;
use acpd_testkit::{Exit, Http, Scratch, Started, connect};
use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Packs, installs and tries.
pub(super) fn run(root: &Path) -> Result<()> {
    let output = target_directory(root).join("packages-draft");
    let binary = target_directory(root).join("debug/acpd");
    let options = dist::Options {
        binary: Some(binary),
        output: Some(output.clone()),
        draft: true,
        ..Default::default()
    };
    timed("packed", || dist::run(&options, root))?;
    checked_sums(&output)?;
    let place = target_directory(root).join("packages-try");
    let empty = |name: &str| -> Result<PathBuf> {
        let place = place.join(name);
        if place.exists() {
            fs::remove_dir_all(&place)?;
        }
        fs::create_dir_all(&place)?;
        Ok(place)
    };
    let packages = Packages { output: &output, root };
    for kind in ["archive", "deb", "wheel", "npm"] {
        let place = empty(kind)?;
        let install = || match kind {
            "archive" => packages.archive(&place),
            "deb" => packages.deb(&place),
            "wheel" => packages.wheel(&place),
            _ => packages.npm(&place),
        };
        let program = timed(&format!("{kind}: installed"), install).context(kind)?;
        timed(&format!("{kind}: tried"), || quick_start(&program)).context(kind)?;
    }
    timed("npm: signals", || becomes_the_program(&place.join("npm"), root)).context("npm")?;
    timed("crates: looked into", || crates_are_whole(root, &output)).context("crates")?;
    container_file_fits(&output)
}

fn timed<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    #[expect(clippy::disallowed_methods, reason = "this is a shell: it only shows how long it took")]
    let started = Instant::now();
    let done = work()?;
    anstream::println!("{what} in {:.1} s", started.elapsed().as_secs_f64());
    Ok(done)
}

/// The packages of a directory.
struct Packages<'a> {
    output: &'a Path,
    root: &'a Path,
}

impl Packages<'_> {
    /// The only one whose name begins and ends so.
    fn only(&self, begin: &str, end: &str) -> Result<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.output)? {
            let file = entry?.path();
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(begin) && name.ends_with(end) {
                found.push(file);
            }
        }
        match found.as_slice() {
            [only] => Ok(only.clone()),
            found => bail!("{} packages are called {begin}...{end}", found.len()),
        }
    }

    fn archive(&self, place: &Path) -> Result<PathBuf> {
        let mut tar = run::line("tar --strip-components=1 -xzf", place);
        tar.arg(self.only("acpd-", "-gnu.tar.gz")?);
        perform(tar)?;
        let has = |name: &str| place.join(name).is_file();
        ensure!(
            ["LICENSE", "README.md", "man/acpd.1", "completions/_acpd"].iter().all(|name| has(name)),
            "files are missing"
        );
        Ok(place.join("acpd"))
    }

    /// Unpacked, since its scripts would change this machine; those are read by the shell that would run them.
    fn deb(&self, place: &Path) -> Result<PathBuf> {
        let package = self.only("acpd_", ".deb")?;
        for (line, to) in [("dpkg-deb -x", place.to_owned()), ("dpkg-deb -e", place.join("DEBIAN"))] {
            let mut unpack = run::line(line, place);
            unpack.arg(&package).arg(to);
            perform(unpack)?;
        }
        perform(run::line("md5sum --check --quiet DEBIAN/md5sums", place))?;
        for script in ["postinst", "prerm", "postrm"] {
            perform(run::line(&format!("sh -n DEBIAN/{script}"), place))?;
        }
        perform(run::line("bash -n usr/share/bash-completion/completions/acpd", place))?;
        let unit =
            fs::read_to_string(place.join("usr/lib/systemd/system/acpd.service")).context("the unit")?;
        let started =
            unit.lines().find_map(|line| line.strip_prefix("ExecStart=/")).context("no ExecStart=")?;
        let program = place.join(started.split(' ').next().unwrap_or_default());
        ensure!(program.is_file(), "the unit starts {}, which is not there", program.display());
        let user = unit.lines().find_map(|line| line.strip_prefix("User=")).context("no User=")?;
        let users = fs::read_to_string(place.join("usr/lib/sysusers.d/acpd.conf")).context("sysusers")?;
        ensure!(users.lines().any(|line| line.starts_with(&format!("u {user} "))), "there is no user {user}");
        ensure!(place.join("usr/share/man/man1/acpd-run.1.gz").is_file(), "there are no man pages");
        Ok(program)
    }

    fn wheel(&self, place: &Path) -> Result<PathBuf> {
        perform(run::line("python3 -m venv .", place))?;
        let mut pip = run::command(place.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]);
        pip.arg(self.only("acpd-", ".whl")?);
        perform(pip)?;
        Ok(place.join("bin/acpd"))
    }

    fn npm(&self, place: &Path) -> Result<PathBuf> {
        let mut npm = npm(
            "npm install --offline --ignore-scripts --no-audit --no-fund --loglevel=error --prefix",
            place,
            self.root,
        );
        npm.arg(place);
        for package in fs::read_dir(self.output)? {
            let file = package?.path();
            if file.extension().is_some_and(|extension| extension == "tgz") {
                npm.arg(file);
            }
        }
        perform(npm)?;
        Ok(place.join("node_modules/.bin/acpd"))
    }
}

/// One with nothing of the person's own configuration or cache.
fn npm(line: &str, place: &Path, root: &Path) -> Command {
    let mut command = run::line(line, place);
    command.env("PATH", path(root)).env("HOME", place).env("npm_config_cache", place.join("cache"));
    command.env("npm_config_update_notifier", "false");
    command
}

fn perform(command: Command) -> Result<()> {
    run::run(command, &mut Counts::default())
}

/// What is packed is what the sums are of.
fn checked_sums(output: &Path) -> Result<()> {
    perform(run::line("sha256sum --check --quiet --strict SHA256SUMS", output))
}

/// In an empty home: the version, a turn, a daemon with its pages, and its end.
fn quick_start(program: &Path) -> Result<()> {
    let home = Scratch::with_default_graces();
    let version = done(&home, program, &["--version"])?;
    ensure!(version.starts_with("acpd "), "this is no version: {version}");
    let answer = done(&home, program, &["run", "hello"])?;
    ensure!(answer.trim() == "hello", "the agent said {answer:?}");
    let (daemon, address) = served(&home, program)?;
    let url = done(&home, program, &["open", "--print"])?;
    ensure!(url.starts_with(&format!("http://{address}/#code=")), "this is no address of {address}: {url}");
    let page = Http::on(connect(address)).request("GET", "/", &[("Accept", "text/html")], "");
    let is_page = page.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
    ensure!(page.status == 200 && is_page, "the address is answered with {}", page.status);
    done(&home, program, &["stop"])?;
    let (exit, _, stderr) = daemon.end();
    ensure!(exit == Exit::Code(0), "the daemon ended with {exit:?}: {stderr}");
    Ok(())
}

/// A daemon on a free port, with all else as it is by default.
fn served(home: &Scratch, program: &Path) -> Result<(Started, SocketAddr)> {
    let mut command = home.command(program);
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let mut daemon = home.start_command(command);
    let first = daemon.next_line().context("the daemon does not say where it listens")?;
    let address = first.strip_prefix("listening on http://").with_context(|| format!("it said {first:?}"))?;
    let address = address.parse().with_context(|| address.to_owned())?;
    Ok((daemon, address))
}

/// How it ends, and what it prints.
fn outcome(home: &Scratch, program: &Path, args: &[&str]) -> (Exit, String, String) {
    let mut command = home.command(program);
    command.args(args);
    home.start_command(command).end()
}

fn done(home: &Scratch, program: &Path, args: &[&str]) -> Result<String> {
    let (exit, stdout, stderr) = outcome(home, program, args);
    ensure!(exit == Exit::Code(0), "acpd {} ended with {exit:?}: {stderr}", args.join(" "));
    Ok(stdout.trim().to_owned())
}

/// The launcher of npm: exit codes are the program's, and a signal to the process that was started is one to the program, since
/// there is no other.
fn becomes_the_program(place: &Path, root: &Path) -> Result<()> {
    let home = Scratch::with_default_graces();
    let launcher = place.join("node_modules/.bin/acpd");
    for (args, code) in [(&["run", "crash"][..], 1), (&["--no-such-flag"], 2), (&["status"], 4)] {
        let (exit, _, stderr) = outcome(&home, &launcher, args);
        ensure!(exit == Exit::Code(code), "acpd {} ended with {exit:?}: {stderr}", args.join(" "));
    }
    for (signal, end) in
        [(Signal::TERM, Exit::Code(0)), (Signal::INT, Exit::Code(0)), (Signal::KILL, Exit::Signal(9))]
    {
        let (daemon, _) = served(&home, &launcher)?;
        daemon.signal(signal);
        let (exit, _, stderr) = daemon.end();
        ensure!(exit == end, "after {signal:?} it ended with {exit:?}: {stderr}");
        let (exit, _, _) = outcome(&home, &launcher, &["status"]);
        ensure!(exit == Exit::Code(4), "{signal:?} left a daemon behind");
    }
    let npx = npm("npx --offline acpd --version", place, root);
    let version = run::answer(npx).context("npx does not run it")?;
    ensure!(version.starts_with("acpd "), "npx said {version:?}");
    // Without the program of the platform it says what is missing.
    let alone = home.path("acpd");
    fs::copy(root.join("deploy/npm/acpd"), &alone)?;
    let (exit, _, stderr) = outcome(&home, &alone, &["--version"]);
    let is_clear = stderr.contains("the package acpd-linux-") && stderr.contains("is not installed");
    ensure!(exit == Exit::Code(1) && is_clear, "it ended with {exit:?}: {stderr}");
    Ok(())
}

/// Nothing that is compiled into a crate lies outside of it, where its package has nothing. That they are built from their packages
/// is `cargo xtask dist` without `--draft`.
fn crates_are_whole(root: &Path, output: &Path) -> Result<()> {
    let include = pattern(r#"\binclude(?:_str|_bytes)?!\("([^"]+)"\)"#);
    let mut count = 0;
    for place in crates::unpacked(root, output)? {
        for name in ["Cargo.toml", "LICENSE", "README.md"] {
            ensure!(place.join(name).is_file(), "{} has no {name}", place.display());
        }
        for (name, text) in sources(&place.join("src"))? {
            // Tests of a crate are packed too, and may read what is beside it: they are run in the repository.
            if name.ends_with("tests.rs") || name.components().any(|part| part.as_os_str() == "tests") {
                continue;
            }
            let product = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            for found in include.captures_iter(product) {
                let named = found.get(1).map_or("", |it| it.as_str());
                let file = name.with_file_name("").join(named);
                ensure!(file.is_file(), "{} includes {named}, which is not in the package", name.display());
            }
        }
        count += 1;
    }
    ensure!(count > 5, "there are only {count} crates");
    Ok(())
}

/// All sources of a crate.
fn sources(place: &Path) -> Result<Vec<(PathBuf, String)>> {
    let files = crate::inspector::files(place)?;
    let sources = files.into_iter().filter(|(name, _)| name.ends_with(".rs"));
    sources.map(|(name, content)| Ok((place.join(name), String::from_utf8(content)?))).collect()
}

/// The container file copies a package that is there.
fn container_file_fits(output: &Path) -> Result<()> {
    let file = fs::read_to_string(output.join("Containerfile")).context("Containerfile")?;
    let copied = file.lines().find_map(|line| line.strip_prefix("COPY ")).context("it copies nothing")?;
    let wanted = copied.split(' ').next().unwrap_or_default();
    let mut find = run::line("find . -maxdepth 1 -name", output);
    find.arg(wanted);
    ensure!(
        run::answer(find).is_some_and(|found| !found.is_empty()),
        "it copies {wanted}, which is not there"
    );
    Ok(())
}
