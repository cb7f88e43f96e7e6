//! What the program's own definitions give: man pages, and completions for shells. An example of `crates/acpd` writes them.

use crate::inspector::{Files, files};
use crate::outside;
use crate::run::{self, Counts};
use anyhow::{Result, ensure};
use std::path::Path;

/// Files by their names.
pub(super) struct Papers {
    pub(super) man: Files,
    pub(super) completions: Files,
}

/// Has them written, by a build for this machine whatever the target is.
pub(super) fn make(root: &Path) -> Result<Papers> {
    let place = tempfile::tempdir()?;
    // With the features that all of the workspace has, so that CI, which builds its tests so, builds nothing twice.
    let build = "cargo build --quiet --locked --workspace --features acpd/nats --example papers";
    run::run(run::line(build, root), &mut Counts::default())?;
    let mut write = run::command(outside::target_directory(root).join("debug/examples/papers"));
    write.arg(place.path());
    run::run(write, &mut Counts::default())?;
    let of = |name: &str| files(&place.path().join(name));
    let papers = Papers { man: of("man")?, completions: of("completions")? };
    ensure!(papers.man.contains_key("acpd.1") && papers.completions.len() == 3, "there are pages missing");
    Ok(papers)
}
