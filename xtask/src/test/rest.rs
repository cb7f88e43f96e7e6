//! The step `rest`: the description of REST is valid, and schemathesis makes up requests from it and checks the answers.
//!
//! The daemon is the real one, with sessions that wait, run, are idle and have crashed. First only what ends nothing is called:
//! what reads, and prompts to a session that is idle and their cancels; then everything, since that soon leaves no session. Invariant: a pass means that every operation but some was
//! answered with success at least once, that the daemon ended well, that the description is the one that is checked in and valid
//! OpenAPI, and that operators are told what each metric is.

mod sessions;

use crate::openapi;
use crate::outside;
use crate::run;
use crate::venv;
use acpd_testkit::{Daemon, Exit, Http, Scratch, acpd};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Seconds of each round.
const ROUND: u32 = 10;
/// Rounds at most. The first is of what ends nothing, the second of everything; each that follows is of the operations that were
/// never answered with success, and of what reads, whose answers name sessions. So a slow machine costs time and is no failure.
const ROUNDS: u32 = 12;
const MILD_OPERATIONS: &str =
    "--include-method GET --include-operation-id promptSession --include-operation-id cancelTurn";

/// Nothing tells which event of a session asks something, and the first to cancel a turn closes it; no lines that are made up
/// are an export; a code is given to the owner at the Unix socket; a text that is made up has no word; directories and agents
/// that are made up are not there; a hand-over turns others away for a moment; and this daemon is in no fleet. Tests of acpd's own show these operations.
const NOT_MADE_UP: [&str; 13] = [
    "POST /v1/handover",
    "POST /v1/codes",
    "POST /v1/open",
    "GET /v1/nodes",
    "DELETE /v1/nodes/{name}",
    "POST /v1/nodes/{name}/drain",
    "POST /v1/nodes/{name}/undrain",
    "POST /v1/prune",
    "POST /v1/sessions/{id}/answer",
    "POST /v1/import",
    "POST /v1/sessions",
    "POST /v1/agents/{name}/check",
    "GET /v1/search",
];

/// The pages in which operators read.
const BOOK: &str = "docs";

const REQUIREMENTS: &str = include_str!("rest/requirements.txt");
const SETTINGS: &str = include_str!("rest/schemathesis.toml");

/// A daemon that knows a single token, of scope `admin`.
struct Served {
    scratch: Scratch,
    daemon: Daemon,
    token: String,
}

impl Served {
    fn start() -> Result<Self> {
        let scratch = Scratch::with_default_graces();
        let file = scratch.path("tokens.toml");
        let config = file.to_string_lossy();
        let (exit, token, stderr) =
            scratch.run(&["token", "new", "admin", "--scope", "admin", "--config", &config]);
        ensure!(exit == Exit::Code(0), "`acpd token new` failed: {stderr}");
        let scratch = scratch.config(&fs::read_to_string(&file)?);
        let daemon = scratch.serve_by(scratch.command(acpd()), "127.0.0.1:0");
        Ok(Self { scratch, daemon, token: format!("Bearer {}", token.trim()) })
    }

    fn get(&self, path: &str) -> Result<String> {
        let headers = [("Authorization", self.token.as_str())];
        let answer = Http::on(self.daemon.connect()).request("GET", path, &headers, "");
        ensure!(answer.status == 200, "GET {path} was answered with {}", answer.status);
        Ok(String::from_utf8(answer.body)?)
    }
}

