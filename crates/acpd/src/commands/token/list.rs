//! `acpd token list`: what the configuration has, with the last use as the daemon knows it.

use crate::cli::TokenPlace;
use crate::commands::sessions::screen_of_stdout;
use crate::config::{Config, Scope, Sees, Sources, word, word_of_mcp, written};
use crate::exit::Failure;
use crate::kept_config::{local_daemon, read};
use crate::streams::{print, print_json, window};
use crate::view::{Cell, Column, Cut, Paint, Tone, age, span, table};
use acpd_api::Limits;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A token, without anything secret.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    scope: String,
    sees: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Limits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    expired: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used: Option<String>,
}

#[derive(Serialize)]
struct Rows {
    tokens: Vec<Row>,
}

/// What a daemon says of its tokens.
#[derive(Deserialize)]
struct Known {
    tokens: Vec<KnownToken>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KnownToken {
    name: String,
    last_used: Option<String>,
}

const COLUMNS: [Column; 6] = [
    Column::text("TOKEN", Cut::Never),
    Column::text("SCOPE", Cut::Never),
    Column::text("SEES", Cut::Never),
    Column::text("EXPIRES", Cut::End(10)),
    Column::text("LAST USED", Cut::End(5)),
    Column::text("LIMITS", Cut::End(6)),
];

pub(super) async fn list(place: TokenPlace) -> Result<(), Failure> {
    let config = read(&Sources::of_process(place.config, None))?;
    let uses = last_uses(&config).await;
    let now = Timestamp::now();
    let tokens = rows(&config, uses.as_ref(), now);
    if place.json {
        return print_json(&serde_json::to_string(&Rows { tokens })?).map(drop);
    }
    if tokens.is_empty() {
        return print("no tokens; `acpd token new NAME --scope SCOPE` makes one").map(drop);
    }
    let cells: Vec<[Cell; 6]> = tokens.iter().map(|row| cells(row, uses.is_some(), now)).collect();
    let width = window().map(|(columns, _)| columns);
    print(&table(&COLUMNS, &cells, width, Paint::new(screen_of_stdout().colour)).join("\n")).map(drop)
}

/// By name; None without a daemon that could know.
async fn last_uses(config: &Config) -> Option<HashMap<String, Option<String>>> {
    let daemon = local_daemon(config).await?;
    let Known { tokens } = daemon.get("/v1/tokens").await.ok()?;
    Some(tokens.into_iter().map(|token| (token.name, token.last_used)).collect())
}

fn rows(config: &Config, uses: Option<&HashMap<String, Option<String>>>, now: Timestamp) -> Vec<Row> {
    let row = |(name, token): (&String, &crate::config::Token)| Row {
        name: name.clone(),
        scope: word(token.scope),
        // An admin sees all, whatever its entry says.
        sees: word(if token.scope == Scope::Admin { Sees::All } else { token.sees }),
        limits: Some(token.limits()).filter(|limits| *limits != Limits::default()),
        expires: token.expires.map(written),
        expired: token.expires.is_some_and(|at| at <= now),
        last_used: uses.and_then(|uses| uses.get(name).cloned().flatten()),
    };
    config.tokens.iter().map(row).collect()
}

fn cells(row: &Row, is_known: bool, now: Timestamp) -> [Cell; 6] {
    let expires = match &row.expires {
        None => Cell::from("never".to_owned()),
        Some(at) if row.expired => {
            Cell { text: format!("expired {}", at.get(..10).unwrap_or(at)), tone: Tone::Bad }
        }
        Some(at) => {
            let left = at.parse::<Timestamp>().map_or(0, |at| at.as_second() - now.as_second());
            Cell::from(format!("{} (in {})", at.get(..10).unwrap_or(at), span(left)))
        }
    };
    let used = match (&row.last_used, is_known) {
        (Some(at), _) => format!("{} ago", age(at.as_str().into(), now)),
        (None, true) => "never".to_owned(),
        // The daemon knows, and there is none.
        (None, false) => String::new(),
    };
    let [name, scope, sees] = [&row.name, &row.scope, &row.sees].map(|text| text.clone().into());
    let limits = row.limits.as_ref().map(words).unwrap_or_default();
    [name, scope, sees, expires, used.into(), limits.into()]
}

fn texts(list: Option<&[String]>) -> Option<Vec<&str>> {
    list.map(|list| list.iter().map(String::as_str).collect())
}

/// Limits in a few words.
fn words(limits: &Limits) -> String {
    let listed = |name: &str, list: Option<Vec<&str>>| list.map(|list| format!("{name} {}", list.join(", ")));
    let modes = limits.permission_modes.as_ref();
    let parts = [
        listed("agents", texts(limits.agents.as_deref())),
        listed("roots", texts(limits.roots.as_deref())),
        listed("modes", modes.map(|modes| modes.iter().map(|mode| mode.as_str()).collect())),
        limits.mcp.map(|mcp| format!("mcp {}", word_of_mcp(mcp))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.1: tokens are listed with expiry and last use
    #[test]
    fn expiry_and_last_use_are_told() {
        let now: Timestamp = "2026-11-23T12:00:00Z".parse().expect("a time");
        let row = |expires: Option<&str>, expired, used: Option<&str>| Row {
            name: "ci".to_owned(),
            scope: "control".to_owned(),
            sees: "own".to_owned(),
            limits: None,
            expires: expires.map(str::to_owned),
            expired,
            last_used: used.map(str::to_owned),
        };
        for (row, is_known, expires, used) in [
            (row(None, false, None), false, "never", ""),
            (row(None, false, None), true, "never", "never"),
            (row(Some("2026-11-25T12:00:00Z"), false, None), true, "2026-11-25 (in 2d)", "never"),
            (
                row(Some("2026-11-23T12:00:00Z"), true, Some("2026-11-23T11:00:00.000Z")),
                true,
                "expired 2026-11-23",
                "1h ago",
            ),
        ] {
            let [_, _, _, shown_expires, shown_used, _] = cells(&row, is_known, now).map(|cell| cell.text);
            assert_eq!((shown_expires.as_str(), shown_used.as_str()), (expires, used));
        }
    }
}
