//! A package of npm: installed once, with its lock file, and without scripts until they were allowed.
//!
//! Which registry it is from is for npm to say, by its own configuration.

use super::consent::{Consent, decide};
use super::programs::{Program, ProgramError, Programs, find};
use super::{InstallError, Installed, hash_of_file};
use acpd_catalog::{
    PackageSpec, Scripts, Sha256From, Version, bin_of_package, install_scripts, version_of_lock,
};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// It is not to look after itself, nor to decide where it installs.
const QUIET: &[(&str, &str)] = &[("npm_config_update_notifier", "false"), ("npm_config_global", "false")];

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
    package: &PackageSpec,
    preferred: Option<&str>,
    consent: Consent,
    staging: &Path,
) -> Result<Installed, InstallError> {
    let npm = need()?;
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
    let program = Path::new("node_modules/.bin").join(bin_of_package(staging, package.name(), preferred)?);
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
