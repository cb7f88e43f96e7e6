//! Search over what was said in sessions (contract 7.3).

use super::super::problem::Problem;
use super::super::settings::Shared;
use super::{check_scope, numbers, query};
use crate::identity::Identity;
use crate::paging::{ListFilter, PageRequest, WRONG_CURSOR};
use acpd_api::{Scope, SearchPage, TextQuery};
use acpd_eventlog::{SearchQuery, SearchText};
use acpd_host::Findings;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Turns of a page, if nothing else is asked for.
const PAGE: u64 = 20;
/// Turns of a page at most: each is read from the log.
const LONGEST_PAGE: u64 = 100;

/// The list that a cursor belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Searched {
    text: String,
}

impl ListFilter for Searched {
    type Position = (i64, i64);
}

/// `GET /v1/search`: turns of sessions that exist for the caller, by the words of prompts, answers and titles of tool calls.
pub(super) async fn search(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    asked: Result<Query<TextQuery>, QueryRejection>,
) -> Result<Json<SearchPage>, Problem> {
    check_scope(&identity, Scope::Observe)?;
    let TextQuery { text, cursor, limit } = query(asked)?;
    let words = SearchText::parse(&text).map_err(|error| Problem::bad_request(format!("text: {error}")))?;
    let limit = numbers("limit", limit.as_deref(), 1..=LONGEST_PAGE)?.unwrap_or(PAGE);
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let request = PageRequest::new(Searched { text }, cursor.as_deref(), limit);
    let request = request.ok_or_else(|| Problem::bad_request(WRONG_CURSOR))?;
    let asked = SearchQuery {
        text: words,
        created_by: identity.only_its_own(),
        after: request.after,
        limit: request.needed(),
    };
    let Findings { hits, incomplete } = shared.host.search(asked).await?;
    let page = request.page(hits, |found| found.place);
    let hits = page.entries.into_iter().map(|found| found.hit).collect();
    Ok(Json(SearchPage { hits, incomplete, next_cursor: page.next_cursor }))
}
