//! `[[hooks]]`: who outside is told of what happens in sessions. Not here: how.

use super::values::text;
use crate::address::port_of;
use http::Uri;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::HashSet;
use std::net::IpAddr;

/// One of `[[hooks]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Hook {
    /// What is told.
    pub on: Vec<HookEvent>,
    /// Where to.
    pub target: HookTarget,
    /// The variable with the key of the signature. Default: none is made.
    pub secret_env: Option<String>,
    /// Whether prompts, answers and what questions are about are told, too. Default false.
    pub content: bool,
}

/// What hooks are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    /// The agent asks its user something.
    Question,
    /// A turn ended.
    TurnEnded,
    /// A run of a session ended.
    RunEnded,
    /// A turn stalled, or goes on.
    Stalled,
}

/// Where a hook leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookTarget {
    /// A POST goes there.
    Url(HookUrl),
    /// A program and its arguments. No shell reads them.
    Command(Vec<String>),
}

/// A URL that bodies may be sent to: https, or http to this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookUrl(Uri);

impl HookUrl {
    /// The URL.
    pub fn uri(&self) -> &Uri {
        &self.0
    }

    /// # Errors
    /// What is wrong with it. What was written is not repeated: it may hold a secret.
    fn parse(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|_| "is no URL; write https://HOST/PATH".to_owned())?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        if host.is_empty() {
            return Err("is no URL; write https://HOST/PATH".to_owned());
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err("must not have a user or a password; the receiver knows a hook by its signature \
                        (secret_env)"
                .to_owned());
        }
        uri.authority().map_or(Ok(None), port_of).map_err(|error| format!("is no URL: {error}"))?;
        let is_here = host.eq_ignore_ascii_case("localhost")
            || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
        match uri.scheme_str() {
            Some("https") => Ok(Self(uri)),
            Some("http") if is_here => Ok(Self(uri)),
            Some("http") => {
                Err("must be https; http is for this machine only (127.0.0.1, [::1], localhost), \
                                 since what is sent could be read on the way"
                    .to_owned())
            }
            _ => Err("must be https://HOST/PATH, or http:// on this machine".to_owned()),
        }
    }
}

impl<'de> Deserialize<'de> for HookUrl {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        text(from, "a URL such as \"https://HOST/PATH\"", HookUrl::parse)
    }
}

/// A hook as it can be shown: nothing of where it leads, which may hold a secret.
#[derive(Serialize)]
struct Shown<'a> {
    on: &'a [HookEvent],
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_env: Option<&'a str>,
    content: bool,
}

impl Serialize for Hook {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (url, command) = match &self.target {
            HookTarget::Url(_) => (Some(""), None),
            HookTarget::Command(_) => (None, Some("")),
        };
        let secret_env = self.secret_env.as_deref();
        Shown { on: &self.on, url, command, secret_env, content: self.content }.serialize(to)
    }
}

/// `[[hooks]]`
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("oneOf" = [{ "required": ["url"] }, { "required": ["command"] }])))]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    /// What is told, at least one. Required.
    #[cfg_attr(test, schemars(length(min = 1)))]
    on: Vec<HookEvent>,
    /// Where a POST goes: https, or http to this machine. Either this or `command`.
    url: Option<HookUrl>,
    /// A program and its arguments, which gets the body on its stdin; no shell reads them. Either this or `url`.
    #[serde(default, deserialize_with = "super::values::arguments")]
    command: Vec<String>,
    /// The variable with the key of the signature, which begins with `ACPD_`. Default none: nothing is signed.
    #[serde(default, deserialize_with = "secret_variable")]
    #[cfg_attr(test, schemars(extend("pattern" = "^ACPD_.")))]
    secret_env: Option<String>,
    /// Whether prompts, answers and what questions are about are told, too. Default false.
    #[serde(default)]
    content: bool,
}

impl TryFrom<Written> for Hook {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let Written { on, url, command, secret_env, content } = written;
        if on.is_empty() {
            return Err("\"on\" must name something: question, turn_ended, run_ended, stalled");
        }
        let target = match (url, command.first().is_some_and(|program| !program.trim().is_empty())) {
            (Some(url), false) if command.is_empty() => HookTarget::Url(url),
            (None, true) => HookTarget::Command(command),
            _ => return Err("a hook has either \"url\" or \"command\", a program and its arguments"),
        };
        if secret_env.is_some() && matches!(target, HookTarget::Command(_)) {
            return Err("\"secret_env\" signs what is sent to a \"url\"; a command needs none");
        }
        Ok(Self { on, target, secret_env, content })
    }
}

/// acpd's own variables are in no environment that it gives to anything.
fn secret_variable<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    text(from, "the name of an environment variable", |name| {
        let rest = name.strip_prefix("ACPD_").filter(|rest| !rest.is_empty() && !rest.contains(['=', '\0']));
        match rest {
            Some(_) => Ok(Some(name.to_owned())),
            None => {
                Err("must begin with \"ACPD_\": such variables are taken out of what agents and commands \
                         inherit; ACPD_HOOK_SECRET, for instance"
                    .to_owned())
            }
        }
    })
}

/// The first of two hooks that lead to the same place, which could not be told apart.
pub(super) fn twice(hooks: &[Hook]) -> bool {
    let mut seen = HashSet::new();
    !hooks.iter().all(|hook| seen.insert(format!("{:?}", hook.target)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // contract 7.2: https, or http on loopback only
    #[test]
    fn a_url_is_safe_to_send_to() {
        for (url, wrong) in [
            ("https://example.org", ""),
            ("https://example.org:8443/a/b/?token=x", ""),
            ("http://127.0.0.1:8080/x", ""),
            ("http://localhost/x", ""),
            ("http://[::1]:1/", ""),
            ("http://example.org/", "must be https"),
            ("http://10.0.0.1/", "must be https"),
            ("http://127.0.0.1.example.org/", "must be https"),
            ("http://localhost.example.org/", "must be https"),
            ("https://me:secret@example.org/", "must not have a user"),
            ("ftp://example.org/", "must be https://"),
            ("/only/a/path", "is no URL"),
            ("https://", "is no URL"),
            ("http://127.0.0.1:99999/", "is no URL: the port"),
            ("https://example.org:0/", "is no URL: the port"),
            ("https://[::1]:x/", "is no URL"),
            ("https://example.org:", "is no URL: the port"),
            ("", "is no URL"),
        ] {
            match HookUrl::parse(url) {
                Ok(_) => assert_eq!(wrong, "", "{url}"),
                Err(said) => {
                    assert!(!wrong.is_empty() && said.starts_with(wrong), "{url}: {said}");
                    assert!(!said.contains("secret@"), "{said}");
                }
            }
        }
    }
}
