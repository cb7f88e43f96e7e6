//! A hook as it is told: from the configuration and the environment.

use crate::config::{Config, HookEvent, HookTarget};
use acpd_eventlog::Subscriber;
use acpd_host::EventKind;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::fmt;

/// One hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HookSpec {
    pub(super) on: Vec<HookEvent>,
    pub(super) target: HookTarget,
    pub(super) secret: Option<Secret>,
    pub(super) content: bool,
}

/// The key of signatures. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(pub(super) Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(..)")
    }
}

/// The hooks of a configuration, with their secrets.
///
/// # Errors
/// The variable that is missing.
pub(crate) fn specs(
    config: &Config,
    variable: impl Fn(&str) -> Option<Vec<u8>>,
) -> Result<Vec<HookSpec>, String> {
    let spec = |hook: &crate::config::Hook| {
        let secret = hook.secret_env.as_ref().map(|name| {
            let value = variable(name).filter(|value| !value.is_empty());
            value.map(Secret).ok_or_else(|| {
                format!(
                    "\"secret_env\" in [hooks]: the environment variable {name} is not set; start acpd with it, or \
                     leave the key out"
                )
            })
        });
        let (on, target) = (hook.on.clone(), hook.target.clone());
        Ok(HookSpec { on, target, secret: secret.transpose()?, content: hook.content })
    };
    config.hooks.iter().map(spec).collect()
}

impl HookSpec {
    /// Under which the log keeps what is still to be told. It stays as long as the hook leads to the same place, whatever
    /// else of it changes. A hash: a URL may be a secret.
    pub(super) fn name(&self) -> String {
        let place = match &self.target {
            HookTarget::Url(url) => format!("url {}", url.uri()),
            HookTarget::Command(command) => format!("command {command:?}"),
        };
        HEXLOWER.encode(&Sha256::digest(place)[..16])
    }

    pub(super) fn subscriber(&self) -> Subscriber {
        let kinds = self.on.iter().flat_map(|event| kinds(*event)).map(|kind| kind.number()).collect();
        Subscriber { name: self.name(), kinds }
    }

    /// For the operator.
    pub(super) fn place(&self) -> String {
        match &self.target {
            // The path may be a secret.
            HookTarget::Url(url) => url.uri().host().unwrap_or_default().to_owned(),
            HookTarget::Command(command) => command.first().cloned().unwrap_or_default(),
        }
    }
}

/// The kinds of events that a hook is told with this word.
fn kinds(event: HookEvent) -> &'static [EventKind] {
    match event {
        HookEvent::Question => &[EventKind::PermissionRequested, EventKind::ElicitationRequested],
        HookEvent::TurnEnded => &[EventKind::TurnEnded],
        HookEvent::RunEnded => &[EventKind::Ended],
        HookEvent::Stalled => &[EventKind::Stalled],
    }
}
