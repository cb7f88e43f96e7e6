//! `acpd agents outdated`: which of the added agents have a newer version.

use super::place::{Place, interruptible};
use super::wish::{Registry, Wish, of_entry, of_known};
use crate::clean::line;
use crate::cli;
use crate::commands::sessions::screen_of_stdout;
use crate::exit::{Code, Failure};
use crate::installing::{Programs, newest_of_npm, newest_of_python};
use crate::streams::{print, print_json, window};
use crate::view::{Cell, Column, Cut, Paint, Tone, table};
use acpd_catalog::{Chosen, Kind, Receipt, Version};
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::path::Path;

pub(super) async fn outdated(args: cli::Outdated) -> Result<(), Failure> {
    let programs = Programs::new()?;
    interruptible(&programs, outdated_by(&programs, args)).await
}

/// What its source has now.
pub(super) struct Newest {
    pub(super) version: Version,
    pub(super) wish: Wish,
}

/// Asks where a version is from for the newest one.
pub(super) async fn newest(
    programs: &Programs,
    receipt: &Receipt,
    version_dir: &Path,
    cwd: &Path,
) -> Result<Newest, Failure> {
    let name = &receipt.name;
    if let Some(registry) = &receipt.source.registry {
        let registry = Registry::read(registry)?;
        let entry = registry.entry(name, programs).await?;
        let wish = of_entry(name, &registry, &entry, None, Some(receipt.kind))?;
        let version = match &wish.chosen {
            Chosen::Binary(_) => entry.version,
            Chosen::Npx(run) | Chosen::Uvx(run) => run.package.version().cloned().unwrap_or(entry.version),
        };
        return Ok(Newest { version, wish });
    }
    let mut wish = of_known(name, None, None)?;
    let version = match &mut wish.chosen {
        Chosen::Npx(run) => newest_of_npm(programs, &run.package, cwd).await?,
        Chosen::Uvx(run) => {
            let by_uv = receipt.source.tool.as_deref() == Some("uv");
            newest_of_python(programs, &run.package, by_uv, version_dir, cwd).await?
        }
        Chosen::Binary(_) => return Err(Failure::Failed(format!("{name} is known as no archive"))),
    };
    if let Chosen::Npx(run) | Chosen::Uvx(run) = &mut wish.chosen {
        run.package = run.package.at(version.clone());
    }
    Ok(Newest { version, wish })
}

/// A version that is not newer is no reason to change.
pub(super) fn is_newer(newest: &Version, installed: &Version) -> bool {
    newest.order(installed) == Ordering::Greater
}

const COLUMNS: [Column; 5] = [
    Column::text("AGENT", Cut::Never),
    Column::text("INSTALLED", Cut::Never),
    Column::text("NEWEST", Cut::Never),
    Column::text("KIND", Cut::Never),
    Column::text("FROM", Cut::End(20)),
];

async fn outdated_by(programs: &Programs, args: cli::Outdated) -> Result<(), Failure> {
    let place = Place::of(&args.place)?;
    let (mut rows, mut objects, mut errors) = (Vec::new(), Vec::<Value>::new(), Vec::new());
    let names = place.added();
    if !names.is_empty() {
        let locked = place.lock(programs).await?;
        let staging = locked.staging()?;
        for name in names {
            let Some(receipt) = place.receipt(&name) else { continue };
            let dir = place.agents().version(&name, &receipt.version);
            let found = newest(programs, &receipt, &dir, staging.path()).await;
            let (newest, error) = match found {
                Ok(found) => (Some(found.version), None),
                Err(error) => (None, Some(error.to_string())),
            };
            let is_outdated = newest.as_ref().is_some_and(|newest| is_newer(newest, &receipt.version));
            rows.push(row(&receipt, newest.as_ref(), is_outdated));
            objects.push(json!({
                "name": name,
                "version": receipt.version,
                "newest": newest,
                "outdated": is_outdated,
                "kind": receipt.kind,
                "source": receipt.source,
                "error": error,
            }));
            errors.extend(error.map(|error| format!("{name}: {error}")));
        }
    }
    if args.place.json {
        print_json(&json!({"agents": objects}).to_string())?;
    } else if rows.is_empty() {
        print("no agent was added; `acpd agents add NAME` adds one")?;
    } else {
        let width = window().map(|(columns, _)| columns);
        print(&table(&COLUMNS, &rows, width, Paint::new(screen_of_stdout().colour)).join("\n"))?;
    }
    match errors.is_empty() {
        true => Ok(()),
        false => {
            let lines = errors.join("\n");
            Err(Failure::Of(Code::Failed, format!("not all could be asked\n{lines}")))
        }
    }
}

fn row(receipt: &Receipt, newest: Option<&Version>, is_outdated: bool) -> [Cell; 5] {
    let newest = newest.map_or("?", Version::as_str).to_owned();
    let tone = if is_outdated { Tone::Notable } else { Tone::Plain };
    let source = &receipt.source;
    let package = source.package.as_deref();
    let from = match receipt.kind {
        Kind::Binary => source.registry.as_deref(),
        Kind::Npx | Kind::Uvx => package,
    };
    [
        receipt.name.to_string().into(),
        receipt.version.to_string().into(),
        Cell { text: newest, tone },
        receipt.kind.word().to_owned().into(),
        line(from.unwrap_or_default(), 200).into(),
    ]
}
