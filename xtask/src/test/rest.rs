//! The step `rest`: the description of REST is valid, and schemathesis makes up requests from it and checks the answers.
//!
//! The daemon is the real one, with sessions that wait, run, are idle and have crashed. First only what reads is called,
//! then everything, since that soon leaves nothing to read. Invariant: a pass means that every operation was answered
//! with success at least once, that the daemon ended well, that the description is the one that is checked in and valid
//! OpenAPI, and that operators are told what each metric is.

mod sessions;

use crate::child::{self, CommandLine, Counts, RunError};
use crate::daemon::{Daemon, DaemonError};
use crate::openapi::{self, OpenapiError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Seconds for what only reads, and for everything.
const READING: u32 = 25;
const ALL: u32 = 30;

const OPERATIONS: &str = "docs/operations.md";

const REQUIREMENTS: &str = include_str!("rest/requirements.txt");
const SETTINGS: &str = include_str!("rest/schemathesis.toml");

/// Why the step failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RestError {
    #[error("cannot use {}", path.display())]
    Path {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    #[error(transparent)]
    Openapi(#[from] OpenapiError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("{} is not what the daemon serves; build it anew", openapi::FILE)]
    Stale,
    #[error("the answer of the daemon is not what it should be: {0}")]
    Unexpected(String),
    #[error("schemathesis left a report that cannot be read")]
    Report(#[source] serde_json::Error),
    #[error("{OPERATIONS} does not say what these metrics are: {0}")]
    Untold(String),
    #[error("never answered with success, so nothing was shown of them: {0}")]
    NeverAccepted(String),
}

/// Runs the step.
pub(super) fn run(root: &Path) -> Result<(), RestError> {
    // Beside the build, which is not kept by git either.
    let place = super::target_directory(root).join("rest");
    fs::create_dir_all(&place).map_err(|source| RestError::Path { path: place.clone(), source })?;
    let programs = install(&place)?;
    // Generators of clients refuse what is not.
    let valid =
        CommandLine::new(&programs.join("openapi-spec-validator").to_string_lossy(), "--schema 3.1", root)
            .with_args(openapi::FILE);
    anstream::println!("{valid}");
    child::run(&valid, &mut Counts::default(), &mut io::stdout())?;
    let schemathesis = programs.join("schemathesis");
    let daemon = Daemon::start()?;
    let described = openapi::served(&daemon)?;
    if fs::read_to_string(root.join(openapi::FILE)).ok().as_ref() != Some(&described) {
        return Err(RestError::Stale);
    }
    let mut accepted = BTreeSet::new();
    let check = Check { schemathesis, place, daemon: &daemon };
    sessions::make(&daemon)?;
    accepted.extend(check.run("reading", &format!("--max-time {READING} --include-method GET"))?);
    // They end and go one after the other now; there should be some when the last operation has its turn.
    for _ in 0..3 {
        sessions::make(&daemon)?;
    }
    accepted.extend(check.run("all", &format!("--max-time {ALL}"))?);
    let metrics = daemon.ask("GET", "/metrics", &[], "")?.text();
    let metrics = metrics.map_err(|error| RestError::Unexpected(format!("no metrics: {error}")))?;
    daemon.stop()?;
    let operations_page = fs::read_to_string(root.join(OPERATIONS)).unwrap_or_default();
    let untold = untold(&metrics, &operations_page);
    if !untold.is_empty() {
        return Err(RestError::Untold(untold.join(", ")));
    }
    let missing: Vec<String> = operations(&described)?.difference(&accepted).cloned().collect();
    if missing.is_empty() { Ok(()) } else { Err(RestError::NeverAccepted(missing.join(", "))) }
}

struct Check<'a> {
    schemathesis: PathBuf,
    place: PathBuf,
    daemon: &'a Daemon,
}

impl Check<'_> {
    /// Runs schemathesis; the operations that were answered with success.
    fn run(&self, name: &str, options: &str) -> Result<BTreeSet<String>, RestError> {
        let settings = self.daemon.directory().join("schemathesis.toml");
        let report = self.daemon.directory().join(format!("{name}.json"));
        // In a file of ours, so that no list of processes shows the token.
        let token = format!("headers = {{ Authorization = \"Bearer {}\" }}\n", self.daemon.token());
        fs::write(&settings, token + SETTINGS)
            .map_err(|source| RestError::Path { path: settings.clone(), source })?;
        let line = CommandLine::new(&self.schemathesis.to_string_lossy(), "--config-file", &self.place)
            .with_arg(settings.to_string_lossy())
            .with_args("run --no-color --report json --report-json-path")
            .with_arg(report.to_string_lossy())
            .with_args(options)
            .with_arg(format!("{}/openapi.json", self.daemon.url()));
        anstream::println!("{line}");
        child::run(&line, &mut Counts::default(), &mut io::stdout())?;
        let text = fs::read_to_string(&report).map_err(|source| RestError::Path { path: report, source })?;
        accepted(&text).map_err(RestError::Report)
    }
}

/// The operations of which a report says that requests were accepted.
fn accepted(report: &str) -> Result<BTreeSet<String>, serde_json::Error> {
    #[derive(serde::Deserialize)]
    struct Report {
        valid_rates: BTreeMap<String, BTreeMap<String, Phase>>,
    }
    #[derive(serde::Deserialize)]
    struct Phase {
        accepted: u64,
    }
    let Report { valid_rates } = serde_json::from_str(report)?;
    let any = |phases: &BTreeMap<String, Phase>| phases.values().any(|phase| phase.accepted > 0);
    Ok(valid_rates.into_iter().filter(|(_, phases)| any(phases)).map(|(operation, _)| operation).collect())
}

/// All operations, as a report names them.
fn operations(described: &str) -> Result<BTreeSet<String>, RestError> {
    let document: Value = serde_json::from_str(described).map_err(OpenapiError::Json)?;
    let paths = document["paths"].as_object();
    let paths = paths.ok_or_else(|| RestError::Unexpected("no paths are described".to_owned()))?;
    let methods = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().into_iter().flat_map(|item| item.keys());
        methods.map(move |method| format!("{} {path}", method.to_ascii_uppercase()))
    });
    Ok(methods.collect())
}

