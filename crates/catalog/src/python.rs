//! What pip and uv say and leave: the lock with its hashes, a package's programs, and the paths in them.
//!
//! A virtual environment is put together under another name than it gets, and its programs name the Python in it by its
//! whole path: [`retarget`] writes them anew.

use crate::name::Version;
use serde::Deserialize;
use std::fmt::Write;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use thiserror::Error;

/// What has a path in it is not larger than this.
const SCRIPT: u64 = 1024 * 1024;

/// Why what a tool said is not understood.
#[derive(Debug, Error)]
pub enum PythonError {
    /// It has another form.
    #[error("what pip would install is not understood")]
    Form(#[source] serde_json::Error),
    /// A package has no hash.
    #[error("{0} has no SHA-256; it is not taken")]
    NoHash(String),
    /// A package is no wheel.
    #[error("{0} is a source distribution, whose installation runs code of its own")]
    NoWheel(String),
}

#[derive(Deserialize)]
struct Report {
    install: Vec<Install>,
}

#[derive(Deserialize)]
struct Install {
    metadata: Metadata,
    download_info: DownloadInfo,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    version: String,
}

#[derive(Deserialize)]
struct DownloadInfo {
    url: String,
    archive_info: Option<ArchiveInfo>,
}

#[derive(Deserialize)]
struct ArchiveInfo {
    hash: Option<String>,
    #[serde(default)]
    hashes: std::collections::BTreeMap<String, String>,
}

/// The lock that pip's report of what it would install makes: a line for each package, with its hash.
///
/// # Errors
/// It is not understood, or something in it cannot be locked.
pub fn lock_of_report(report: &[u8], wheels_only: bool) -> Result<String, PythonError> {
    let report: Report = serde_json::from_slice(report).map_err(PythonError::Form)?;
    let mut lines = Vec::new();
    for Install { metadata: Metadata { name, version }, download_info } in report.install {
        let package = format!("{name}=={version}");
        let path = download_info.url.split(['?', '#']).next().unwrap_or_default();
        if wheels_only && !path.ends_with(".whl") {
            return Err(PythonError::NoWheel(package));
        }
        let found = download_info.archive_info.and_then(|archive| {
            let older = || archive.hash.as_deref()?.strip_prefix("sha256=").map(str::to_owned);
            archive.hashes.get("sha256").cloned().or_else(older)
        });
        let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "._+!-".contains(c));
        match found {
            Some(hash) if is_plain(&name) && is_plain(&version) && is_plain(&hash) => {
                lines.push(format!("{package} --hash=sha256:{hash}"));
            }
            _ => return Err(PythonError::NoHash(package)),
        }
    }
    lines.sort();
    let mut text = String::new();
    for line in lines {
        writeln!(text, "{line}").expect("a string takes text");
    }
    Ok(text)
}

/// The version of a package in a lock, of pip or of uv.
pub fn version_of_pins(lock: &str, package: &str) -> Option<Version> {
    let wanted = normal(package);
    lock.lines().find_map(|line| {
        let (name, rest) = line.split_once("==")?;
        let name = name.split('[').next().unwrap_or_default();
        let version = rest.split([' ', '\\', ';']).next().unwrap_or_default().trim();
        (normal(name.trim()) == wanted).then(|| Version::try_from(version.to_owned()).ok()).flatten()
    })
}

/// A name as indexes compare it.
fn normal(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        match c {
            '-' | '_' | '.' if out.ends_with('-') => {}
            '-' | '_' | '.' => out.push('-'),
            c => out.push(c.to_ascii_lowercase()),
        }
    }
    out
}

/// Whether a version of Python is among those that are wanted, as packages say it: `>=3.11,<3.14`. What is not understood is
/// left to the tools.
pub fn python_fits(wanted: &str, version: &str) -> bool {
    let numbers =
        |text: &str| -> Vec<u32> { text.split('.').map_while(|part| part.trim().parse().ok()).collect() };
    let version = numbers(version);
    !version.is_empty()
        && wanted.split(',').map(str::trim).all(|bound| {
            if let Some(bound) = bound.strip_prefix(">=") {
                version >= numbers(bound)
            } else if let Some(bound) = bound.strip_prefix('<').filter(|bound| !bound.starts_with('=')) {
                version < numbers(bound)
            } else {
                true
            }
        })
}

/// The programs of a package that is installed in a virtual environment.
pub fn console_scripts(venv: &Path, package: &str) -> Vec<String> {
    let dirs = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let wanted = normal(package);
    let is_of = |path: &Path| {
        let name =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".dist-info"));
        name.and_then(|name| name.rsplit_once('-')).is_some_and(|(name, _)| normal(name) == wanted)
    };
    let pythons = dirs(&venv.join("lib")).map(|python| python.join("site-packages"));
    let found = pythons.flat_map(|site| dirs(&site).collect::<Vec<_>>()).find(|path| is_of(path));
    let text = found
        .and_then(|info| std::fs::read_to_string(info.join("entry_points.txt")).ok())
        .unwrap_or_default();
    let mut in_section = false;
    let mut programs = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            in_section = line == "[console_scripts]";
        } else if in_section && let Some((name, _)) = line.split_once('=') {
            programs.push(name.trim().to_owned());
        }
    }
    programs
}

