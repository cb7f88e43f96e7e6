//! A scratch with a registry, an npm and a PyPI, and what is compared before and after.

use crate::server::{Certificate, Server};
use acpd_e2e::{Exit, PATIENCE, Scratch, Started, acpd};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;

/// What stands in the configuration before anything is added.
pub(crate) const COMMENT: &str = "# mine, and it stays\n[files]\nconfine = true # this too";

pub(crate) struct World {
    pub(crate) scratch: Scratch,
    pub(crate) https: Server,
    pub(crate) npm: Server,
    pub(crate) pypi: Server,
}

impl World {
    pub(crate) fn new() -> Self {
        let certificate = Certificate::new();
        let scratch = Scratch::new().config(COMMENT);
        std::fs::write(scratch.path("cert.pem"), certificate.pem()).expect("it is written");
        scratch.config_file();
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::create_dir(scratch.state())
            .and_then(|()| std::fs::set_permissions(scratch.state(), private))
            .expect("a directory");
        Self { scratch, https: Server::with_tls(&certificate), npm: Server::plain(), pypi: Server::plain() }
    }

    /// `acpd` with words, for this world.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.scratch.command(acpd());
        command
            .args(words)
            .arg("--state-dir")
            .arg(self.scratch.state())
            .arg("--config")
            .arg(self.config_path());
        command.env("SSL_CERT_FILE", self.scratch.path("cert.pem"));
        command.env("npm_config_registry", self.npm.url("/")).env("PIP_INDEX_URL", self.pypi.url("/simple"));
        command
    }

    pub(crate) fn start(&self, words: &[&str]) -> Started {
        self.scratch.start_command(self.command(words))
    }

    /// Runs it to its end: how it ended, stdout and stderr. An environment of Python takes its time.
    pub(crate) fn run(&self, words: &[&str]) -> (Exit, String, String) {
        let mut command = self.command(words);
        let (sender, ended) = sync_channel(1);
        std::thread::spawn(move || {
            // A test that has failed does not hear it.
            let _unheard = sender.send(command.stdin(Stdio::null()).output());
        });
        let Ok(output) = ended.recv_timeout(PATIENCE * 12) else {
            panic!("{words:?} did not end");
        };
        let output = output.expect("acpd starts");
        let exit = match (output.status.code(), output.status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.expect("it ended by one of the two")),
        };
        let text = |bytes| String::from_utf8(bytes).expect("acpd writes text");
        (exit, text(output.stdout), text(output.stderr))
    }

    pub(crate) fn done(&self, words: &[&str]) -> String {
        let (exit, out, err) = self.run(words);
        assert_eq!(exit, Exit::Code(0), "{words:?}: {err}");
        out
    }

    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let out = self.done(&[words, &["--json"]].concat());
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{words:?}: {error}: {out}"))
    }

    pub(crate) fn fails(&self, code: i32, words: &[&str]) -> String {
        let (exit, _, err) = self.run(words);
        assert_eq!(exit, Exit::Code(code), "{words:?}: {err}");
        err
    }

    /// Serves a registry's file, and says where.
    pub(crate) fn registry(&self, file: &str) -> String {
        self.https.bytes("/registry.json", file);
        self.https.url("/registry.json")
    }

    pub(crate) fn config_path(&self) -> PathBuf {
        self.scratch.path("config.toml")
    }

    pub(crate) fn config(&self) -> String {
        std::fs::read_to_string(self.config_path()).expect("it is there")
    }

    pub(crate) fn version_dir(&self, name: &str, version: &str) -> PathBuf {
        self.scratch.state().join("agents").join(name).join(version)
    }

    /// Everything in the state directory and the configuration, byte for byte.
    pub(crate) fn all(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        gather(&self.scratch.state(), &mut all);
        all.insert(self.config_path(), self.config());
        all
    }
}

fn gather(path: &Path, all: &mut BTreeMap<PathBuf, String>) {
    let Ok(found) = std::fs::symlink_metadata(path) else { return };
    let content = if found.is_dir() {
        for entry in std::fs::read_dir(path).expect("it is ours").flatten() {
            gather(&entry.path(), all);
        }
        String::new()
    } else if found.is_file() {
        String::from_utf8_lossy(&std::fs::read(path).expect("it is ours")).into_owned()
    } else {
        std::fs::read_link(path).map(|to| to.display().to_string()).unwrap_or_default()
    };
    all.insert(path.to_owned(), format!("{:o} {content}", found.permissions().mode()));
}
