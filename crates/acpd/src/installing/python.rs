//! A package of PyPI, in a virtual environment of its own: by uv where it is installed, else by Python's own pip.
//!
//! It is resolved once, into a lock with the hash of each package, and installed from that lock. Only wheels are taken, since
//! a source distribution runs code of its own when it is installed, unless that was allowed.

use super::consent::Consent;
use super::programs::{Program, ProgramError, Programs, find};
use super::{InstallError, Installed, hash_of_file};
use acpd_catalog::{
    PackageSpec, Scripts, Sha256From, Version, console_scripts, lock_of_report, python_fits, retarget,
    version_of_pins,
};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const VENV: &str = "venv";
const LOCK: &str = "requirements.lock";
/// Nothing of the user's own beside the environment, and no question.
const QUIET: &[(&str, &str)] = &[
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("PIP_NO_INPUT", "1"),
    ("PIP_USER", "false"),
    ("PYTHONNOUSERSITE", "1"),
    ("UV_NO_PROGRESS", "1"),
];
/// Names under which a Python may be there, the one that is meant by default first.
const PYTHONS: [&str; 7] =
    ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10", "python3.9"];
/// The first whose pip can say what it would install.
const OLDEST: &str = ">=3.9";

/// What installs a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PythonTool {
    Uv(PathBuf),
    Pip,
}

impl PythonTool {
    /// The one that this machine has.
    pub(crate) fn here() -> Option<Self> {
        match find(&["uv"]) {
            Some(uv) => Some(Self::Uv(uv)),
            None => find(&PYTHONS).map(|_| Self::Pip),
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Uv(_) => "uv",
            Self::Pip => "pip",
        }
    }
}

/// A Python here of the versions that are wanted.
async fn python(programs: &Programs, wanted: &str, cwd: &Path) -> Result<PathBuf, InstallError> {
    let mut seen = Vec::new();
    for name in PYTHONS {
        let Some(python) = find(&[name]) else { continue };
        let ask = "import sys; print('%d.%d.%d' % sys.version_info[:3])";
        let args = vec!["-c".into(), ask.into()];
        let ran = programs.run(Program { what: name, program: &python, args, cwd, env: QUIET }).await;
        // One that does not run, as where a version switcher has none behind the name, is none.
        let Ok(said) = ran else { continue };
        let version = String::from_utf8_lossy(&said).trim().to_owned();
        if python_fits(wanted, &version) && python_fits(OLDEST, &version) {
            return Ok(python);
        }
        seen.push(format!("{name} is {}", crate::clean::line(&version, 40)));
    }
    let seen = if seen.is_empty() { "there is none in PATH".to_owned() } else { seen.join(", ") };
    let wanted = if wanted.is_empty() { OLDEST } else { wanted };
    Err(InstallError::Refused(format!(
        "it needs Python {wanted}, and {seen}; install one as python3.N in PATH, or uv, which brings its own"
    )))
}

/// The version that a package has now, for the Python of an installed version of it.
pub(crate) async fn newest(
    programs: &Programs,
    package: &PackageSpec,
    by_uv: bool,
    version_dir: &Path,
    cwd: &Path,
) -> Result<Version, InstallError> {
    let inside = version_dir.join(VENV).join("bin/python");
    let package = package.newest();
    let what = format!("looking for {package}");
    let lock = if by_uv {
        let uv =
            find(&["uv"]).ok_or_else(|| InstallError::Refused("uv is not in PATH any more".to_owned()))?;
        let wish = cwd.join("requirements.in");
        std::fs::write(&wish, format!("{}\n", package.spec()))?;
        let mut args =
            words(&["pip", "compile", "--no-deps", "--no-header", "--quiet", "--only-binary", ":all:"]);
        args.extend(["--python".into(), inside.into(), wish.into()]);
        let said = programs.run(Program { what: &what, program: &uv, args, cwd, env: QUIET }).await?;
        String::from_utf8_lossy(&said).into_owned()
    } else {
        let mut args =
            words(&["-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet"]);
        args.extend(words(&["--only-binary", ":all:", "--report", "-"]));
        args.push(package.spec().into());
        let said = programs.run(Program { what: &what, program: &inside, args, cwd, env: QUIET }).await?;
        lock_of_report(&said, true)?
    };
    version_of_pins(&lock, package.name())
        .ok_or_else(|| InstallError::Refused(format!("it is not known which version {package} has")))
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// What a package is installed as.
pub(crate) struct Wanted<'a> {
    pub(crate) package: &'a PackageSpec,
    /// The Python that it runs on, as packages say it; empty where that is not known.
    pub(crate) python: &'a str,
    /// The program that a registry names.
    pub(crate) cmd: Option<&'a str>,
    /// The program that it is, if it has that.
    pub(crate) preferred: Option<&'a str>,
    pub(crate) consent: Consent,
}

