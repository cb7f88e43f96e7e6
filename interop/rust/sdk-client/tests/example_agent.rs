//! acpd over stdio with the example agent behind it, as a client on the official SDK sees it.
//!
//! Each talk ends with a look for processes that were left behind; it fails if there is one.

use sdk_client::schema::{SessionUpdate, StopReason, ToolCallStatus};
use sdk_client::{Conversation, Error, ErrorCode, Peer, ProtocolVersion, TalkError, Turn, talk};
use serde_json::{Value, json};

/// One of everything that needs no service of the client.
const PROMPTS: [&str; 3] = [
    "one two three",
    "think hm\nplan A,B\ntool build\nusage 10 200\ntitle Some title\ncommands x,y\nmode plan",
    "stream 40 200\na last word",
];

fn texts(turn: &Turn) -> String {
    turn.chunks().concat()
}

// IN-1, IN-3: version 1, who it is, and every capability that is listed can be called, and no other
#[tokio::test]
async fn initialize_is_answered_with_what_works() -> Result<(), TalkError> {
    talk(&Peer::hosted_example(), async |conversation| {
        let answer = conversation.initialize().await?;
        assert_eq!(answer.protocol_version, ProtocolVersion::V1);
        let info = answer.agent_info.expect("agentInfo");
        assert!(!info.name.is_empty() && !info.version.is_empty(), "{info:?}");
        let offers = answer.agent_capabilities;
        let sessions = offers.session_capabilities;
        for (method, is_listed) in [
            ("session/load", offers.load_session),
            ("session/list", sessions.list.is_some()),
            ("session/resume", sessions.resume.is_some()),
            ("session/close", sessions.close.is_some()),
            ("session/delete", sessions.delete.is_some()),
        ] {
            let nobody = json!({"sessionId": "nobody", "cwd": conversation.directory(), "mcpServers": []});
            let answer = conversation.call(method, nobody).await;
            let exists = answer.as_ref().err().is_none_or(|error| error.code != ErrorCode::METHOD_NOT_FOUND);
            assert_eq!(exists, is_listed, "{method}: {answer:?}");
        }
        // A look at the processes, which shows that the agent runs.
        conversation.new_session().await.map(drop)
    })
    .await
}

// SE-1: two sessions of one connection
#[tokio::test]
async fn sessions_have_ids_of_their_own() -> Result<(), TalkError> {
    talk(&Peer::hosted_example(), async |conversation| {
        conversation.initialize().await?;
        let first = conversation.new_session().await?;
        let second = conversation.new_session().await?;
        assert_ne!(first, second);
        assert_eq!(texts(&conversation.prompt(&second, "second").await?), "second");
        assert_eq!(texts(&conversation.prompt(&first, "first").await?), "first");
        Ok(())
    })
    .await
}

// PR-1: the same updates in the same order, hosted or not, apart from the session's id
#[tokio::test]
async fn turns_are_the_same_as_without_acpd() -> Result<(), TalkError> {
    async fn turns(conversation: &mut Conversation<'_>) -> Result<Vec<Turn>, Error> {
        conversation.initialize().await?;
        let session = conversation.new_session().await?;
        let mut turns = Vec::new();
        for prompt in PROMPTS {
            turns.push(conversation.prompt(&session, prompt).await?);
        }
        Ok(turns)
    }
    let hosted = talk(&Peer::hosted_example(), turns).await?;
    let direct = talk(&Peer::Example, turns).await?;
    assert_eq!(hosted, direct);
    assert_eq!(texts(&hosted[0]), PROMPTS[0]);
    assert!(hosted.iter().all(|turn| turn.stop_reason == StopReason::EndTurn));
    Ok(())
}

