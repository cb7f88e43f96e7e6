//! The files of a state directory, and the page that says so (`docs/storage.md`).

use crate::cli::{done, ids, run};
use acpd_e2e::{Answer, Daemon, Exit, Http, Scratch, until};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const PAGE: &str = include_str!("../../../../docs/storage.md");

/// The paths that the tables of the page name, each in the parts between slashes.
fn named() -> BTreeSet<&'static str> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split_once(" | ")).map(|(cell, _)| cell);
    cells.flat_map(|cell| cell.trim_end_matches('`').split("`, `")).collect()
}

/// True if a name of the page, in which words in capitals stand for others, is this path's.
fn names(pattern: &str, path: &str) -> bool {
    if let Some(folder) = pattern.strip_suffix('/') {
        let depth = folder.split('/').count();
        let above: Vec<&str> = path.split('/').take(depth).collect();
        return path.split('/').count() > depth && names(folder, &above.join("/"));
    }
    let (pattern, path): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), path.split('/').collect());
    pattern.len() == path.len() && pattern.iter().zip(path).all(|(part, name)| matches(part, name))
}

/// The same of one part: what stands between words in capitals is found in order, and a word stands for at least one byte.
fn matches(part: &str, name: &str) -> bool {
    match part.find(|byte: char| byte.is_ascii_uppercase()) {
        None => part == name,
        Some(at) => {
            let (before, rest) = part.split_at(at);
            let behind = rest.trim_start_matches(|byte: char| byte.is_ascii_uppercase());
            let Some(left) = name.strip_prefix(before) else { return false };
            (1..=left.len()).filter(|at| left.is_char_boundary(*at)).any(|at| matches(behind, &left[at..]))
        }
    }
}

// The test's own reading of the page.
#[test]
fn names_of_the_page_are_read() {
    for (pattern, path, expected) in [
        ("acpd.db", "acpd.db", true),
        ("acpd.db", "acpd.db-wal", false),
        ("sessions/XX/NAME/N.log", "sessions/a0/one-2/17.log", true),
        ("sessions/XX/NAME/N.log", "sessions/a0/one-2/.log", false),
        ("sessions/XX/NAME/N.log", "sessions/a0/1.log", false),
        ("sessions/XX/NAME/N-M.seal", "sessions/a0/one/1-2.seal", true),
        ("claims/HOST", "claims/0-1", true),
        ("agents/.staging/", "agents/.staging/1/file", true),
        ("agents/NAME/VERSION/", "agents/one/1.0/bin/one", true),
        ("agents/NAME/VERSION/", "agents/one", false),
    ] {
        assert_eq!(names(pattern, path), expected, "{pattern} {path}");
    }
    assert!(named().len() > 30 && named().contains("hooks.db-wal"), "{:?}", named());
}

/// The files below a directory, as paths from there.
fn files_below(dir: &Path) -> BTreeSet<String> {
    let below = |path: PathBuf| path.strip_prefix(dir).expect("below").to_string_lossy().into_owned();
    acpd_e2e::files_below(dir).into_iter().map(below).collect()
}

fn post(daemon: &Daemon, path: &str, body: &serde_json::Value) -> Answer {
    let headers = [("Content-Type", "application/json")];
    Http::on(daemon.connect()).request("POST", path, &headers, &body.to_string())
}

/// The files of a state directory that the page does not name.
pub(crate) fn unnamed(state: &Path) -> Vec<String> {
    let named = named();
    let is_named = |file: &String| named.iter().any(|pattern| names(pattern, file));
    files_below(state).into_iter().filter(|file| !is_named(file)).collect()
}

/// The text of all code of acpd.
fn code() -> String {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sources = ["acpd", "catalog", "eventlog", "gateway", "host", "supervisor"];
    let files = sources.map(|name| crates.join(name).join("src")).map(|dir| (files_below(&dir), dir));
    let paths = files.into_iter().flat_map(|(files, dir)| files.into_iter().map(move |file| dir.join(file)));
    paths.map(|path: PathBuf| std::fs::read_to_string(path).expect("text")).collect()
}

