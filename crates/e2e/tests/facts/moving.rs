//! A session that moves from one node to another: what is left behind, and what goes on.

use crate::hosted::{close, creator, example, open, session, setup, turn, until};
use acpd_e2e::Scratch;
use acpd_eventlog::CursorError;
use acpd_host::{AgentSpec, Cause, HostError, Partition, Reason, SessionId, TakenUp};
use acpd_record::{Event, NativeSessionId};
use serde_json::{Value, json};

async fn info(host: &acpd_host::Host, id: &SessionId) -> Value {
    let found = host.find(id, |_| true).await.expect("it is there");
    serde_json::to_value(host.session_info(id, found).await.expect("readable")).expect("JSON")
}

/// The kind and the method of each beginning of a run, and the titles, in the order of the log.
async fn told(host: &acpd_host::Host, id: &SessionId) -> Vec<String> {
    let last = info(host, id).await["eventCount"].as_u64().expect("a number");
    let mut cursor = host.cursor(id, 0).await.expect("it is there");
    let mut told = Vec::new();
    while cursor.position() < last {
        let block = cursor.next().await.expect("readable").expect("there are more");
        for event in block.events() {
            match Event::read(event.kind, event.payload).expect("it is known") {
                Event::RunStarted(run) => {
                    told.push(format!("run {}", run.method.as_deref().unwrap_or("new")))
                }
                Event::Ended(end) => told.push(format!("ended {}", end.cause.map_or("", Cause::as_str))),
                _ => {}
            }
        }
    }
    told
}

fn with_transcripts(scratch: &Scratch) -> AgentSpec {
    AgentSpec { resume_with_transcript: true, ..example(scratch, "a") }
}

// design fleet, partition: the loser ends its agent by the ladder, record `superseded` with by whom, and loses nothing
#[tokio::test]
async fn a_session_that_another_node_has_is_set_aside() {
    let scratch = Scratch::new();
    let host = open(&scratch, [with_transcripts(&scratch)]).await;
    host.in_fleet(Partition::Failover, None);
    let agent = host.connect("a", None).await.expect("the agent starts");
    let live =
        host.new_session(&agent, setup(&scratch), creator(Some("ci"))).await.expect("a session").session;
    let (id, pid) = (live.id().clone(), agent.pid());
    drop(agent);
    assert_eq!(turn(&live, "hello").await["stopReason"], "end_turn");
    let mut reader = host.cursor(&id, 0).await.expect("it is there");
    let presence = host.presence(&id);
    let copy = host.set_aside(&id, "build-2").await.expect("it is here");
    assert_ne!(copy, id);
    let end = live.ended().await;
    assert_eq!((end.reason, end.cause), (Reason::Error, Some(Cause::Superseded)));
    assert_eq!(
        (end.initiator.as_deref(), end.message.as_deref()),
        (Some("build-2"), Some("node build-2 has taken the session up"))
    );
    let process = format!("/proc/{pid}");
    until("the agent has ended", async || (!std::path::Path::new(&process).exists()).then_some(())).await;
    presence.over().await;
    let read = async {
        while reader.next().await?.is_some() {}
        Ok::<_, CursorError>(())
    };
    assert!(!matches!(read.await, Err(CursorError::Damaged { .. })));

    // The id is free, and what was seen under it is there.
    for gone in [host.inspect(&id, None).await.map(drop), host.set_aside(&id, "build-2").await.map(drop)] {
        assert!(matches!(gone, Err(HostError::UnknownSession { .. })), "{gone:?}");
    }
    let kept = info(&host, &copy).await;
    assert_eq!(
        (&kept["title"], &kept["metadata"]["setAsideFrom"], &kept["metadata"]["createdBy"]),
        (&json!("hello (until build-2 took it up)"), &json!(id), &json!("ci"))
    );
    assert_eq!((kept.get("partition"), kept.get("nativeSessionId")), (None, None), "it stays here");
    assert_eq!(told(&host, &copy).await, ["run new", "ended superseded"]);

    // It can go on, by what was said in it.
    let agent = host.connect("a", None).await.expect("the agent starts");
    let again =
        host.activate(host.attempt(&copy), &copy, &agent, None, "e2e").await.expect("it gives a transcript");
    assert_eq!(turn(&again.session, "hello").await["stopReason"], "end_turn");
    assert_eq!(told(&host, &copy).await, ["run new", "ended superseded", "run session/new"]);
    assert_eq!(info(&host, &copy).await["title"], kept["title"], "the copy is called what it is");
    close(host).await;
}

