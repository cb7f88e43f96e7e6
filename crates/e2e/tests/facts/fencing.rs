//! A host that its fleet may have given up: what ends, what does not begin, and what goes on.

use crate::hosted::{ask, close, creator, entry, example, open, session, turn, until};
use acpd_e2e::{PATIENCE, Scratch, shell_agent, taking_shell_agent};
use acpd_eventlog::ListQuery;
use acpd_host::{
    AgentSpec, Beginning, Cause, ClientRef, Graces, Host, HostError, Partition, Place, Reason, SessionHandle,
    SessionId, TerminatedBy, Timeouts, prompt_params,
};
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The params of `session/new` with a policy.
fn setup(scratch: &Scratch, partition: &str) -> Option<Bytes> {
    let own = json!({"sandboxagent.dev": {"partition": partition}});
    Some(json!({"cwd": scratch.work(), "mcpServers": [], "_meta": own}).to_string().into())
}

async fn session_with(host: &Host, scratch: &Scratch, agent: &str, partition: &str) -> SessionHandle {
    let process = host.connect(agent, None).await.expect("the agent starts");
    let new = host.new_session(&process, setup(scratch, partition), creator(None)).await;
    new.expect("the agent gives a session").session
}

/// Takes a session up for a client.
async fn take_up(host: &Host, id: &SessionId) -> Result<SessionHandle, HostError> {
    let place = Place { agent: "a".to_owned(), ..Place::default() };
    let (joined, _unused) = host.join(id, host.attempt(id), place, None, "e2e").await;
    joined.map(|joined| joined.live)
}