/// Runs the step.
pub(crate) fn run(root: &Path) -> Result<()> {
    // Beside the build, which is not kept by git either.
    let place = outside::target_directory(root).join("rest");
    fs::create_dir_all(&place)?;
    let programs = venv::install(&place, REQUIREMENTS)?;
    // Generators of clients refuse what is not.
    let mut valid = run::command(programs.join("openapi-spec-validator"));
    valid.args(["--schema", "3.1", openapi::FILE]).current_dir(root);
    run::print_and_run(valid)?;
    let mut served = Served::start()?;
    let described = served.get("/openapi.json")?;
    let checked_in = fs::read_to_string(root.join(openapi::FILE)).unwrap_or_default();
    ensure!(checked_in == described, "{} is not what the daemon serves; build it anew", openapi::FILE);
    let check = Check { schemathesis: programs.join("schemathesis"), place, served: &served };
    let made = sessions::make(&served)?;
    let idle = made.first().context("no session")?;
    let to_idle = ["promptSession", "cancelTurn"].map(|operation| {
        format!(
            "\n[[operations]]\ninclude-operation-id = \"{operation}\"\nparameters = {{ id = \"{idle}\" }}\n"
        )
    });
    let mut accepted = check.run(1, MILD_OPERATIONS, &to_idle.concat())?;
    // They end and go one after the other now; there should be some when the last operation has its turn.
    for _ in 0..3 {
        sessions::make(&served)?;
    }
    accepted.extend(check.run(2, "", "")?);
    let expected: BTreeMap<String, String> = operations(&described)?
        .into_iter()
        .filter(|(name, _)| !NOT_MADE_UP.contains(&name.as_str()))
        .collect();
    for round in 3..=ROUNDS {
        let missing = expected.iter().filter(|(name, _)| !accepted.contains(*name));
        let missing: Vec<String> = missing.map(|(_, id)| format!(" --include-operation-id {id}")).collect();
        if missing.is_empty() {
            break;
        }
        sessions::make(&served)?;
        let filters = format!("--include-method GET{}", missing.concat());
        accepted.extend(check.run(round, &filters, "")?);
    }
    let metrics = served.get("/metrics")?;
    served.daemon.stop();
    let pages =
        fs::read_dir(root.join(BOOK))?.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    let untold = untold(&metrics, &pages.collect::<String>()).join(", ");
    ensure!(untold.is_empty(), "no page of {BOOK} says what these metrics are: {untold}");
    let missing: Vec<&str> =
        expected.keys().filter(|name| !accepted.contains(*name)).map(String::as_str).collect();
    if !missing.is_empty() {
        bail!("never answered with success, so nothing was shown of them: {}", missing.join(", "));
    }
    Ok(())
}

struct Check<'a> {
    schemathesis: PathBuf,
    place: PathBuf,
    served: &'a Served,
}

impl Check<'_> {
    /// Runs schemathesis for a round, on the operations that `filters` select; those that were answered with success.
    fn run(&self, round: u32, filters: &str, more_settings: &str) -> Result<BTreeSet<String>> {
        let settings = self.served.scratch.path("schemathesis.toml");
        let report = self.served.scratch.path("report.json");
        // In a file of ours, so that no list of processes shows the token.
        let token = format!("headers = {{ Authorization = \"{}\" }}\n", self.served.token);
        fs::write(&settings, token + SETTINGS + more_settings)?;
        let mut command = run::command(&self.schemathesis);
        command.arg("--config-file").arg(settings).args(["run", "--no-color", "--report", "json"]);
        command.arg("--report-json-path").arg(&report).args(["--max-time", &ROUND.to_string()]);
        command.args(["--seed", &round.to_string()]);
        command.args(filters.split_ascii_whitespace());
        command.arg(format!("{}/openapi.json", self.served.daemon.url())).current_dir(&self.place);
        run::print_and_run(command)?;
        accepted(&fs::read_to_string(&report)?).context("schemathesis left a report that cannot be read")
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

/// All operations: the name that a report has for each, and its `operationId`.
fn operations(described: &str) -> Result<BTreeMap<String, String>> {
    let document: Value = serde_json::from_str(described)?;
    let paths = document["paths"].as_object().context("no paths are described")?;
    let methods = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| {
            let id = operation["operationId"].as_str().unwrap_or_default();
            (format!("{} {path}", method.to_ascii_uppercase()), id.to_owned())
        })
    });
    Ok(methods.collect())
}

/// The metrics that pages for operators do not name.
fn untold<'a>(metrics: &'a str, page: &str) -> Vec<&'a str> {
    let names = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let is_told = |name: &str| page.contains(&format!("`{name}`")) || page.contains(&format!("`{name}{{"));
    names.filter(|name| !is_told(name)).collect()
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
        let all =
            operations(r#"{"paths": {"/a": {"get": {"operationId": "a"}, "delete": {"operationId": "b"}}}}"#);
        let expected =
            [("DELETE /a", "b"), ("GET /a", "a")].map(|(name, id)| (name.to_owned(), id.to_owned()));
        assert_eq!(all.expect("a description"), BTreeMap::from(expected));
        assert!(operations("{}").is_err());
    }
}
