//! What a prompt may contain (PR-2). Pure.

use crate::acp::{PromptView, view};
use crate::agent::PromptCapabilities;
use crate::error::HostError;

/// Refuses content that the agent has not said it takes; text and resource links always pass.
pub(super) fn check(params: &[u8], agent: PromptCapabilities) -> Result<(), HostError> {
    let invalid = |message: String| Err(HostError::InvalidParams { message });
    let Some(PromptView { prompt }) = view(params) else {
        return invalid(
            "prompt: an array of content blocks is required, each an object with a type".to_owned(),
        );
    };
    for (place, block) in prompt.iter().enumerate() {
        let (taken, capability) = match block.kind.as_ref() {
            "image" => (agent.image, "image"),
            "audio" => (agent.audio, "audio"),
            "resource" => (agent.embedded_context, "embeddedContext"),
            // Kinds that acpd does not know are the agent's to judge.
            _ => continue,
        };
        if !taken {
            return invalid(format!(
                "prompt[{place}]: this agent does not take content of type {:?} (promptCapabilities.{capability} is not set)",
                block.kind
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(params: &str, agent: PromptCapabilities) -> Option<String> {
        check(params.as_bytes(), agent).err().map(|error| error.to_string())
    }

    // PR-2
    #[test]
    fn content_the_agent_lacks_is_refused_with_its_place() {
        let none = PromptCapabilities::default();
        let prompt =
            |kind: &str| format!(r#"{{"prompt":[{{"type":"text","text":"a"}},{{"type":"{kind}"}}]}}"#);
        for kind in ["text", "resource_link", "something_new"] {
            assert_eq!(said(&prompt(kind), none), None, "{kind}");
        }
        for kind in ["image", "audio", "resource"] {
            let message = said(&prompt(kind), none).expect("refused");
            assert!(message.starts_with("prompt[1]: ") && message.contains(kind), "{message}");
        }
        let all = PromptCapabilities { image: true, audio: true, embedded_context: true };
        assert_eq!(said(&prompt("image"), all), None);
    }

    // FR-10
    #[test]
    fn a_prompt_of_another_shape_is_refused() {
        for params in [r#"{}"#, r#"{"prompt":"text"}"#, r#"{"prompt":[1]}"#, r#"{"prompt":[{}]}"#] {
            assert!(said(params, PromptCapabilities::default()).expect("refused").starts_with("prompt: "));
        }
    }
}
