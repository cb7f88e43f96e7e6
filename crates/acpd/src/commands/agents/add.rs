//! `acpd agents add`: installs an agent and gives it an entry.

use super::entry::{by_hand, can_be_entered, enter, entry_of};
use super::installation::{Checked, How, check, install, spec_of};
use super::outcome::{Outcome, refusal};
use super::place::{Owner, Place, interruptible};
use super::trial::unmet_node_of;
use super::wish::{Registry, Wish, of_entry, of_known};
use crate::cli;
use crate::exit::Failure;
use crate::installing::{Consent, Programs};
use crate::streams::{print, print_json};
use acpd_catalog::program_in;

pub(super) async fn add(args: cli::Add) -> Result<(), Failure> {
    let programs = Programs::new()?;
    interruptible(&programs, add_by(&programs, args)).await
}

pub(super) fn how(installing: &cli::Installing, replaces: bool) -> How {
    let consent = match (installing.allow_scripts, installing.no_scripts) {
        (true, _) => Consent::Allow,
        (_, true) => Consent::Skip,
        _ => Consent::Ask,
    };
    How { consent, most: installing.max_size, checks: !installing.no_check, replaces }
}

async fn wish(args: &cli::Add, programs: &Programs) -> Result<Wish, Failure> {
    let Some(registry) = &args.registry else {
        return of_known(&args.name, args.version.as_ref(), args.kind);
    };
    let registry = Registry::read(registry)?;
    let entry = registry.entry(&args.name, programs).await?;
    of_entry(&args.name, &registry, &entry, args.version.as_ref(), args.kind)
}

async fn add_by(programs: &Programs, args: cli::Add) -> Result<(), Failure> {
    let place = Place::of(&args.place)?;
    let how = how(&args.installing, args.replace);
    let wish = wish(&args, programs).await?;
    let name = &wish.name;
    let whose = place.owner(name);
    if whose == Owner::Person && !how.replaces {
        return Err(by_hand(name, place.config_file()));
    }
    can_be_entered(&place, name.as_str(), &whose)?;
    let locked = place.lock(programs).await?;
    let mut there = install(programs, &place, &locked, &wish, how).await?;
    let old = place.receipt(name);
    let before = match &whose {
        Owner::Added(_) => place.entry(name).map(|entry| (entry, old.as_ref())),
        _ => None,
    };
    let entry = entry_of(before, &there, &wish)?;
    let checked = match how.checks {
        true => check(programs, &place, &there, entry.clone()).await?,
        false => {
            let node = unmet_node_of(&spec_of(&place, &there, entry.clone())).await?;
            node.iter().for_each(|node| programs.told.line(&format!("{name}: {node}")));
            Checked::Not
        }
    };
    let was_there = there.published.is_none();
    let daemon = enter(&place, &mut there, &entry, how)?.tell_daemon().await;
    let swept = place.sweep(&locked, name, &there.receipt.version).await?;
    let (receipt, program, file) = (&there.receipt, &there.program, place.config_file());
    let before = old.as_ref();
    let outcome = Outcome { receipt, program, before, was_there, checked: &checked, daemon, swept, file };
    match args.place.json {
        true => print_json(&outcome.object().to_string())?,
        false => print(&outcome.words())?,
    };
    if let Some(companion) = wish.known.and_then(|known| known.companion) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if program_in(&path, companion.program).is_none() {
            programs.told.line(&format!(
                "{name} starts {}, which is not in PATH: it is in the package {}, or name it in {}",
                companion.program,
                companion.package.name(),
                companion.variable
            ));
        }
    }
    match &checked {
        Checked::Refuses(trial) => Err(refusal(name.as_str(), trial)),
        _ => Ok(()),
    }
}