// issue 29: the page names every file of a state directory, and none that acpd does not know
#[test]
fn the_page_names_every_file() {
    let hook = "[[hooks]]\non = [\"turn_ended\"]\nurl = \"http://127.0.0.1:1/\"\n";
    let scratch = Scratch::new().keep("60s").config(hook);
    scratch.config_file();
    let mut daemon = scratch.serve();
    done(&scratch, &["run", "hello quokka"]);
    done(&scratch, &["run", "another"]);
    let all = ids(&scratch, &[]);
    let file = scratch.path("out.jsonl");
    let path = file.to_str().expect("text");
    done(&scratch, &["sessions", "export", &all[0], "--output", path]);
    done(&scratch, &["sessions", "delete", &all[0]]);
    done(&scratch, &["sessions", "import", path]);
    // On a busy machine a search does not wait until all is indexed.
    until("it is found", || {
        done(&scratch, &["sessions", "search", "quokka"]).contains("quokka").then_some(())
    });
    let begun =
        post(&daemon, "/v1/sessions", &json!({"agent": "example", "cwd": scratch.work(), "prompt": "hang"}))
            .json();
    let mut seen = files_below(&scratch.state());
    // Its agent outlives the daemon, and its keeper listens then.
    daemon.kill();
    until("the keeper listens", || {
        let files = files_below(&scratch.state());
        let listens = files.iter().any(|file| file.starts_with("keepers/") && file.ends_with(".sock"));
        seen.extend(files);
        listens.then_some(())
    });
    let mut daemon = scratch.serve();
    let id = begun["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(post(&daemon, &format!("/v1/sessions/{id}/terminate"), &json!({})).status, 204);
    seen.extend(files_below(&scratch.state()));
    daemon.stop();
    seen.extend(files_below(&scratch.state()));

    let named = named();
    let unnamed: Vec<_> =
        seen.iter().filter(|file| !named.iter().any(|pattern| names(pattern, file))).collect();
    assert!(unnamed.is_empty(), "docs/storage.md does not name {unnamed:?}");
    for kind in ["acpd.db", "hooks.db", "index-1.db", "acpd.reserve", "daemon.lock", "sessions/XX/NAME/N.log"]
    {
        assert!(seen.iter().any(|file| names(kind, file)), "{kind}: {seen:?}");
    }
    let code = code();
    let unknown: Vec<_> = named
        .iter()
        .filter(|pattern| !seen.iter().any(|file| names(pattern, file)))
        .filter(|pattern| !is_in(&code, pattern))
        .collect();
    assert!(unknown.is_empty(), "docs/storage.md names {unknown:?}, which acpd does not know");
    // What it says of a backup.
    let restored = scratch.path("restored");
    std::fs::create_dir(&restored).expect("it is made");
    std::fs::rename(scratch.state().join("sessions"), restored.join("sessions")).expect("it is moved");
    let restored = restored.to_str().expect("text");
    let (exit, out, err) = scratch.run(&["sessions", "list", "--state-dir", restored]);
    assert!(exit == Exit::Code(0) && out.lines().count() == 4, "{out}{err}");
    assert_eq!(run(&scratch, &["doctor"]).0, Exit::Code(0));
}

/// True if the code has the last name of a path, or what ends it: all but the words in capitals, and but what SQLite, the lock of a
/// database and a copy aside add to a name.
fn is_in(code: &str, pattern: &str) -> bool {
    let path = pattern.trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    let endings = ["-wal", "-shm", "-open", "-new", ".damaged", ".new"];
    let name = endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    let mut fixed: Vec<&str> =
        name.split(|byte: char| byte.is_ascii_uppercase()).filter(|part| part.len() > 1).collect();
    if fixed.is_empty() {
        // A name without a word of its own is known by its directory.
        fixed = path
            .rsplit('/')
            .skip(1)
            .find(|part| part.chars().any(|byte| byte.is_ascii_lowercase()))
            .into_iter()
            .collect();
    }
    !fixed.is_empty() && fixed.iter().all(|part| code.contains(part.trim_matches('.')))
}
