//! What npm left: which version it is, which packages have install scripts, and which program a package is.
//!
//! Reads `package-lock.json` and the packages' own `package.json`; decides nothing about scripts.

use crate::name::Version;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Scripts that npm runs when a package is installed.
const AT_INSTALL: [&str; 3] = ["preinstall", "install", "postinstall"];

/// Why what npm left is not understood.
#[derive(Debug, Error)]
pub enum NpmError {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the operating system says.
        #[source]
        source: io::Error,
    },
    /// A file has another form.
    #[error("{} is not understood", path.display())]
    Form {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The package is not in the lock file.
    #[error("the lock file has no {0} in a version that can be a directory's name")]
    Missing(String),
    /// The package has no program.
    #[error("the package {0} has no program")]
    NoProgram(String),
    /// It has no program of the name that is asked for.
    #[error("the package {package} has no program {program}; it has {}", programs.join(", "))]
    OtherPrograms {
        /// Which.
        package: String,
        /// That is asked for.
        program: String,
        /// Their names.
        programs: Vec<String>,
    },
    /// It has several and none of its own name.
    #[error("the package {package} has several programs, and none of its own name: {}", programs.join(", "))]
    SeveralPrograms {
        /// Which.
        package: String,
        /// Their names.
        programs: Vec<String>,
    },
}

/// A package's install script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallScript {
    /// The package, with its version.
    pub package: String,
    /// `preinstall`, `install` or `postinstall`.
    pub script: String,
    /// The line of shell that it is.
    pub line: String,
}