// contract 4: a tool call from pending to completed
#[tokio::test]
async fn a_tool_call_is_seen_from_pending_to_completed() -> Result<(), TalkError> {
    talk(&Peer::hosted_example(), async |conversation| {
        conversation.initialize().await?;
        let session = conversation.new_session().await?;
        let turn = conversation.prompt(&session, "tool build").await?;
        let [SessionUpdate::ToolCall(call), changes @ ..] = turn.updates.as_slice() else {
            panic!("{:?}", turn.updates)
        };
        assert_eq!((call.title.as_str(), call.status), ("build", ToolCallStatus::Pending));
        let Some(SessionUpdate::ToolCallUpdate(last)) = changes.last() else { panic!("{changes:?}") };
        assert_eq!(
            (&last.tool_call_id, last.fields.status),
            (&call.tool_call_id, Some(ToolCallStatus::Completed))
        );
        Ok(())
    })
    .await
}

// PR-4, PR-7: a cancelled turn ends as `cancelled`, and the session goes on
#[tokio::test]
async fn a_hanging_turn_is_cancelled() -> Result<(), TalkError> {
    talk(&Peer::hosted_example(), async |conversation| {
        conversation.initialize().await?;
        let session = conversation.new_session().await?;
        let turn = conversation.prompt_and_cancel(&session, "waiting\nhang").await?;
        assert_eq!((texts(&turn).as_str(), turn.stop_reason), ("waiting", StopReason::Cancelled));
        assert_eq!(texts(&conversation.prompt(&session, "again").await?), "again");
        Ok(())
    })
    .await
}

// FR-4: -32601, and the connection stays usable
#[tokio::test]
async fn an_unknown_method_is_refused() -> Result<(), TalkError> {
    talk(&Peer::hosted_example(), async |conversation| {
        conversation.initialize().await?;
        let refused = conversation.call("_nobody/knows", json!({"a": 1})).await.expect_err("unknown");
        assert_eq!(refused.code, ErrorCode::METHOD_NOT_FOUND);
        let session = conversation.new_session().await?;
        assert_eq!(texts(&conversation.prompt(&session, "still here").await?), "still here");
        Ok(())
    })
    .await
}

// contract 1.2, PR-11: the prompt's error carries the termination record, and the end is told once
#[tokio::test]
async fn a_crash_is_told_with_its_exit_code() -> Result<(), TalkError> {
    talk(&Peer::hosted_example(), async |conversation| {
        conversation.initialize().await?;
        let session = conversation.new_session().await?;
        let error = conversation.prompt(&session, "crash").await.expect_err("the agent is dead");
        let record = error.data.unwrap_or_default()["terminationInfo"].take();
        for (name, expected) in [
            ("reason", json!("error")),
            ("terminatedBy", json!("agent")),
            ("exitCode", json!(1)),
            ("cause", json!("agent_crash")),
            ("turnActive", json!(true)),
            ("signal", Value::Null),
        ] {
            assert_eq!(record[name], expected, "{name} of {record}");
        }

        conversation.ended().await?;
        let later = conversation.prompt(&session, "anybody?").await;
        assert!(later.is_err(), "a prompt never starts a process by itself: {later:?}");
        let [end] = conversation.ended().await?.try_into().expect("told once");
        assert_eq!(end.session_id, session.to_string());
        for (name, expected) in
            [("reason", json!("error")), ("terminated_by", json!("agent")), ("exit_code", json!(1))]
        {
            assert_eq!(end.data[name], expected, "{name} of {}", end.data);
        }
        let stderr = &end.data["stderr"];
        assert_eq!((&stderr["total_lines"], &stderr["truncated"]), (&json!(250), &json!(true)), "{stderr}");
        assert_eq!(record["stderr"]["totalLines"], 250);
        let tail = stderr["tail"].as_str().unwrap_or_default();
        assert_eq!(tail.lines().last(), Some("crash line 250"));
        Ok(())
    })
    .await
}

// SU-1, contract 3.2: what the agent forked, in a session of its own too, ends with it
#[tokio::test]
async fn forked_processes_are_not_left_behind() -> Result<(), TalkError> {
    talk(&Peer::hosted_example(), async |conversation| {
        conversation.initialize().await?;
        let session = conversation.new_session().await?;
        let before = conversation.processes()?.len();
        conversation.prompt(&session, "fork\nfork setsid").await?;
        let processes = conversation.processes()?;
        assert_eq!(processes.len(), before + 2, "{processes:?}");
        Ok(())
    })
    .await
}