/// The metrics that a page for operators does not name.
fn untold<'a>(metrics: &'a str, page: &str) -> Vec<&'a str> {
    let names = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let is_told = |name: &str| page.contains(&format!("`{name}`")) || page.contains(&format!("`{name}{{"));
    names.filter(|name| !is_told(name)).collect()
}

/// The programs in an environment of their own, made when it is not there or others were asked for before.
fn install(place: &Path) -> Result<PathBuf, RestError> {
    let (environment, stamp) = (place.join("venv"), place.join("venv/installed.txt"));
    let programs = environment.join("bin");
    if fs::read_to_string(&stamp).ok().as_deref() == Some(REQUIREMENTS) {
        return Ok(programs);
    }
    let wanted = place.join("requirements.txt");
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| RestError::Path { path, source }
    };
    fs::write(&wanted, REQUIREMENTS).map_err(failed(&wanted))?;
    let make = CommandLine::new("python3", "-m venv --clear", place).with_arg(environment.to_string_lossy());
    let pip = programs.join("python").to_string_lossy().into_owned();
    let fetch = CommandLine::new(
        &pip,
        "-m pip install --quiet --disable-pip-version-check --only-binary :all: -r requirements.txt",
        place,
    );
    for line in [make, fetch] {
        anstream::println!("{line}");
        child::run(&line, &mut Counts::default(), &mut io::stdout())?;
    }
    fs::write(&stamp, REQUIREMENTS).map_err(failed(&stamp))?;
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_operations_that_were_accepted_count() {
        let report = r#"{"valid_rates": {
            "GET /a": {"coverage": {"accepted": 0, "rejected": 3}, "fuzzing": {"accepted": 1, "rejected": 0}},
            "GET /b": {"coverage": {"accepted": 0, "rejected": 3}}}}"#;
        assert_eq!(accepted(report).expect("a report"), BTreeSet::from(["GET /a".to_owned()]));
        assert!(accepted("{}").is_err());
    }

    #[test]
    fn metrics_that_are_not_told_are_found() {
        let metrics = "# TYPE acpd_a gauge\nacpd_a 1\n# TYPE acpd_b counter\n# TYPE acpd_c counter\n";
        assert_eq!(untold(metrics, "`acpd_a{state}` and `acpd_b`, not acpd_c"), ["acpd_c"]);
    }

    #[test]
    fn operations_are_named_as_in_a_report() {
        let all = operations(r#"{"paths": {"/a": {"get": {}, "delete": {}}}}"#).expect("a description");
        assert_eq!(all, BTreeSet::from(["DELETE /a".to_owned(), "GET /a".to_owned()]));
        assert!(operations("{}").is_err());
    }
}
