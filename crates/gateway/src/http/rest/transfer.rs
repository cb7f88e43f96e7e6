//! Sessions as files: exporting one, and importing what another acpd has exported (contract 7.3).
//!
//! Both go piece by piece, at the pace of the slower side. An answer that breaks off is told by its connection: no end of its
//! body comes. Not here: the form of a file, and what of one is taken over.

use super::super::body::next_piece;
use super::super::forwarding::Lost;
use super::super::problem::Problem;
use super::super::settings::Shared;
use super::sessions::{created, initiator};
use super::{SessionPath, check_scope, find, query, too_many_connections};
use crate::access::Needs;
use crate::identity::{ConnectionPermit, Identity};
use acpd_api::{ExportQuery, ProblemKind, Scope};
use acpd_host::{Creator, ExportForm, HostError, ImportError, SessionExport, SessionImport};
use acpd_record::SessionId;
use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long the rest of what is refused is read, so that a client that is still sending reads why.
const REST: Duration = Duration::from_secs(2);

/// `GET /v1/sessions/{id}/export`: a session as a file.
pub(super) async fn export(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    lost: Option<Extension<Lost>>,
    SessionPath(id): SessionPath,
    asked: Result<Query<ExportQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let found = match &lost {
        Some(_) => None,
        None => Some(find(&shared, &identity, &id, Needs::resource(Scope::Observe)).await?),
    };
    let form = form(query(asked)?)?;
    let (kind, ending) = match form {
        ExportForm::Jsonl => ("application/x-ndjson", "jsonl"),
        ExportForm::Markdown { .. } => ("text/markdown; charset=utf-8", "md"),
    };
    let permit = identity.connect().ok_or_else(too_many_connections)?;
    let export = match (found, lost) {
        (Some(found), _) => shared.host.export(&id, found, form).await?,
        (None, Some(Extension(lost))) => lost.export(&shared, form).await?,
        (None, None) => return Err(Problem::session_not_found(id.as_str())),
    };
    let mut response = Body::from_stream(pieces(export, identity, permit)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    header(headers, header::CONTENT_DISPOSITION, &format!("attachment; filename=\"{id}.{ending}\""));
    Ok(response)
}

fn form(ExportQuery { format, details }: ExportQuery) -> Result<ExportForm, Problem> {
    let form = format.map_or(Ok(ExportForm::default()), |format| format.parse());
    let form = form.map_err(|_| Problem::bad_request("format: jsonl or markdown is required"))?;
    match details.as_deref() {
        None | Some("false") => Ok(form),
        Some("true") => {
            form.with_details().ok_or_else(|| Problem::bad_request("details: format=markdown is required"))
        }
        Some(_) => Err(Problem::bad_request("details: true or false is required")),
    }
}

/// A header that has the id of a session in it, which every header can carry.
pub(super) fn header(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    headers.extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
}

fn pieces(
    export: SessionExport,
    identity: Identity,
    permit: ConnectionPermit,
) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold((export, identity, permit), async |(mut export, identity, permit)| {
        if identity.revoked().is_cancelled() {
            return Err(io::Error::other("the token is not known any more"));
        }
        let piece = export.next_piece().await.map_err(|error: HostError| {
            tracing::warn!(error = acpd_host::chain(&error), "an export broke off");
            io::Error::other(error)
        })?;
        Ok(piece.map(|piece| (piece, (export, identity, permit))))
    })
}

/// `POST /v1/import`: takes over a session that was exported as `jsonl`.
pub(super) async fn import(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    mut body: Body,
) -> Result<Response, Problem> {
    check_scope(&identity, Scope::Admin)?;
    let _permit = identity.connect().ok_or_else(too_many_connections)?;
    let creator =
        Creator { client: initiator(&identity, &headers).into(), token: identity.name().cloned(), key: None };
    let importing = shared.host.import(creator, shared.settings().message_bytes);
    let imported = read(importing, &mut body, &identity, &shared).await;
    if imported.is_err() {
        let rest = async { while let Some(Ok(_)) = body.frame().await {} };
        let _read = tokio::time::timeout(REST, rest).await;
    }
    let id = imported?;
    created(&shared, &identity, &id).await
}

async fn read(
    mut import: SessionImport,
    body: &mut Body,
    identity: &Identity,
    shared: &Shared,
) -> Result<SessionId, Problem> {
    loop {
        let piece = tokio::select! {
            biased;
            piece = next_piece(body, &shared.pulse, "the export did not come in time") => piece?,
            () = identity.revoked().cancelled() => {
                let detail = "the token is not known any more";
                return Err(Problem::new(StatusCode::UNAUTHORIZED, ProblemKind::Unauthorized, detail));
            }
            () = shared.stop.cancelled() => return Err(HostError::ShuttingDown.into()),
        };
        match piece {
            None => return Ok(import.finish().await?),
            Some(data) => import.push(&data).await?,
        }
    }
}

impl From<ImportError> for Problem {
    fn from(error: ImportError) -> Self {
        let detail = error.to_string();
        match error {
            ImportError::Line { .. } => Self::bad_request(detail),
            ImportError::Known { id } => {
                Self::new(StatusCode::CONFLICT, ProblemKind::SessionExists, detail).about(id.as_str())
            }
            ImportError::Host(error) => Self::of_host(&error),
        }
    }
}
