//! A package of npm: installed once, with its lock file, and without scripts until they were allowed.
//!
//! Which registry it is from is for npm to say, by its own configuration.

use super::consent::{Consent, decide};
use super::programs::{Program, ProgramError, Programs, find};
use super::{InstallError, Installed, hash_of_file};
use acpd_catalog::{
    PackageRun, PackageSpec, ProgramName, Scripts, Sha256From, Version, bin_of_package, install_scripts,
    version_of_lock,
};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// It is not to look after itself; and whether and where it installs is said here, over the files of its configuration.
const QUIET: &[(&str, &str)] = &[
    ("npm_config_update_notifier", "false"),
    ("npm_config_global", "false"),
    ("npm_config_location", "project"),
    ("npm_config_dry_run", "false"),
    ("npm_config_save", "true"),
    ("npm_config_package_lock", "true"),
    ("npm_config_package_lock_only", "false"),
];

/// Settings of npm that decide whether something is installed, what for, and where. `npm run` and `npx` hand all of theirs
/// to what they start in variables, and acpd may be that. Registry, proxy, cache and logins are not among them.
const OF_THE_CALLER: [&str; 29] = [
    "also",
    "before",
    "bin_links",
    "cpu",
    "dry_run",
    "global",
    "global_style",
    "ignore_scripts",
    "include",
    "include_workspace_root",
    "install_links",
    "install_strategy",
    "json",
    "legacy_bundling",
    "libc",
    "local_prefix",
    "location",
    "omit",
    "only",
    "os",
    "package_lock",
    "package_lock_only",
    "prefix",
    "production",
    "shrinkwrap",
    "workspace",
    "workspaces",
    "workspaces_update",
    "save",
];

/// Whether a variable is one of npm's that a call of acpd's must not inherit. Names are compared as npm does it: without
/// case, and `-` is `_`.
pub(super) fn is_of_caller(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_lowercase().replace('-', "_");
    let setting = name.strip_prefix("npm_config_");
    setting.is_some_and(|setting| setting.starts_with("save_") || OF_THE_CALLER.contains(&setting))
}

fn npm() -> Option<PathBuf> {
    find(&["npm"])
}

/// Whether it is there.
pub(crate) fn has_npm() -> bool {
    npm().is_some()
}

fn need() -> Result<PathBuf, InstallError> {
    npm().ok_or_else(|| {
        InstallError::Refused("npm is not installed, or not in PATH; it comes with Node.js".to_owned())
    })
}

/// The version that a package has now, where it names none of its own.
pub(crate) async fn newest(
    programs: &Programs,
    package: &PackageSpec,
    cwd: &Path,
) -> Result<Version, InstallError> {
    let npm = need()?;
    let args = ["view", &package.spec(), "version", "--json"].map(OsString::from).to_vec();
    let what = format!("npm view {package}");
    let said = programs.run(Program { what: &what, program: &npm, args, cwd, env: QUIET }).await;
    let said = said.map_err(|error| explained(error, package))?;
    let said: Value = serde_json::from_slice(&said).unwrap_or_default();
    let version = said.as_array().and_then(|versions| versions.last()).unwrap_or(&said).as_str();
    let version = version.and_then(|version| Version::try_from(version.to_owned()).ok());
    version.ok_or_else(|| InstallError::Refused(format!("npm knows no {package}")))
}

/// What npm says by a code where there is no such package, or no such version of it. Of a package that it needs, npm's own
/// lines tell.
fn explained(error: ProgramError, package: &PackageSpec) -> InstallError {
    let said = match &error {
        ProgramError::Failed { said, .. } => said.as_str(),
        _ => "",
    };
    let name = package.name();
    let is_of_it = said.contains(&format!("{name}@"));
    // A view is of nothing else.
    if said.contains("No match found for version") || is_of_it && said.contains("ETARGET") {
        return InstallError::Refused(format!(
            "npm has no {package}; `npm view {name} versions` lists what it has"
        ));
    }
    if is_of_it && said.contains("E404") {
        return InstallError::Refused(format!("npm knows no package {name}"));
    }
    error.into()
}

pub(crate) async fn install(
    programs: &Programs,
    run: &PackageRun,
    preferred: Option<&str>,
    consent: Consent,
    staging: &Path,
) -> Result<Installed, InstallError> {
    let npm = need()?;
    let package = &run.package;
    programs.told.line(&format!("installing {package} with npm"));
    // So that no directory above counts as the place to install into.
    std::fs::write(staging.join("package.json"), "{\"private\": true}\n")?;
    let mut args: Vec<OsString> = [
        "install",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--omit=dev",
        "--save-exact",
        "--package-lock=true",
        "--bin-links=true",
        "--prefix",
    ]
    .map(OsString::from)
    .to_vec();
    args.extend([staging.into(), package.spec().into()]);
    let what = format!("npm install {package}");
    let ran = programs.run(Program { what: &what, program: &npm, args, cwd: staging, env: QUIET }).await;
    ran.map_err(|error| explained(error, package))?;
    let version = version_of_lock(staging, package.name())?;
    let scripts = decide(consent, &install_scripts(staging)?, &programs.told).await?;
    if scripts == Scripts::Run {
        let mut args: Vec<OsString> =
            ["rebuild", "--ignore-scripts=false", "--foreground-scripts", "--dangerously-allow-all-scripts"]
                .map(OsString::from)
                .to_vec();
        args.extend(["--prefix".into(), OsString::from(staging)]);
        let what = format!("the install scripts of {package}");
        programs.run(Program { what: &what, program: &npm, args, cwd: staging, env: QUIET }).await?;
    }
    let cmd = run.cmd.as_ref().map(ProgramName::as_str);
    let program = bin_of_package(staging, package.name(), cmd, preferred)?;
    let program = Path::new("node_modules/.bin").join(program);
    if !staging.join(&program).exists() {
        return Err(InstallError::Refused(format!("npm has made no program {}", program.display())));
    }
    let lock = staging.join("package-lock.json");
    Ok(Installed {
        version,
        program,
        sha256: hash_of_file(&lock)?,
        sha256_from: Sha256From::Lock,
        scripts,
        tool: Some("npm"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // quirk npm-run-settings (npm): what npm run hands on of whether and where to install does not reach acpd's own call
    #[test]
    fn settings_of_a_caller_are_not_inherited() {
        for dropped in [
            "npm_config_dry_run",
            "NPM_CONFIG_DRY_RUN",
            "npm_config_package-lock-only",
            "npm_config_location",
            "npm_config_save_dev",
            "npm_config_workspace",
            "npm_config_workspaces",
        ] {
            assert!(is_of_caller(OsStr::new(dropped)), "{dropped}");
        }
        let stays =
            ["npm_config_registry", "npm_config_cache", "npm_config_https_proxy", "npm_lifecycle_event"];
        for stays in stays.into_iter().chain(["npm_config_//registry.test/:_authToken", "PATH", "dry_run"]) {
            assert!(!is_of_caller(OsStr::new(stays)), "{stays}");
        }
    }
}
