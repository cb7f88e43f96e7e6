//! acpd over the network with the example agent behind it, as clients on the official SDK see it.
//!
//! Each daemon is stopped at the end, must end well, and must leave no process behind.

use sdk_client::schema::{SessionUpdate, StopReason};
use sdk_client::{Conversation, Daemon, Error, ErrorCode, TalkError, Transport, message};
use serde_json::json;

/// Runs a script as one client, over each transport.
async fn over_each(
    script: impl AsyncFn(&mut Conversation<'_>) -> Result<(), Error>,
) -> Result<(), TalkError> {
    for transport in Transport::ALL {
        eprintln!("over {transport:?}");
        let daemon = Daemon::start().await?;
        daemon.talk(transport, &script).await?;
        daemon.stop().await?;
    }
    Ok(())
}

fn texts(updates: &[SessionUpdate]) -> String {
    updates.iter().filter_map(message).collect()
}

// HT-1, HT-3, WS-1, PR-1: turns as over stdio, each update before the answer
#[tokio::test]
async fn a_turn_streams_and_ends() -> Result<(), TalkError> {
    over_each(async |client| {
        let answer = client.initialize().await?;
        assert!(answer.agent_capabilities.load_session);
        let session = client.new_session().await?;
        let turn = client.prompt(&session, "stream 500 100\na last word").await?;
        assert_eq!(turn.stop_reason, StopReason::EndTurn);
        assert!(turn.updates.len() > 500, "{}", turn.updates.len());
        assert!(texts(&turn.updates).ends_with("a last word"));
        Ok(())
    })
    .await
}

// PE-1, HT-3: an answer to a request of the agent's finds its way back
#[tokio::test]
async fn a_permission_request_is_answered() -> Result<(), TalkError> {
    over_each(async |client| {
        client.initialize().await?;
        let session = client.new_session().await?;
        let turn = client.prompt(&session, "ask edit Change it").await?;
        let [request] = client.asked().try_into().expect("asked once");
        assert_eq!(request.options.len(), 4);
        assert_eq!(request.tool_call.fields.title.as_deref(), Some("Change it"));
        assert!(texts(&turn.updates).contains("reject"), "{}", texts(&turn.updates));
        Ok(())
    })
    .await
}

// PR-4, PR-7: ended by cancel, and the session goes on; UP-6: in another mode
#[tokio::test]
async fn a_turn_is_cancelled_and_a_mode_is_set() -> Result<(), TalkError> {
    over_each(async |client| {
        client.initialize().await?;
        let session = client.new_session().await?;
        let turn = client.prompt_and_cancel(&session, "waiting\nhang").await?;
        assert_eq!((texts(&turn.updates).as_str(), turn.stop_reason), ("waiting", StopReason::Cancelled));
        client.call("session/set_mode", json!({"sessionId": session, "modeId": "plan"})).await?;
        assert_eq!(texts(&client.prompt(&session, "again").await?.updates), "again");
        let (loaded, _) = client.load(&session).await?;
        assert_eq!(loaded.modes.expect("modes").current_mode_id.to_string(), "plan");
        Ok(())
    })
    .await
}

// SE-9, HT-2: listed, closed, kept; what is not there is an error of its request, and the connection stays usable
#[tokio::test]
async fn sessions_are_listed_and_closed_and_an_unknown_one_is_an_error() -> Result<(), TalkError> {
    over_each(async |client| {
        client.initialize().await?;
        let session = client.new_session().await?;
        let unknown = json!({"sessionId": "nobody", "cwd": client.directory(), "mcpServers": []});
        let error = client.call("session/load", unknown).await.expect_err("there is none");
        assert_eq!(error.code, ErrorCode::RESOURCE_NOT_FOUND, "{error:?}");
        client.call("session/close", json!({"sessionId": session})).await?;
        let listed = client.call("session/list", json!({})).await?;
        assert_eq!(listed["sessions"][0]["sessionId"], json!(session), "{listed}");
        let other = client.new_session().await?;
        assert_eq!(texts(&client.prompt(&other, "still here").await?.updates), "still here");
        Ok(())
    })
    .await
}

// HT-5, UP-4, MC-2: the first client has left; the second gets all of it before the answer, and goes on
#[tokio::test]
async fn a_second_connection_loads_the_whole_history() -> Result<(), TalkError> {
    for (first, second) in [(0, 0), (1, 1), (0, 1), (1, 0)] {
        let daemon = Daemon::start().await?;
        let (session, turn) = daemon
            .talk(Transport::ALL[first], async |client| {
                client.initialize().await?;
                let session = client.new_session().await?;
                let turn = client.prompt(&session, "stream 1000 50\nplan A,B\ntool build").await?;
                Ok((session, turn))
            })
            .await?;
        daemon
            .talk(Transport::ALL[second], async |client| {
                client.initialize().await?;
                let (_, replay) = client.load(&session).await?;
                assert_eq!(texts(&replay), texts(&turn.updates));
                assert!(replay.iter().any(|update| matches!(update, SessionUpdate::Plan(_))));
                assert_eq!(texts(&client.prompt(&session, "and on").await?.updates), "and on");
                Ok(())
            })
            .await?;
        daemon.stop().await?;
    }
    Ok(())
}

// MC-2, PR-12: the turn of a client that leaves goes on; its question is put to the one that comes
#[tokio::test]
async fn a_turn_goes_on_when_its_client_leaves() -> Result<(), TalkError> {
    for transport in Transport::ALL {
        let daemon = Daemon::start().await?;
        let session = daemon
            .talk(transport, async |client| {
                client.initialize().await?;
                let session = client.new_session().await?;
                client.leave_during_prompt(&session, "begun\nsleep 300\nthe end").await?;
                Ok(session)
            })
            .await?;
        daemon
            .talk(transport, async |client| {
                client.initialize().await?;
                let (_, mut seen) = client.load(&session).await?;
                let is_end =
                    |update: &SessionUpdate| message(update).is_some_and(|text| text.ends_with("end"));
                if !seen.iter().any(is_end) {
                    seen.extend(client.watch(&session, is_end).await?);
                }
                assert_eq!(texts(&seen), "begun\nthe end");
                Ok(())
            })
            .await?;
        daemon.stop().await?;
    }
    Ok(())
}

// MC-1, UP-1, UP-2: two transports, one session: both see all of it in the same order, whoever prompts
#[tokio::test]
async fn clients_on_different_transports_see_the_same() -> Result<(), TalkError> {
    let daemon = Daemon::start().await?;
    daemon
        .talk(Transport::Http, async |http| {
            http.initialize().await?;
            let session = http.new_session().await?;
            let talk = daemon.talk(Transport::WebSocket, async |websocket| {
                websocket.initialize().await?;
                websocket.load(&session).await?;
                let turn = http.prompt(&session, "stream 300 20\nfrom http").await?;
                assert_eq!(watched(websocket, &session, "http").await?, turn.updates);
                let turn = websocket.prompt(&session, "stream 300 20\nfrom websocket").await?;
                assert_eq!(watched(http, &session, "websocket").await?, turn.updates);
                Ok(())
            });
            talk.await.map_err(Error::into_internal_error)
        })
        .await?;
    daemon.stop().await
}

/// What the agent said, to the word that is the last.
async fn watched(
    client: &mut Conversation<'_>,
    session: &sdk_client::schema::SessionId,
    last: &str,
) -> Result<Vec<SessionUpdate>, Error> {
    let is_last = |update: &SessionUpdate| message(update).is_some_and(|text| text.ends_with(last));
    let mut seen = client.watch(session, is_last).await?;
    seen.retain(|update| !matches!(update, SessionUpdate::UserMessageChunk(_)));
    Ok(seen)
}