/// `place` says where a version will be.
pub(crate) async fn install(
    programs: &Programs,
    tool: &PythonTool,
    wanted: Wanted<'_>,
    staging: &Path,
    place: impl FnOnce(&Version) -> PathBuf,
) -> Result<Installed, InstallError> {
    let Wanted { package, .. } = wanted;
    programs.told.line(&format!("installing {package} with {}", tool.word()));
    let allows_source = wanted.consent == Consent::Allow;
    let made = match tool {
        PythonTool::Uv(uv) => by_uv(programs, uv, &wanted, allows_source, staging).await,
        PythonTool::Pip => by_pip(programs, &wanted, allows_source, staging).await,
    };
    made.map_err(|error| explained(error, package, allows_source))?;
    let lock = std::fs::read_to_string(staging.join(LOCK))?;
    let version = version_of_pins(&lock, package.name())
        .ok_or_else(|| InstallError::Refused(format!("{package} is not in its own lock")))?;
    let venv = staging.join(VENV);
    let program = program_of(&venv, package, wanted.cmd, wanted.preferred)?;
    retarget(&venv.join("bin"), staging, &place(&version))?;
    Ok(Installed {
        version,
        program: Path::new(VENV).join("bin").join(program),
        sha256: hash_of_file(&staging.join(LOCK))?,
        sha256_from: Sha256From::Lock,
        scripts: if allows_source { Scripts::Run } else { Scripts::None },
        tool: Some(tool.word()),
    })
}

