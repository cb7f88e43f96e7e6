//! New entries for agents while the host runs.

use crate::hosted::{close, example, open, session, session_on, turn, until};
use acpd_e2e::Scratch;
use acpd_host::{AgentSpec, Host, HostError, SessionHandle};
use std::collections::BTreeMap;

fn named(agents: impl IntoIterator<Item = AgentSpec>) -> BTreeMap<String, AgentSpec> {
    agents.into_iter().map(|spec| (spec.name.clone(), spec)).collect()
}

/// The example agent with a variable in its environment.
fn generation(scratch: &Scratch, n: &str) -> AgentSpec {
    let mut spec = example(scratch, "a");
    spec.program.env.push(("GENERATION".into(), format!("generation-{n}").into()));
    spec
}

/// What the agent of a session has in its environment.
async fn generation_of(host: &Host, session: &SessionHandle) -> String {
    let before = host.inspect(session.id(), None).await.expect("it can be read").session.history.event_count;
    assert_eq!(turn(session, "env GENERATION").await["stopReason"], "end_turn");
    let mut cursor = host.cursor(session.id(), before).await.expect("it can be read");
    let mut said = String::new();
    loop {
        let told = |n: &&str| said.contains(&format!("generation-{n}"));
        if let Some(n) = ["one", "two", "three"].into_iter().find(told) {
            return n.to_owned();
        }
        let block = cursor.next().await.expect("it can be read").expect("it can be read");
        for event in block.events() {
            said.push_str(std::str::from_utf8(event.payload).expect("it can be read"));
        }
    }
}

// issue 5, deliver 5: new sessions have the new entry, those that run keep theirs
#[tokio::test]
async fn a_new_entry_is_for_new_sessions() {
    let scratch = Scratch::new();
    let host = open(&scratch, [generation(&scratch, "one")]).await;
    let old = session(&host, &scratch, "a").await;
    let waiting = host.connect("a", None).await.unwrap();
    assert!(host.agents().still_offers(&waiting));
    host.agents().set(named([generation(&scratch, "two")]));
    let new = session(&host, &scratch, "a").await;
    assert_eq!(generation_of(&host, &old).await, "one");
    assert_eq!(generation_of(&host, &new).await, "two");
    assert!(!host.agents().still_offers(&waiting), "who waits for its first session has to ask again");
    drop(waiting);
    // The same entry once more changes nothing.
    let waiting = host.connect("a", None).await.unwrap();
    host.agents().set(named([generation(&scratch, "two")]));
    assert!(host.agents().still_offers(&waiting));
    drop(waiting);
    close(host).await;
}

// issue 5, deliver 5: an agent that is gone from the configuration is not started, and its sessions go on
#[tokio::test]
async fn a_removed_agent_is_not_started_any_more() {
    let scratch = Scratch::new();
    let host = open(&scratch, [generation(&scratch, "one"), example(&scratch, "b")]).await;
    let old = session(&host, &scratch, "a").await;
    let process = host.connect("a", None).await.unwrap();
    host.agents().set(named([example(&scratch, "b"), example(&scratch, "c")]));
    let refused = host.connect("a", None).await;
    let Err(HostError::UnknownAgent { name, known, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!((name.as_str(), known), ("a", vec!["b".to_owned(), "c".to_owned()]));
    assert!(!host.agents().still_offers(&process));
    drop(process);
    assert_eq!(generation_of(&host, &old).await, "one");
    let names: Vec<String> = host.agents().health().into_iter().map(|agent| agent.name).collect();
    assert_eq!(names, ["b", "c"]);
    assert_eq!(host.agents().specs().len(), 2);
    let new = session(&host, &scratch, "c").await;
    assert_eq!(turn(&new, "hello").await["stopReason"], "end_turn");
    close(host).await;
}

// issue 5, deliver 5: a process that is shared is not shared with sessions of a new entry
#[tokio::test]
async fn a_shared_process_goes_on_for_its_own_sessions() {
    let scratch = Scratch::new();
    let shared = |n: &str| AgentSpec { share_process: true, ..generation(&scratch, n) };
    let host = open(&scratch, [shared("one")]).await;
    let first = session(&host, &scratch, "a").await;
    host.agents().set(named([shared("one")]));
    let second = session(&host, &scratch, "a").await;
    assert_eq!(first.agent().pid(), second.agent().pid(), "nothing has changed");
    host.agents().set(named([shared("two")]));
    let third = session(&host, &scratch, "a").await;
    let fourth = session(&host, &scratch, "a").await;
    assert_ne!(first.agent().pid(), third.agent().pid());
    assert_eq!(third.agent().pid(), fourth.agent().pid());
    assert_eq!(generation_of(&host, &second).await, "one");
    assert_eq!(generation_of(&host, &fourth).await, "two");
    close(host).await;
}

/// The process that is kept ready, when one is.
async fn spare(host: &Host, processes: usize) {
    until("a spare is ready", async || {
        let health = host.agents().health().into_iter().find(|health| health.name == "a")?;
        (health.processes == processes && health.capabilities.is_some()).then_some(())
    })
    .await;
}

// issue 5, deliver 5: a spare of a changed entry is stopped, and replaced if the new entry wants one
#[tokio::test]
async fn a_spare_follows_its_entry() {
    let scratch = Scratch::new();
    let spared = |n: &str| AgentSpec { spare: true, ..generation(&scratch, n) };
    let host = open(&scratch, [spared("one")]).await;
    host.agents().keep_spare("a");
    spare(&host, 1).await;
    let pids = || scratch.mark().running("example-agent").into_iter().map(|p| p.pid).collect::<Vec<_>>();
    let old = pids();
    host.agents().set(named([spared("two")]));
    until("the old spare is gone", async || (!pids().iter().any(|pid| old.contains(pid))).then_some(()))
        .await;
    spare(&host, 1).await;
    let process = host.connect("a", None).await.unwrap();
    let new = session_on(&host, &scratch, &process).await.session;
    assert_eq!(generation_of(&host, &new).await, "two");
    spare(&host, 2).await;

    // One that wants none any more has none; and gets one again, because it was asked for.
    host.agents().set(named([generation(&scratch, "two")]));
    spare(&host, 1).await;
    assert_eq!(pids().len(), 1);
    host.agents().set(named([]));
    assert_eq!(generation_of(&host, &new).await, "two");
    host.agents().set(named([spared("three")]));
    spare(&host, 2).await;
    let process = host.connect("a", None).await.unwrap();
    let last = session_on(&host, &scratch, &process).await.session;
    assert_eq!(generation_of(&host, &last).await, "three");
    close(host).await;
}