/// Puts `to` in the place of `from` in the programs of a directory, as text. Each is written anew: another file may share its
/// content with a cache.
///
/// # Errors
/// What the operating system says.
pub fn retarget(bin: &Path, from: &Path, to: &Path) -> io::Result<()> {
    let (from, to) = (from.as_os_str().as_encoded_bytes(), to.as_os_str().as_encoded_bytes());
    for entry in std::fs::read_dir(bin)? {
        let path = entry?.path();
        let metadata = std::fs::symlink_metadata(&path)?;
        if !metadata.is_file() || metadata.len() > SCRIPT {
            continue;
        }
        let Some(changed) = replaced(&std::fs::read(&path)?, from, to) else { continue };
        let mut new = path.clone().into_os_string();
        new.push(".new");
        let mode = metadata.permissions().mode() & 0o777;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(&changed)?;
        file.set_permissions(Permissions::from_mode(mode))?;
        std::fs::rename(&new, &path)?;
    }
    Ok(())
}

/// None where it does not occur.
fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let (mut rest, mut found) = (text, false);
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to);
        (rest, found) = (&rest[at + from.len()..], true);
    }
    out.extend_from_slice(rest);
    found.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    // issue 14: resolved once, locked with hashes
    #[test]
    fn a_report_becomes_a_lock() {
        let item = |name: &str, file: &str, hash: &str| {
            format!(
                r#"{{"metadata":{{"name":"{name}","version":"1.0"}},"download_info":{{"url":"https://h.example/{file}","archive_info":{hash}}}}}"#
            )
        };
        let report = |items: &[String]| format!(r#"{{"version":"1","install":[{}]}}"#, items.join(","));
        let (wheel, older) = (r#"{"hashes":{"sha256":"aa"}}"#, r#"{"hash":"sha256=bb"}"#);
        let two = report(&[item("X_y", "x.whl", wheel), item("b", "b.whl#frag", older)]);
        let lock = lock_of_report(two.as_bytes(), true).expect("it is understood");
        assert_eq!(lock, "X_y==1.0 --hash=sha256:aa\nb==1.0 --hash=sha256:bb\n");
        assert_eq!(version_of_pins(&lock, "x-Y").map(|it| it.to_string()).as_deref(), Some("1.0"));
        let of_uv = "# made\nx-y[acp]==2.0 \\\n    --hash=sha256:aa\n";
        assert_eq!(version_of_pins(of_uv, "x.y").map(|it| it.to_string()).as_deref(), Some("2.0"));
        let source = report(&[item("x", "x.tar.gz", wheel)]);
        assert!(matches!(lock_of_report(source.as_bytes(), true), Err(PythonError::NoWheel(_))));
        assert!(lock_of_report(source.as_bytes(), false).is_ok());
        let bare = report(&[item("x", "x.whl", "{}")]);
        assert!(matches!(lock_of_report(bare.as_bytes(), true), Err(PythonError::NoHash(_))));
        let odd = report(&[item("x --hash", "x.whl", wheel)]);
        assert!(matches!(lock_of_report(odd.as_bytes(), true), Err(PythonError::NoHash(_))));
        assert!(matches!(lock_of_report(b"no", true), Err(PythonError::Form(_))));
    }

    // issue 14: what was put together elsewhere works under its own name
    #[test]
    fn programs_name_the_place_that_they_get() {
        let dir = tempfile::tempdir().expect("a directory");
        let (bin, cache) = (dir.path().join("bin"), dir.path().join("cache"));
        std::fs::create_dir(&bin).expect("a directory");
        std::fs::write(&cache, "#!/stage/bin/python\nat /stage\n").expect("a file");
        std::fs::set_permissions(&cache, Permissions::from_mode(0o755)).expect("it is ours");
        std::fs::hard_link(&cache, bin.join("x")).expect("another name");
        std::os::unix::fs::symlink("/stage/python", bin.join("python")).expect("a link");
        retarget(&bin, Path::new("/stage"), Path::new("/final")).expect("they are written");
        let read = |path: &Path| std::fs::read_to_string(path).expect("a text");
        assert_eq!(read(&bin.join("x")), "#!/final/bin/python\nat /final\n");
        assert_eq!(bin.join("x").metadata().expect("it is there").permissions().mode() & 0o777, 0o755);
        assert_eq!(read(&cache), "#!/stage/bin/python\nat /stage\n", "the other name keeps its content");
        assert_eq!(std::fs::read_dir(&bin).expect("it is there").count(), 2);
    }

    // issue 14: a Python that is too old is told before anything is fetched
    #[test]
    fn a_python_fits_or_does_not() {
        for (wanted, version, fits) in [
            (">=3.11,<3.14", "3.11.7", true),
            (">=3.11,<3.14", "3.14.0", false),
            (">=3.11, <3.14", "3.13.9", true),
            (">=3.12", "3.9.2", false),
            (">=3.9", "3.10.0", true),
            ("", "3.9.2", true),
            ("!=3.12", "3.12.0", true),
            (">=3.9", "", false),
        ] {
            assert_eq!(python_fits(wanted, version), fits, "{wanted} {version}");
        }
    }

    // issue 14: a package is run by its program
    #[test]
    fn the_programs_of_a_package_are_known() {
        let dir = tempfile::tempdir().expect("a directory");
        let info = dir.path().join("lib/python3.11/site-packages/Hermes_Agent-0.19.dist-info");
        std::fs::create_dir_all(&info).expect("a directory");
        let text = "[console_scripts]\nhermes = a:b\nhermes-acp=a:c\n\n[other]\nx = y\n";
        std::fs::write(info.join("entry_points.txt"), text).expect("a file");
        assert_eq!(console_scripts(dir.path(), "hermes-agent"), ["hermes", "hermes-acp"]);
        assert!(console_scripts(dir.path(), "hermes").is_empty());
    }
}
