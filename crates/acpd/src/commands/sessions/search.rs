//! `acpd sessions search`: turns by the words that were said in them, with a daemon and without.

use super::screen_of_stdout;
use crate::cli::Search;
use crate::daemon::{Hits, Looked, look_for};
use crate::exit::Failure;
use crate::stored::Stored;
use crate::streams::{print, print_json, remark, window};
use crate::view::hit_list;
use acpd_eventlog::SearchText;
use jiff::Timestamp;
use serde_json::json;

pub(super) async fn search(args: Search) -> Result<(), Failure> {
    let text = args.text.join(" ");
    let words = SearchText::parse(&text).map_err(|error| Failure::Usage(format!("TEXT: {error}")))?;
    let (found, later) = match look_for(args.which).await? {
        Looked::Found(daemon) => {
            let most = usize::try_from(args.limit).unwrap_or(usize::MAX);
            (daemon.search(&text, most).await?, "the daemon is about to")
        }
        Looked::Unserved(config) => {
            Stored::check_search(&config)?;
            let stored = Stored::open(&config).await?;
            let found = stored.search(words, args.limit).await;
            stored.close().await;
            (found?, "`acpd serve` does so, and `acpd run` while it runs")
        }
    };
    if args.json {
        let raw: Vec<_> = found.hits.iter().map(|hit| &hit.raw).collect();
        let (hits, incomplete) = (json!(raw), found.incomplete);
        print_json(&format!("{{\"hits\":{hits},\"incomplete\":{incomplete}}}"))?;
    } else {
        show(&found)?;
    }
    if found.incomplete {
        remark(&format!("some sessions are not indexed yet, and were not searched: {later}"));
    }
    Ok(())
}

fn show(found: &Hits) -> Result<(), Failure> {
    if found.hits.is_empty() {
        remark("nothing found");
        return Ok(());
    }
    let width = window().map(|(columns, _)| columns);
    print(&hit_list(&found.hits, Timestamp::now(), width, screen_of_stdout()).join("\n"))?;
    if found.more {
        remark("there are more; --limit N shows them");
    }
    Ok(())
}
