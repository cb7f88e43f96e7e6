//! The OpenAPI document of REST, made from the handlers themselves.

use super::super::health;
use super::super::problem::ProblemDocument;
use super::{agents, events, sessions};
use axum::Json;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "acpd",
        description = "Sessions of coding agents: list, look, follow, end. Clients that prompt speak ACP at `/acp`. \
                       Every path under `/v1` is there under `/v2` too."
    ),
    paths(
        sessions::list, sessions::show, sessions::delete, sessions::close, sessions::terminate, events::events,
        agents::list, health::health, health::ready
    ),
    components(schemas(ProblemDocument, events::EventDocument)),
    modifiers(&Bearer, &BothVersions),
    security(("token" = []), ()),
)]
struct Document;

/// How a token is presented. None is needed where acpd has no tokens.
struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document.components.get_or_insert_default().add_security_scheme("token", scheme);
    }
}

/// The second name of every resource.
struct BothVersions;

impl Modify for BothVersions {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let paths = &mut document.paths.paths;
        let second: Vec<_> = paths
            .iter()
            .filter_map(|(path, item)| Some((format!("/v2{}", path.strip_prefix("/v1")?), item.clone())))
            .collect();
        for (path, mut item) in second {
            let operations = [&mut item.get, &mut item.post, &mut item.delete];
            for operation in operations.into_iter().flatten() {
                operation.operation_id = operation.operation_id.take().map(|id| format!("{id}_v2"));
            }
            paths.insert(path, item);
        }
    }
}

/// `GET /openapi.json`
pub(super) async fn document() -> Json<utoipa::openapi::OpenApi> {
    Json(Document::openapi())
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 5: clients are generated from the file, so it is what the daemon serves
    #[test]
    fn the_description_is_the_one_that_is_checked_in() {
        let text = serde_json::to_string_pretty(&Document::openapi()).expect("it is JSON") + "\n";
        let file = include_str!("../../../../../docs/openapi.json");
        let (mut is, mut should) = (file.lines(), text.lines());
        let stale = (1..).find(|_| match (is.next(), should.next()) {
            (None, None) => true,
            (is, should) => is != should,
        });
        assert!(
            file == text,
            "line {stale:?} of docs/openapi.json is stale: cargo build, then cargo xtask openapi"
        );
    }
}
