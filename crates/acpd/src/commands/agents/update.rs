//! `acpd agents update`: the newer version beside the old one, then in its place.

use super::add::how;
use super::entry::{enter, entry_of};
use super::installation::{Checked, How, check, install};
use super::outcome::{Outcome, refusal};
use super::outdated::{Newest, is_newer, newest};
use super::place::{Owner, Place, interruptible};
use super::trial::Trial;
use crate::cli;
use crate::exit::{self, Failure};
use crate::installing::{Consent, Programs};
use crate::nearest::unlisted;
use crate::streams::{print, print_json};
use acpd_catalog::{AgentName, Locked, Receipt, Scripts};
use serde_json::{Value, json};

pub(super) async fn update(args: cli::Update) -> Result<(), Failure> {
    let programs = Programs::new()?;
    interruptible(&programs, update_by(&programs, args)).await
}

/// That it was not added, and what was.
pub(super) fn not_added(place: &Place, name: &AgentName) -> Failure {
    if place.owner(name) == Owner::Person {
        return Failure::Usage(format!(
            "[agents.{name}] in {} was written by hand, and its program is not one that was added; change it there",
            place.config_file().display()
        ));
    }
    let added = place.added();
    let names = added.iter().map(AgentName::as_str);
    let told =
        unlisted(&format!("{name} was not added"), name.as_str(), names.clone(), names.map(str::to_owned));
    Failure::missing(told.replacen("it has none", "none was", 1).replacen("it has ", "added were ", 1))
}

async fn update_by(programs: &Programs, args: cli::Update) -> Result<(), Failure> {
    let place = Place::of(&args.place)?;
    let names = match &args.names[..] {
        [] => place.added(),
        names => names.to_vec(),
    };
    for name in &args.names {
        if !matches!(place.owner(name), Owner::Added(_)) {
            return Err(not_added(&place, name));
        }
    }
    let (how, is_json) = (how(&args.installing, false), args.place.json);
    if names.is_empty() && !is_json {
        return print("no agent was added; `acpd agents add NAME` adds one").map(drop);
    }
    let (mut objects, mut first) = (Vec::new(), None);
    if !names.is_empty() {
        let locked = place.lock(programs).await?;
        for name in &names {
            match update_one(programs, &place, &locked, name, how, is_json).await {
                Ok(object) => objects.push(object),
                // The others are updated all the same.
                Err(failure) if !programs.is_interrupted() => {
                    objects.push(json!({"name": name, "error": failure.to_string()}));
                    exit::tell(&failure);
                    first.get_or_insert(failure.code());
                }
                Err(failure) => return Err(failure),
            }
        }
    }
    if is_json {
        print_json(&json!({"agents": objects}).to_string())?;
    }
    first.map_or(Ok(()), |code| Err(Failure::Told(code)))
}

async fn update_one(
    programs: &Programs,
    place: &Place,
    locked: &Locked,
    name: &AgentName,
    how: How,
    is_json: bool,
) -> Result<Value, Failure> {
    let receipt = place.receipt(name).ok_or_else(|| {
        Failure::Failed(format!("{name} has no receipt any more; `acpd agents add {name}` installs it anew"))
    })?;
    let staging = locked.staging()?;
    let dir = place.agents().version(name, &receipt.version);
    let Newest { version, wish } = newest(programs, &receipt, &dir, staging.path()).await?;
    drop(staging);
    if !is_newer(&version, &receipt.version) {
        let swept = place.sweep(locked, name, &receipt.version).await?;
        if !is_json {
            let said = swept.words(name).map(|words| format!("\n{words}")).unwrap_or_default();
            print(&format!("{name} {} is the newest{said}", receipt.version))?;
        }
        return Ok(
            json!({"name": name, "version": receipt.version, "updated": false, "removed": swept.removed}),
        );
    }
    // What was left out before is left out again.
    let skips = how.consent == Consent::Ask && receipt.scripts == Scripts::Skipped;
    let how = How { consent: if skips { Consent::Skip } else { how.consent }, ..how };
    // By the name of the entry, which may be another than the known one.
    let wish = super::wish::Wish { name: name.clone(), ..wish };
    let mut there = install(programs, place, locked, &wish, how).await?;
    let entry = place.entry(name).map(|entry| (entry, Some(&receipt)));
    let entry = entry_of(entry, &there, &wish)?;
    let checked = match how.checks {
        true => check(programs, place, &there, entry.clone()).await?,
        false => Checked::Not,
    };
    if let Checked::Refuses(trial) = &checked {
        // The old one stays: whether it would be refused as well is not known.
        return Err(refused(name, &receipt, trial));
    }
    let was_there = there.published.is_none();
    let daemon = enter(place, &mut there, &entry, how)?.tell_daemon().await;
    let swept = place.sweep(locked, name, &there.receipt.version).await?;
    let (program, before, file) = (&there.program, Some(&receipt), place.config_file());
    let outcome = Outcome {
        receipt: &there.receipt,
        program,
        before,
        was_there,
        checked: &checked,
        daemon,
        swept,
        file,
    };
    let mut object = outcome.object();
    object["updated"] = json!(true);
    object["from"] = json!(receipt.version);
    if !is_json {
        print(&outcome.words())?;
    }
    Ok(object)
}

fn refused(name: &AgentName, old: &Receipt, trial: &Trial) -> Failure {
    let failure = refusal(name.as_str(), trial);
    let code = failure.code();
    let why = failure.to_string();
    let why = why.rsplit_once('\n').map_or(why.as_str(), |(why, _)| why).to_owned();
    Failure::Of(code, format!("{why}\n{name} {} stays", old.version))
}