async fn prompted(host: &Host, id: &SessionId) -> Result<(), HostError> {
    let content: &RawValue = serde_json::from_str(r#"[{"type":"text","text":"hello"}]"#).expect("JSON");
    let client = ClientRef { name: "e2e".into(), connection: "e2e-1".into() };
    host.prompt(id, prompt_params(id, content, None), client).await.map(drop)
}

async fn listed(host: &Host) -> Value {
    serde_json::to_value(host.list(ListQuery::default()).await.expect("readable")).expect("JSON")
}

// design fleet, partition: the owner ends its turn by itself, and answers for it; sessions of policy local do not notice
#[tokio::test]
async fn what_another_node_may_take_up_ends() {
    let scratch = Scratch::new();
    let host = open(&scratch, [example(&scratch, "a")]).await;
    host.in_fleet(Partition::Local, None);
    let ours = session(&host, &scratch, "a").await;
    let theirs = session_with(&host, &scratch, "a", "failover").await;
    let policies = listed(&host).await;
    assert_eq!((&policies[0]["partition"], policies[1].get("partition")), (&json!("failover"), None));
    let params = json!({"prompt": [{"type": "text", "text": "hang"}]});
    let hanging = ask(&theirs, "session/prompt", params).await;
    host.fence(true);
    host.fence(true);
    let end = theirs.ended().await;
    assert_eq!(
        (end.reason, end.terminated_by, end.cause),
        (Reason::Error, TerminatedBy::Daemon, Some(Cause::Fenced))
    );
    assert_eq!(
        (end.last_stop_reason.as_deref(), end.initiator.as_deref()),
        (Some("cancelled"), Some("daemon"))
    );
    assert!(
        end.message.as_deref().is_some_and(|why| why.contains("not heard of this node in time")),
        "{end:?}"
    );
    assert_eq!(hanging.await.expect("it is answered")["stopReason"], "cancelled");
    assert_eq!(turn(&ours, "hello").await["stopReason"], "end_turn");
    host.fence(false);
    host.fence(false);
    let again = take_up(&host, theirs.id()).await.expect("the fence is down, and the end not final");
    assert_eq!(turn(&again, "hello").await["stopReason"], "end_turn");
    close(host).await;
}

// design fleet, partition: while the fence is up, nothing that another node may take up is created, taken up, forked or prompted
#[tokio::test]
async fn nothing_begins_behind_the_fence() {
    let scratch = Scratch::new();
    let host = open(&scratch, [example(&scratch, "a")]).await;
    host.in_fleet(Partition::Failover, None);
    let theirs = session(&host, &scratch, "a").await;
    let ours = session_with(&host, &scratch, "a", "local").await;
    let agent = host.connect("a", None).await.expect("the agent starts");
    host.fence(true);
    assert!(host.is_fenced());
    let id = theirs.id().clone();
    let of_live = prompted(&host, &id).await;
    assert!(matches!(of_live, Err(HostError::Fenced)), "while it ends: {of_live:?}");
    theirs.ended().await;
    let begun = |source: Option<SessionId>| {
        let place = Place { agent: "a".to_owned(), ..Place::default() };
        let named = json!({"sessionId": id, "cwd": scratch.work(), "mcpServers": []});
        let params = Some(named.to_string().into());
        let host = host.clone();
        async move {
            let source = source.as_ref();
            let wanted = Beginning { source, params, prompt: None, creator: creator(None) };
            host.begin(place, wanted).await.map(drop).map_err(|(error, _)| error)
        }
    };
    let created = host.new_session(&agent, crate::hosted::setup(&scratch), creator(None)).await.map(drop);
    let activated = host.activate(host.attempt(&id), &id, &agent, None, "e2e").await.map(drop);
    for (what, refused) in [
        ("prompt", prompted(&host, &id).await),
        ("join", take_up(&host, &id).await.map(drop)),
        ("create", begun(None).await),
        ("create on a process", created),
        ("fork", begun(Some(id.clone())).await),
        ("activate", activated),
    ] {
        assert!(matches!(refused, Err(HostError::Fenced)), "{what}: {refused:?}");
    }
    assert_eq!(listed(&host).await.as_array().map(Vec::len), Some(2), "nothing was begun");
    // What belongs to this node goes on, ends and begins.
    assert_eq!(turn(&ours, "hello").await["stopReason"], "end_turn");
    let more = session_with(&host, &scratch, "a", "local").await;
    assert_eq!(turn(&more, "hello").await["stopReason"], "end_turn");
    host.fence(false);
    prompted(&host, ours.id()).await.expect("it never ended");
    assert!(matches!(prompted(&host, &id).await, Err(HostError::SessionEnded { .. })));
    begun(Some(id.clone())).await.expect("the fence is down");
    let fork = listed(&host).await;
    let fork = fork.as_array().expect("a list").iter().find(|one| one["metadata"]["forkedFrom"] == json!(id));
    assert_eq!(fork.expect("it is there")["partition"], "failover", "a fork has its source's policy");
    drop(agent);
    close(host).await;
}

// design fleet, partition: a session that is being created, or taken up, when the fence comes down does not slip through
#[tokio::test]
async fn what_is_about_to_begin_does_not_slip_through() {
    let scratch = Scratch::new();
    let gate = scratch.path("gate");
    // It answers `session/new` when something is written into the gate.
    let body = format!(
        "mkfifo '{gate}'; take; answer '{{\"protocolVersion\":1,\"agentCapabilities\":{{}}}}'\n\
         take; : > '{gate}.asked'; read -r _ < '{gate}'; answer '{{\"sessionId\":\"shell-1\"}}'; while take; do :; done",
        gate = gate.display()
    );
    let host = open(&scratch, [entry(&scratch, "a", "sh", &taking_shell_agent(&body))]).await;
    host.in_fleet(Partition::Failover, None);
    let agent = host.connect("a", None).await.expect("the agent starts");
    let new = host.new_session(&agent, crate::hosted::setup(&scratch), creator(None));
    let fenced = async {
        let asked = gate.with_extension("asked");
        until("the agent is asked", async || asked.exists().then_some(())).await;
        host.fence(true);
        std::fs::write(&gate, "now\n").expect("the agent reads it");
    };
    let (created, ()) = tokio::join!(new, fenced);
    assert!(matches!(created, Err(HostError::Fenced)), "{created:?}");
    let listed = listed(&host).await;
    assert_eq!(
        (listed.as_array().map(Vec::len), &listed[0]["ended"], &listed[0]["terminationInfo"]["cause"]),
        (Some(1), &json!(true), &json!("fenced")),
        "{listed}"
    );
    assert_eq!(host.live_sessions(), 0);
    drop(agent);
    close(host).await;
}

/// An agent that leaves when the next one of three has been asked to leave, too.
fn one_of_three(scratch: &Scratch, number: usize) -> AgentSpec {
    let place = |number: usize| scratch.path(&format!("gate-{}", number % 3)).display().to_string();
    let body = format!(
        "mkfifo '{own}'; while IFS= read -r line; do :; done\necho > '{next}' & read -r _ < '{own}'; wait",
        own = place(number),
        next = place(number + 1)
    );
    let spec = entry(scratch, &format!("a{number}"), "sh", &shell_agent(&body));
    let graces = Graces { stdin: PATIENCE, term: PATIENCE };
    AgentSpec { timeouts: Timeouts { graces, ..spec.timeouts }, ..spec }
}

// design fleet, partition: all end side by side: how fast does not depend on how many there are
#[tokio::test]
async fn all_end_side_by_side() {
    let scratch = Scratch::new();
    let host = open(&scratch, (0..3).map(|number| one_of_three(&scratch, number))).await;
    host.in_fleet(Partition::Failover, None);
    let mut sessions = Vec::new();
    for number in 0..3 {
        sessions.push(session(&host, &scratch, &format!("a{number}")).await);
        // It is asked to leave when it can tell the others so.
        let gate = scratch.path(&format!("gate-{number}"));
        until("the agent is ready", async || gate.exists().then_some(())).await;
    }
    host.fence(true);
    for session in sessions {
        let end = session.ended().await;
        assert_eq!((end.cause, &end.escalation[..]), (Some(Cause::Fenced), &["stdin_closed".to_owned()][..]));
    }
    close(host).await;
}
