//! Answering what the agent asks (contract 7.3).

use super::super::problem::Problem;
use super::super::settings::Shared;
use super::prompting::caller;
use super::{SessionPath, body, find};
use crate::access::Needs;
use crate::identity::Identity;
use acpd_api::{AnswerBody, ProblemKind, Scope};
use acpd_host::AnswerRefused;
use acpd_record::QuestionNumber;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;

/// What tells the outcome of an elicitation from that of a permission request.
#[derive(Deserialize)]
struct Shape<'a> {
    #[serde(borrow, default)]
    action: Option<&'a RawValue>,
}

/// The result for a permission request.
#[derive(Serialize)]
struct PermissionResult<'a> {
    outcome: &'a RawValue,
}

/// `POST /v1/sessions/{id}/answer`: answers a question of the agent. The first answer counts.
pub(super) async fn answer(
    State(shared): State<Arc<Shared>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    SessionPath(id): SessionPath,
    body: Body,
) -> Result<StatusCode, Problem> {
    find(&shared, &identity, &id, Needs::resource(Scope::Control)).await?;
    let body = body::read(&shared, &headers, body).await?;
    let AnswerBody { question, outcome } = body::parse(&body)?;
    let result = result(outcome)?;
    let live = shared.host.session(&id).await?;
    let client = caller(&identity, &headers);
    match live.answer(QuestionNumber(question), Some(result), client).await {
        Some(Ok(())) => Ok(StatusCode::NO_CONTENT),
        Some(Err(refused)) => Err(refusal(question, &refused).about(id.as_str())),
        None => Err(live.ended_error().await.into()),
    }
}

/// The result of the agent's request.
fn result(outcome: &RawValue) -> Result<Bytes, Problem> {
    let object = Some(outcome.get()).filter(|outcome| outcome.starts_with('{'));
    let shape: Option<Shape<'_>> = object.and_then(|outcome| serde_json::from_str(outcome).ok());
    let shape = shape.ok_or_else(|| {
        let fix = "for a permission {\"outcome\":\"selected\",\"optionId\":...}, for an elicitation {\"action\":...}";
        Problem::bad_request(format!("outcome: an object is required, {fix}"))
    })?;
    Ok(match shape.action {
        Some(_) => Bytes::copy_from_slice(outcome.get().as_bytes()),
        None => serde_json::to_vec(&PermissionResult { outcome }).expect("its member is JSON").into(),
    })
}

fn refusal(question: u64, refused: &AnswerRefused) -> Problem {
    match refused {
        AnswerRefused { reason, again: Some(_) } => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, ProblemKind::NotOffered, reason.clone())
        }
        AnswerRefused { again: None, .. } => {
            let detail = format!(
                "question: {question} is not open here: it was answered, is put to one other client alone, or is none"
            );
            Problem::new(StatusCode::CONFLICT, ProblemKind::QuestionClosed, detail)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.3: an outcome is as in ACP, where a permission's stands in a member of its own
    #[test]
    fn an_outcome_is_a_result_of_acp() {
        let of = |outcome: &str| {
            let result = result(serde_json::from_str(outcome).expect("JSON"));
            result.ok().map(|result| String::from_utf8(result.to_vec()).expect("text"))
        };
        let accept = r#"{ "action":"accept","content":{"a":1.0} }"#;
        assert_eq!(of(accept).as_deref(), Some(accept.trim()));
        let selected = r#"{"outcome":"selected","optionId":"x"}"#;
        assert_eq!(of(selected), Some(format!(r#"{{"outcome":{selected}}}"#)));
        for none in ["7", "\"selected\"", "[7]", "null"] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
