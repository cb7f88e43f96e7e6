//! `acpd agents remove`: an added agent goes, with its entry.

use super::place::{Owner, Place, interruptible, owner};
use super::update::not_added;
use crate::cli;
use crate::config::edit;
use crate::exit::Failure;
use crate::installing::{Programs, yes};
use crate::kept_config::{Daemonized, KeptConfig};
use crate::streams::{print, print_json};
use acpd_catalog::AgentName;
use serde_json::json;
use std::io::{self, IsTerminal};

pub(super) async fn remove(args: cli::Remove) -> Result<(), Failure> {
    let programs = Programs::new()?;
    interruptible(&programs, remove_by(&programs, args)).await
}

async fn remove_by(programs: &Programs, args: cli::Remove) -> Result<(), Failure> {
    let place = Place::of(&args.place)?;
    let name = &args.name;
    let whose = place.owner(name);
    let is_installed = place.agents().agent(name).is_dir();
    // What an `add` that was killed left has no entry.
    if whose == Owner::Person || (whose == Owner::None && !is_installed) {
        return Err(not_added(&place, name));
    }
    refuse_while_live(&place, name).await?;
    if !args.yes {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            return Err(Failure::Usage(
                "there is no terminal to ask on: --yes removes it without a question".to_owned(),
            ));
        }
        let dir = place.agents().agent(name);
        if !yes(&format!("Remove {name}, with {}?", dir.display())).await? {
            return Err(Failure::Failed("it was not confirmed, and nothing was changed".to_owned()));
        }
    }
    let locked = place.lock(programs).await?;
    let daemon = match whose {
        Owner::Added(_) => Some(take_out(&place, name).await?),
        _ => None,
    };
    // One may have begun before the daemon knew.
    let live = place.live_sessions(name).await?;
    let is_gone = live.is_empty();
    if is_gone {
        locked.remove_agent(name)?;
    }
    drop(locked);
    let reloaded = matches!(daemon, Some(Daemonized::Reloaded));
    if args.place.json {
        let told = json!({
            "name": name, "config": place.config_file().to_string_lossy(), "reloaded": reloaded, "removed": is_gone,
        });
        print_json(&told.to_string())?;
    } else {
        let entry = match &daemon {
            Some(daemon) => format!(
                "[agents.{name}] is not in {} any more. {}\n",
                place.config_file().display(),
                daemon.words("")
            ),
            None => String::new(),
        };
        let gone = if is_gone { format!("{name} is removed.") } else { String::new() };
        print(format!("{entry}{gone}").trim_end())?;
    }
    match is_gone {
        true => Ok(()),
        false => Err(Failure::Failed(format!(
            "a session began meanwhile, so its directory stays until `acpd agents remove {name}` once more: {}",
            live.join(", ")
        ))),
    }
}

async fn refuse_while_live(place: &Place, name: &AgentName) -> Result<(), Failure> {
    let live = place.live_sessions(name).await?;
    match live.is_empty() {
        true => Ok(()),
        false => Err(Failure::Failed(format!(
            "sessions run on {name}; close them first: acpd sessions close {}",
            live.join(" ")
        ))),
    }
}

/// Takes the entry out of the configuration.
async fn take_out(place: &Place, name: &AgentName) -> Result<Daemonized, Failure> {
    let kept = KeptConfig::open(place.file.clone(), place.state_dir.clone())?;
    let whose = kept.config.as_ref().map(|config| owner(config, &place.agents(), name));
    if !matches!(whose, Some(Owner::Added(_))) {
        return Err(not_added(place, name));
    }
    let text = kept.text.as_deref().unwrap_or_default();
    let text = kept.edited(edit::without(text, ["agents", name.as_str()]))?;
    kept.put_checked(&text)?;
    Ok(kept.tell_daemon().await)
}
