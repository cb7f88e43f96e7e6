//! Whose a session is.

use crate::hosted::{close, creator, example, open, setup};
use acpd_e2e::Scratch;
use acpd_eventlog::ListQuery;
use acpd_host::{EndRequest, HostError, SessionId};
use serde_json::json;

// contract 1.7, SC-3: a session stays whose it was: live, ended, taken up by another, in the next daemon
#[tokio::test]
async fn a_session_stays_whose_it_was() {
    let scratch = Scratch::new();
    let host = open(&scratch, [example(&scratch, "a")]).await;
    let agent = host.connect("a", None).await.unwrap();
    let session = host.new_session(&agent, setup(&scratch), creator(Some("ci"))).await.unwrap().session;
    let id = session.id().clone();
    let of = async |host: &acpd_host::Host| {
        host.find(&id, |_| true).await.unwrap().created_by.map(|name| name.to_string())
    };
    assert_eq!(session.created_by().map(|name| &**name), Some("ci"));
    assert_eq!(of(&host).await.as_deref(), Some("ci"));
    let foreign = host.find(&id, |creator| creator == Some("other")).await;
    assert!(matches!(foreign, Err(HostError::UnknownSession { .. })), "{foreign:?}");
    session.end(EndRequest::Close, "test".into()).await;
    assert_eq!(of(&host).await.as_deref(), Some("ci"));
    let agent = host.connect("a", None).await.unwrap();
    let taken = host.activate(host.attempt(&id), &id, &agent, None, "somebody").await.unwrap();
    assert!(taken.fresh);
    assert_eq!(taken.session.created_by().map(|name| &**name), Some("ci"));
    let summary = host.inspect(&id, None).await.unwrap();
    assert_eq!(
        (summary.created_by.as_deref(), summary.session.metadata.created_by.as_deref()),
        (Some("ci"), Some("ci"))
    );
    close(host).await;

    let host = open(&scratch, []).await;
    assert_eq!(of(&host).await.as_deref(), Some("ci"));
    let unknown = host.find(&SessionId::parse("no-such-session").unwrap(), |_| true).await;
    assert!(matches!(unknown, Err(HostError::UnknownSession { .. })), "{unknown:?}");
    close(host).await;
}

// contract 1.7: a fork belongs to whoever forks; a list can be of one creator, and nobody's sessions are in none
#[tokio::test]
async fn a_fork_belongs_to_whoever_forks() {
    let scratch = Scratch::new();
    let host = open(&scratch, [example(&scratch, "a")]).await;
    let agent = host.connect("a", None).await.unwrap();
    let source = host.new_session(&agent, setup(&scratch), creator(Some("ci"))).await.unwrap().session;
    let id = source.id();
    let params = json!({"sessionId": id, "cwd": scratch.work(), "mcpServers": []}).to_string();
    let agent = host.connect("a", None).await.unwrap();
    let fork =
        host.fork_session(id, &agent, Some(params.into()), creator(Some("other"))).await.unwrap().session;
    assert_eq!(fork.created_by().map(|name| &**name), Some("other"));
    let agent = host.connect("a", None).await.unwrap();
    let nobodys = host.new_session(&agent, setup(&scratch), creator(None)).await.unwrap().session;
    assert_eq!(
        (nobodys.created_by(), host.find(nobodys.id(), |_| true).await.unwrap().created_by),
        (None, None)
    );

    let of = async |name: &str| {
        let query = ListQuery { created_by: Some(name.to_owned()), ..ListQuery::default() };
        let listed = host.list(query).await.unwrap();
        listed.into_iter().map(|summary| summary.session.id).collect::<Vec<_>>()
    };
    assert_eq!(of("ci").await, [id.as_str()]);
    assert_eq!(of("other").await, [fork.id().as_str()]);
    assert_eq!(of("nobody").await, [""; 0]);
    close(host).await;
}