#[derive(Deserialize)]
struct Lock {
    packages: BTreeMap<String, LockedPackage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LockedPackage {
    version: Option<String>,
    #[serde(default)]
    has_install_script: bool,
}

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    scripts: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    bin: Bin,
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Bin {
    One(String),
    Several(BTreeMap<String, String>),
    #[default]
    None,
}

fn read<T: for<'de> Deserialize<'de>>(path: PathBuf) -> Result<T, NpmError> {
    let bytes = std::fs::read(&path).map_err(|source| NpmError::Read { path: path.clone(), source })?;
    serde_json::from_slice(&bytes).map_err(|source| NpmError::Form { path, source })
}

/// The version of a package that npm installed into `dir`.
///
/// # Errors
/// It is not there.
pub fn version_of_lock(dir: &Path, package: &str) -> Result<Version, NpmError> {
    let lock: Lock = read(dir.join("package-lock.json"))?;
    let found = lock.packages.get(&format!("node_modules/{package}"));
    let version = found.and_then(|found| Version::try_from(found.version.clone()?).ok());
    version.ok_or_else(|| NpmError::Missing(package.to_owned()))
}

/// The install scripts of all packages that npm installed into `dir`. Those of packages for other platforms are not there.
///
/// # Errors
/// What npm left is not understood.
pub fn install_scripts(dir: &Path) -> Result<Vec<InstallScript>, NpmError> {
    let lock: Lock = read(dir.join("package-lock.json"))?;
    let mut scripts = Vec::new();
    let with_script =
        lock.packages.iter().filter(|(path, locked)| !path.is_empty() && locked.has_install_script);
    for (path, locked) in with_script {
        let place = dir.join(path);
        if !place.is_dir() {
            continue;
        }
        let name = path.rsplit_once("node_modules/").map_or(path.as_str(), |(_, name)| name);
        let package = format!("{name}@{}", locked.version.as_deref().unwrap_or("?"));
        let manifest: Manifest = read(place.join("package.json"))?;
        let before = scripts.len();
        for script in AT_INSTALL {
            if let Some(line) = manifest.scripts.get(script).and_then(|line| line.as_str()) {
                scripts.push(InstallScript {
                    package: package.clone(),
                    script: script.to_owned(),
                    line: line.to_owned(),
                });
            }
        }
        if scripts.len() == before {
            // What npm does by itself where there is a `binding.gyp`.
            let (script, line) = ("install".to_owned(), "node-gyp rebuild".to_owned());
            scripts.push(InstallScript { package, script, line });
        }
    }
    Ok(scripts)
}

/// The name of the program that a package is: `cmd` if that is given, else the preferred one, the only one, or the one of its
/// own name.
///
/// # Errors
/// There is none, or it is not clear which.
pub fn bin_of_package(
    dir: &Path,
    package: &str,
    cmd: Option<&str>,
    preferred: Option<&str>,
) -> Result<String, NpmError> {
    let own = package.rsplit_once('/').map_or(package, |(_, name)| name);
    let manifest: Manifest = read(dir.join("node_modules").join(package).join("package.json"))?;
    let programs: Vec<String> = match manifest.bin {
        Bin::One(path) if path.is_empty() => Vec::new(),
        Bin::One(_) => vec![own.to_owned()],
        Bin::Several(programs) => programs.into_keys().collect(),
        Bin::None => Vec::new(),
    };
    // A name with a slash would be no program of its own.
    let programs: Vec<String> =
        programs.into_iter().filter(|name| !name.contains('/') && !name.starts_with('.')).collect();
    let named = |wanted: &str| programs.iter().find(|program| *program == wanted);
    if let Some(cmd) = cmd {
        return named(cmd).cloned().ok_or_else(|| NpmError::OtherPrograms {
            package: package.to_owned(),
            program: cmd.to_owned(),
            programs: programs.clone(),
        });
    }
    match preferred.and_then(named).or_else(|| named(own)) {
        Some(program) => Ok(program.clone()),
        None => match &programs[..] {
            [] => Err(NpmError::NoProgram(package.to_owned())),
            [only] => Ok(only.clone()),
            _ => Err(NpmError::SeveralPrograms { package: package.to_owned(), programs }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(dir: &Path, path: &str, text: &str) {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().expect("it is in a directory")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }

    // issue 14: which packages have which scripts is known before one runs
    #[test]
    fn scripts_are_listed_with_their_packages() {
        let dir = tempfile::tempdir().expect("a directory");
        let lock = r#"{"lockfileVersion": 3, "packages": {
            "": {"dependencies": {"@a/x": "1.0.0"}},
            "node_modules/@a/x": {"version": "1.0.0", "hasInstallScript": true},
            "node_modules/@a/x/node_modules/native": {"version": "2.0.0", "hasInstallScript": true},
            "node_modules/elsewhere": {"version": "3.0.0", "hasInstallScript": true, "optional": true},
            "node_modules/plain": {"version": "4.0.0"}
        }}"#;
        put(dir.path(), "package-lock.json", lock);
        let x = r#"{"scripts": {"postinstall": "node p.mjs", "test": "t"}, "bin": {"x": "a", "y": "b"}}"#;
        put(dir.path(), "node_modules/@a/x/package.json", x);
        put(dir.path(), "node_modules/@a/x/node_modules/native/package.json", "{}");
        put(dir.path(), "node_modules/plain/package.json", r#"{"bin": {"p": "a", "q": "b"}}"#);
        let scripts = install_scripts(dir.path()).expect("they are understood");
        let told: Vec<String> =
            scripts.iter().map(|it| format!("{} {} {}", it.package, it.script, it.line)).collect();
        assert_eq!(told, ["@a/x@1.0.0 postinstall node p.mjs", "native@2.0.0 install node-gyp rebuild"]);
        assert_eq!(version_of_lock(dir.path(), "@a/x").expect("it is there").as_str(), "1.0.0");
        assert!(version_of_lock(dir.path(), "none").is_err());
        let of = |package: &str, preferred| bin_of_package(dir.path(), package, None, preferred).ok();
        assert_eq!(of("@a/x", Some("y")).as_deref(), Some("y"));
        assert_eq!(of("@a/x", Some("z")).as_deref(), Some("x"));
        assert_eq!(of("plain", Some("z")), None);
        // issue 28, R16: a registry says which
        let by_cmd = |cmd| bin_of_package(dir.path(), "plain", Some(cmd), Some("p"));
        assert_eq!(by_cmd("q").expect("it has it"), "q");
        assert_eq!(by_cmd("z").unwrap_err().to_string(), "the package plain has no program z; it has p, q");
    }
}
