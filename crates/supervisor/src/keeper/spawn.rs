//! Starts the program of a keeper. The only file with `unsafe` code: what runs between fork and exec, and
//! descriptors without an owner.

use super::start_frame::{Pipes, SpawnFailure, WireProgram};
use rustix::process::{Pid, Signal};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often a program is tried whose file is open for writing, five seconds in all.
const TRIES: usize = 500;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// Closes what this process inherited beyond stdin, stdout and stderr. A careless parent of the daemon may leak
/// descriptors, and neither the program nor a keeper that outlives the daemon should hold another program's pipe open.
pub(super) fn close_inherited() {
    let Ok(open) = std::fs::read_dir("/dev/fd") else { return };
    let numbers: Vec<i32> = open
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|fd| *fd > 2)
        .collect();
    // The listing's own descriptor is among the numbers, and closed by now.
    for fd in numbers.into_iter().filter(|fd| std::fs::symlink_metadata(format!("/dev/fd/{fd}")).is_ok()) {
        #[expect(unsafe_code, reason = "an inherited descriptor has no owner to close it")]
        // SAFETY: called first thing in a single-threaded process that has opened nothing itself but the
        // directory above, which is closed again: no value in this process owns any of these numbers.
        unsafe {
            rustix::io::close(fd);
        }
    }
}

/// Starts `program` in a process group of its own, with `pipes` as its stdin, stdout and stderr. If they are a
/// terminal, the group is that of a new session, and the session controls the terminal.
pub(super) fn start(program: &WireProgram, pipes: Pipes) -> Result<Pid, SpawnFailure> {
    let errno = |error: &io::Error| error.raw_os_error().unwrap_or(0);
    // Looked at first: after a fork, a missing directory and a missing program are the same ENOENT.
    match std::fs::read_dir(&program.cwd) {
        Ok(_) => {}
        // May be entered though not listed.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && program.cwd.is_dir() => {}
        Err(error) => return Err(SpawnFailure::BadCwd { errno: errno(&error) }),
    }
    let [stdin, stdout, stderr] = pipes.map(Stdio::from);
    #[expect(clippy::disallowed_methods, reason = "the keeper is what every other place has to use")]
    let mut command = Command::new(&program.command);
    command
        .args(&program.args)
        .env_clear()
        .envs(program.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&program.cwd)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr);
    if program.controls_terminal {
        control_terminal(&mut command);
    } else {
        command.process_group(0);
    }
    die_with_keeper(&mut command);
    match spawn_once_written(&mut command) {
        Ok(child) => Ok(Pid::from_child(&child)),
        Err(error) => Err(match error.kind() {
            io::ErrorKind::NotFound if exists(program) => SpawnFailure::InterpreterNotFound,
            // The last two: no file can have that name.
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
                SpawnFailure::NotFound
            }
            // Said of a directory of PATH that may not be entered, also where no directory has the program.
            io::ErrorKind::PermissionDenied if !has_path(program) && !exists(program) => {
                SpawnFailure::NotFound
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::IsADirectory => {
                SpawnFailure::NotExecutable { errno: errno(&error) }
            }
            _ if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
                SpawnFailure::NotExecutable { errno: errno(&error) }
            }
            _ => SpawnFailure::Other { errno: errno(&error) },
        }),
    }
}

/// Starts the program; waits while its file is open for writing. Who has written it may have closed it already: a process that was
/// just forked has the descriptor, too, until it is another program.
fn spawn_once_written(command: &mut Command) -> io::Result<Child> {
    for _ in 0..TRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::park_timeout(BETWEEN_TRIES);
            }
            done => return done,
        }
    }
    command.spawn()
}

/// Whether the program's file is there: then ENOENT speaks of its interpreter.
fn exists(program: &WireProgram) -> bool {
    let command = Path::new(&program.command);
    if has_path(program) {
        return program.cwd.join(command).is_file();
    }
    let path = program.env.iter().rev().find(|(name, _)| name == OsStr::new("PATH"));
    path.is_some_and(|(_, dirs)| std::env::split_paths(dirs).any(|dir| dir.join(command).is_file()))
}

/// Whether the program is named by a path, and not looked for in `PATH`.
fn has_path(program: &WireProgram) -> bool {
    program.command.as_encoded_bytes().contains(&b'/')
}

/// The program leads a new session, and with it a new process group, whose terminal is its stdin.
fn control_terminal(command: &mut Command) {
    let take = || {
        rustix::process::setsid()?;
        // This runs in the child, where 0 is the terminal by now.
        rustix::process::ioctl_tiocsctty(rustix::stdio::stdin())?;
        Ok(())
    };
    #[expect(unsafe_code, reason = "pre_exec is unsafe by signature")]
    // SAFETY: the closure makes two system calls and touches no memory that another thread could hold a lock
    // on; the keeper has one thread.
    unsafe {
        command.pre_exec(take);
    }
}

/// The program is killed when the keeper dies, whatever kills the keeper.
#[cfg(target_os = "linux")]
fn die_with_keeper(command: &mut Command) {
    let keeper = rustix::process::getpid();
    let arm = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The keeper may have died before the line above took effect.
        if rustix::process::getppid() != Some(keeper) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    };
    #[expect(unsafe_code, reason = "pre_exec is unsafe by signature")]
    // SAFETY: the closure makes two system calls and touches no memory that another thread could hold a lock
    // on; the keeper has one thread.
    unsafe {
        command.pre_exec(arm);
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_keeper(_command: &mut Command) {}