async fn by_pip(
    programs: &Programs,
    wanted: &Wanted<'_>,
    allows_source: bool,
    staging: &Path,
) -> Result<(), InstallError> {
    let package = wanted.package;
    let python = python(programs, wanted.python, staging).await?;
    let venv = staging.join(VENV);
    let mut args = words(&["-m", "venv"]);
    args.push(venv.clone().into());
    let what = "making a virtual environment";
    programs.run(Program { what, program: &python, args, cwd: staging, env: QUIET }).await?;
    let inside = venv.join("bin/python");
    let report = staging.join("tmp/report.json");
    let wheels = if allows_source { &[][..] } else { &["--only-binary", ":all:"][..] };
    let mut args = words(&["-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report"]);
    args.push(report.clone().into());
    args.extend(words(wheels));
    args.push(package.spec().into());
    let what = format!("resolving {package}");
    programs.run(Program { what: &what, program: &inside, args, cwd: staging, env: QUIET }).await?;
    let lock = staging.join(LOCK);
    std::fs::write(&lock, lock_of_report(&std::fs::read(&report)?, !allows_source)?)?;
    let mut args = words(&["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]);
    args.extend(words(wheels));
    args.extend(["-r".into(), lock.into()]);
    let what = format!("pip install {package}");
    programs.run(Program { what: &what, program: &inside, args, cwd: staging, env: QUIET }).await?;
    Ok(())
}

async fn by_uv(
    programs: &Programs,
    uv: &Path,
    wanted: &Wanted<'_>,
    allows_source: bool,
    staging: &Path,
) -> Result<(), InstallError> {
    let package = wanted.package;
    let run = async |what: String, args: Vec<OsString>| {
        programs.run(Program { what: &what, program: uv, args, cwd: staging, env: QUIET }).await
    };
    let venv = staging.join(VENV);
    let mut args = words(&["venv", "--quiet"]);
    if !wanted.python.is_empty() {
        args.extend(words(&["--python", wanted.python]));
    }
    args.push(venv.clone().into());
    run("making a virtual environment".to_owned(), args).await?;
    let (wish, lock) = (staging.join("tmp/requirements.in"), staging.join(LOCK));
    std::fs::write(&wish, format!("{}\n", package.spec()))?;
    let wheels = if allows_source { &[][..] } else { &["--only-binary", ":all:"][..] };
    let inside: OsString = venv.join("bin/python").into();
    let mut args = words(&["pip", "compile", "--quiet", "--no-header", "--no-annotate", "--generate-hashes"]);
    args.extend(words(wheels));
    args.extend([
        "--python".into(),
        inside.clone(),
        "--output-file".into(),
        lock.clone().into(),
        wish.into(),
    ]);
    run(format!("resolving {package}"), args).await?;
    let mut args =
        words(&["pip", "install", "--quiet", "--no-deps", "--require-hashes", "--link-mode", "copy"]);
    // Else the first start does it.
    args.push("--compile-bytecode".into());
    args.extend(words(wheels));
    args.extend(["--python".into(), inside, "-r".into(), lock.into()]);
    run(format!("uv pip install {package}"), args).await?;
    Ok(())
}

/// With what may be the reason, where the tool does not say it.
fn explained(error: InstallError, package: &PackageSpec, allows_source: bool) -> InstallError {
    let InstallError::Program(ProgramError::Failed { what, status, said }) = error else { return error };
    let hint = if said.contains("no such option") {
        "\nthe pip of this Python is too old to say what it would install: a newer Python has a newer one, or install uv"
            .to_owned()
    } else if said.contains("requires a different Python")
        || said.contains("require a different python version")
    {
        format!(
            "\n{package} needs another Python: install one as python3.N in PATH, or uv, which brings its own"
        )
    } else if said.contains("No module named") || said.contains("ensurepip") {
        "\nPython's own venv is not whole here: install it (python3-venv on Debian), or uv".to_owned()
    } else if !allows_source && (said.contains("No matching distribution") || said.contains("no wheels")) {
        "\nonly wheels are taken; --allow-scripts takes a source distribution, too, which runs code of its own".to_owned()
    } else {
        String::new()
    };
    InstallError::Program(ProgramError::Failed { what, status, said: format!("{said}{hint}") })
}

fn program_of(
    venv: &Path,
    package: &PackageSpec,
    cmd: Option<&str>,
    preferred: Option<&str>,
) -> Result<String, InstallError> {
    let of_package = console_scripts(venv, package.name());
    // What is in the environment may be another package's, which the agent is run by all the same.
    let is_there = |name: &str| !name.contains('/') && venv.join("bin").join(name).is_file();
    if let Some(cmd) = cmd {
        return match is_there(cmd) {
            true => Ok(cmd.to_owned()),
            false => Err(InstallError::Refused(format!(
                "{package} has no program {cmd}; it has {}",
                of_package.join(", ")
            ))),
        };
    }
    let named = preferred.into_iter().chain([package.name()]);
    let mut candidates = named.map(str::to_owned);
    if let Some(program) = candidates.find(|name| is_there(name)) {
        return Ok(program);
    }
    match &of_package[..] {
        [only] if is_there(only) => Ok(only.clone()),
        [] => Err(InstallError::Refused(format!("{package} has no program"))),
        several => Err(InstallError::Refused(format!(
            "{package} has several programs, and none of its own name: {}",
            several.join(", ")
        ))),
    }
}
