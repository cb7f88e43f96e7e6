//! An agent on the official SDK behind acpd, and a client on the official SDK before it: only acpd is ours.
//!
//! Each talk ends with a look for processes that were left behind; it fails if there is one.

use sdk_client::schema::{SessionUpdate, StopReason, ToolCallStatus};
use sdk_client::{Conversation, Error, Peer, TalkError, Turn, talk};

const AGENT: &str = env!("CARGO_BIN_EXE_sdk-agent");

async fn turns(conversation: &mut Conversation<'_>) -> Result<Vec<Turn>, Error> {
    conversation.initialize().await?;
    let session = conversation.new_session().await?;
    let first = conversation.prompt(&session, "one two\ntool build\nthree").await?;
    let second = conversation.prompt(&session, "four").await?;
    Ok(vec![first, second])
}

// PR-1: whole turns, word by word, the same hosted or not
#[tokio::test]
async fn turns_are_the_same_as_without_acpd() -> Result<(), TalkError> {
    let hosted = talk(&Peer::hosted("sdk", AGENT), turns).await?;
    let direct = talk(&Peer::Program(AGENT.into()), turns).await?;
    assert_eq!(hosted, direct);
    assert!(hosted.iter().all(|turn| turn.stop_reason == StopReason::EndTurn));
    assert_eq!(hosted[0].chunks(), ["one ", "two\n", "three"]);
    assert_eq!(hosted[1].chunks(), ["four"]);
    let [_, _, SessionUpdate::ToolCall(call), SessionUpdate::ToolCallUpdate(end), _] =
        hosted[0].updates.as_slice()
    else {
        panic!("{:?}", hosted[0].updates)
    };
    assert_eq!((call.title.as_str(), call.status), ("build", ToolCallStatus::Pending));
    assert_eq!((&end.tool_call_id, end.fields.status), (&call.tool_call_id, Some(ToolCallStatus::Completed)));
    Ok(())
}

// PR-4, PR-7: a cancelled turn ends as `cancelled`, and the session goes on
#[tokio::test]
async fn a_hanging_turn_is_cancelled() -> Result<(), TalkError> {
    talk(&Peer::hosted("sdk", AGENT), async |conversation| {
        conversation.initialize().await?;
        let session = conversation.new_session().await?;
        let turn = conversation.prompt_and_cancel(&session, "waiting\nhang\nnever said").await?;
        assert_eq!((turn.chunks().concat().as_str(), turn.stop_reason), ("waiting\n", StopReason::Cancelled));
        assert_eq!(conversation.prompt(&session, "again").await?.chunks(), ["again"]);
        Ok(())
    })
    .await
}

// SU-1, SU-2: a client that leaves in the middle of a turn leaves no process behind
#[tokio::test]
async fn leaving_in_the_middle_of_a_turn_leaves_nothing() -> Result<(), TalkError> {
    talk(&Peer::hosted("sdk", AGENT), async |conversation| {
        conversation.initialize().await?;
        let session = conversation.new_session().await?;
        conversation.leave_during_prompt(&session, "waiting\nhang").await
    })
    .await
}
