//! What is there: files, limits and units, looked at and not judged.

use super::judge::{Below, Place, Program, State, Unit};
use crate::state_files::{DIRECTORIES, files};
use acpd_supervisor::Containment;
use rustix::fs::{Access, access, statfs, statvfs};
use rustix::io::Errno;
use rustix::process::{Resource, geteuid, getrlimit};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files that a daemon may have open: it raises its own limit to the hard one. None without a limit.
pub(super) fn open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// How far keepers reach.
pub(super) fn containment() -> Containment {
    Containment::here()
}

/// The program of an agent, as it would be found.
pub(super) fn program(command: &str, path: Option<&OsStr>) -> Program {
    let can_run = |file: &Path| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    if command.contains('/') {
        let file = PathBuf::from(command);
        return match (file.exists(), can_run(&file)) {
            (_, true) => Program::Found(file),
            (true, false) => Program::NotExecutable(file),
            (false, _) => Program::Missing,
        };
    }
    let places: Vec<PathBuf> = path
        .map(|path| std::env::split_paths(path).map(|dir| dir.join(command)).collect())
        .unwrap_or_default();
    if let Some(file) = places.iter().find(|file| can_run(file)) {
        return Program::Found(file.clone());
    }
    places.into_iter().find(|file| file.is_file()).map_or(Program::Missing, Program::NotExecutable)
}

/// Finds what a daemon opens, or makes files in, that is there and cannot be used. Nothing is opened.
fn below(dir: &Path) -> Vec<Below> {
    let directories =
        DIRECTORIES.map(|name| (name.to_owned(), true, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK));
    let files = files().map(|name| (name, false, Access::READ_OK | Access::WRITE_OK));
    let wrong = |(name, is_directory, needed): (String, bool, Access)| {
        let path = dir.join(name);
        let found = path.metadata().ok()?;
        let why = match found.is_dir() == is_directory {
            true => access(&path, needed).err()?,
            false if is_directory => Errno::NOTDIR,
            false => Errno::ISDIR,
        };
        Some(Below { path, why })
    };
    directories.into_iter().chain(files).filter_map(wrong).collect()
}

/// The state directory.
pub(crate) fn state(dir: &Path) -> State {
    let user = geteuid().as_raw();
    let place = match std::fs::metadata(dir) {
        Ok(found) if found.is_dir() => {
            let (owner, mode) = (found.uid(), found.mode() & 0o7777);
            let refused = access(dir, Access::WRITE_OK | Access::EXEC_OK).err();
            Place::There { owner, mode, user, refused }
        }
        Ok(_) => Place::NoDirectory,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let above = dir.ancestors().skip(1).find(|dir| dir.exists());
            let is_open = above.is_some_and(|dir| access(dir, Access::WRITE_OK | Access::EXEC_OK).is_ok());
            Place::Absent { can_be_made: is_open }
        }
        Err(error) => Place::Unknown(error.to_string()),
    };
    let on = dir.ancestors().find(|dir| dir.exists());
    let disk = on.and_then(|dir| statvfs(dir).ok());
    // Some of it is for root.
    let is_root = geteuid().is_root();
    State {
        place,
        below: below(dir),
        file_system: on.and_then(|dir| statfs(dir).ok()).map(|found| found.f_type as u32),
        free_bytes: on.and_then(acpd_eventlog::free_bytes),
        reserved_bytes: dir.join("acpd.reserve").metadata().map_or(0, |reserve| reserve.len()),
        free_files: disk
            .filter(|disk| disk.f_files > 0)
            .map(|disk| if is_root { disk.f_ffree } else { disk.f_favail }),
    }
}

/// The units of acpd that are installed.
pub(super) fn units() -> Vec<Unit> {
    let of_user = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute())
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")))
        .map(|dir| dir.join("systemd/user"));
    let of_system = ["/etc/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"];
    let dirs = of_user.into_iter().chain(of_system.map(PathBuf::from));
    let files = dirs.map(|dir| dir.join("acpd.service"));
    files.filter_map(|file| Some(unit(&std::fs::read_to_string(&file).ok()?, file))).collect()
}

fn unit(text: &str, file: PathBuf) -> Unit {
    let value = |key: &str| super::judge::unit_value(text, key);
    let home = std::env::var("HOME").unwrap_or_default();
    let program = value("ExecStart").and_then(|line| line.split_whitespace().next().map(str::to_owned));
    // Marks such as "-" in front of it change how it is run.
    let program = program.map(|word| word.trim_start_matches(['-', '@', ':', '+', '!']).replace("%h", &home));
    let config = super::judge::unit_variable(text, "ACPD_CONFIG");
    // What this user may not look at may well be there.
    let is_gone = |path: &String| {
        Path::new(path).metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    };
    Unit {
        missing_program: program.clone().filter(|path| path.starts_with('/')).filter(is_gone),
        missing_config: config.filter(is_gone),
        kill_mode: value("KillMode"),
        program,
        file,
    }
}
