//! Python programs in an environment of their own, below `target/`, from pinned requirements.

use crate::run;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// The directory with the programs; the environment is made when it is not there or others were asked for before.
pub(crate) fn install(place: &Path, requirements: &str) -> Result<PathBuf> {
    let (environment, stamp) = (place.join("venv"), place.join("venv/installed.txt"));
    let programs = environment.join("bin");
    if fs::read_to_string(&stamp).ok().as_deref() == Some(requirements) {
        return Ok(programs);
    }
    fs::create_dir_all(place)?;
    fs::write(place.join("requirements.txt"), requirements)?;
    let mut venv = run::line("python3 -m venv --clear", place);
    venv.arg(&environment);
    run::print_and_run(venv)?;
    let mut pip = run::command(programs.join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]);
    pip.args(["-r", "requirements.txt"]).current_dir(place);
    run::print_and_run(pip)?;
    fs::write(&stamp, requirements)?;
    Ok(programs)
}