// design fleet, partition: a copy whose agent takes no transcripts can be read, and says why it cannot go on
#[tokio::test]
async fn a_copy_says_why_it_cannot_go_on() {
    let scratch = Scratch::new();
    let host = open(&scratch, [example(&scratch, "a")]).await;
    let live = session(&host, &scratch, "a").await;
    let copy = host.set_aside(live.id(), "b").await.expect("it is here");
    let agent = host.connect("a", None).await.expect("the agent starts");
    let refused =
        host.activate(host.attempt(&copy), &copy, &agent, None, "e2e").await.expect_err("no transcripts");
    let says = refused.to_string();
    assert!(
        says.contains("another node has taken it up") && says.contains("resume_with_transcript"),
        "{says}"
    );
    drop(agent);
    close(host).await;
}

/// What another node knows of a session of this one, with its events.
async fn moved(from: &acpd_host::Host, to: &acpd_host::Host, id: &SessionId, native: &str) -> SessionId {
    let known = info(from, id).await;
    let text = |name: &str| known[name].as_str().expect("a text").to_owned();
    let session = TakenUp {
        id: id.clone(),
        agent: text("agent"),
        cwd: text("cwd"),
        created_ms: 7,
        title: None,
        forked_from: None,
        created_by: Some("ci".to_owned()),
        native_session_id: Some(NativeSessionId::of_text(native)),
        partition: Partition::Failover,
    };
    let last = known["eventCount"].as_u64().expect("a number");
    let mut taken = to.take_up(session).await.expect("it is not there");
    let mut cursor = from.cursor(id, 0).await.expect("it is here");
    while taken.position() < last {
        taken
            .push(&cursor.next().await.expect("readable").expect("there are more"))
            .await
            .expect("it is legal");
    }
    taken.finish().await.expect("it is whole")
}

// design fleet, partition: another node takes the session up: by what the agent knows of it, else by a transcript
#[tokio::test]
async fn a_session_goes_on_elsewhere() {
    let (here, there) = (Scratch::new(), Scratch::new());
    let host = open(&here, [example(&here, "a")]).await;
    let live = session(&host, &here, "a").await;
    assert_eq!(turn(&live, "hello").await["stopReason"], "end_turn");
    let id = live.id().clone();
    let native = info(&host, &id).await["nativeSessionId"].as_str().expect("it was named").to_owned();
    // As if the node were lost: its run has no end.
    for (agent, method) in
        [(example(&here, "a"), "run session/resume"), (with_transcripts(&there), "run session/new")]
    {
        let state = Scratch::new();
        let other = open(&state, [agent]).await;
        moved(&host, &other, &id, &native).await;
        let known = info(&other, &id).await;
        assert_eq!(
            (&known["partition"], &known["metadata"]["createdBy"]),
            (&json!("failover"), &json!("ci"))
        );
        assert_eq!(known["nativeSessionId"], json!(native));
        assert_eq!(told(&other, &id).await, ["run new", "ended daemon_lost"]);
        let agent = other.connect("a", None).await.expect("the agent starts");
        let again = other.activate(other.attempt(&id), &id, &agent, None, "e2e").await.expect("it goes on");
        assert_eq!(turn(&again.session, "hello").await["stopReason"], "end_turn");
        assert_eq!(told(&other, &id).await, ["run new", "ended daemon_lost", method]);
        close(other).await;
    }
    close(host).await;
}
