//! What a client can take, and what an agent offers it through acpd (IN-3, IN-7).
//!
//! Pure. Agents are always offered the same (IN-4), so what a client did not ask for is kept from it here. What neither side
//! of acpd knows passes through as it is.

mod declared;
mod offered;

pub(crate) use declared::{ClientInfo, InitializeParams};
pub(crate) use offered::{initialize_result, watcher_result};

use crate::forms::of_clients;
use acpd_eventlog::FormKind;
use acpd_host::ViewerInfo;
use acpd_record::ConnectionId;
use acpd_wire::{Member, UpdateKind, member, scan, span_of, splice};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What a client said that it understands beyond the baseline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientCapabilities {
    notices: bool,
    compaction: bool,
    boolean_options: bool,
    terminal_auth: bool,
    forms: bool,
    urls: bool,
    terminals: KnownTerminals,
    reads: bool,
    writes: bool,
    cursors: bool,
    comes_back: bool,
    /// It may not answer, so it is not asked.
    only_watches: bool,
}

/// Which terminals a client can ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum KnownTerminals {
    #[default]
    None,
    /// It makes terminals for agents itself.
    Made,
    /// It wants to be told of those of acpd.
    Watched,
}

impl ClientCapabilities {
    /// Its token lets it watch and nothing else (PE-2).
    pub(crate) fn only_watch(&mut self) {
        *self = Self { forms: false, urls: false, reads: false, writes: false, only_watches: true, ..*self };
    }

    /// Whether it may be asked what every client understands.
    pub(crate) fn can_answer(&self) -> bool {
        !self.only_watches
    }

    /// Whether it can fill in forms.
    pub(crate) fn has_forms(&self) -> bool {
        self.forms
    }

    /// Whether it wants to know what the session's terminals say.
    pub(crate) fn watches_terminals(&self) -> bool {
        self.terminals == KnownTerminals::Watched
    }

    /// Whether a terminal in a tool call means anything to it; else it is shown text.
    pub(crate) fn knows_terminals(&self) -> bool {
        self.terminals != KnownTerminals::None
    }

    /// Whether it is told which event each message is of.
    pub(crate) fn keeps_cursors(&self) -> bool {
        self.cursors
    }

    /// Whether it comes back under the same id when its connection is lost.
    pub(crate) fn comes_back(&self) -> bool {
        self.comes_back
    }

    /// The form in which a client with these is shown what is shown to all such clients alike.
    pub(crate) fn form(&self) -> FormKind {
        of_clients([
            self.notices,
            self.compaction,
            self.boolean_options,
            self.knows_terminals(),
            self.watches_terminals(),
            self.cursors,
        ])
    }

    /// What a session has to know of a client with these.
    pub(crate) fn viewer_info(&self, connection: &ConnectionId) -> ViewerInfo {
        ViewerInfo {
            connection: connection.clone(),
            answers: self.can_answer(),
            forms: self.forms,
            urls: self.urls,
            reads: self.reads,
            writes: self.writes,
        }
    }

    /// The line of an update of a kind as this client may see it: as it is, changed, or not at all.
    pub(crate) fn filter_update<'a>(&self, kind: UpdateKind, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        match kind {
            UpdateKind::Notice if !self.notices => None,
            UpdateKind::CompactionUpdate | UpdateKind::CompactionSummaryChunk if !self.compaction => None,
            UpdateKind::ConfigOptionUpdate => {
                Some(self.filter_options(line, || scan(line).ok()?.value(Member::Update)))
            }
            _ => Some(Cow::Borrowed(line)),
        }
    }

    /// A result that carries config options (`session/new` and its like), as this client may see it.
    pub(crate) fn filter_result<'a>(&self, result: &'a [u8]) -> Cow<'a, [u8]> {
        self.filter_options(result, || serde_json::from_slice(result).ok())
    }

    fn filter_options<'a>(
        &self,
        message: &'a [u8],
        holder: impl FnOnce() -> Option<&'a RawValue>,
    ) -> Cow<'a, [u8]> {
        let holder = if self.boolean_options { None } else { holder() };
        let filtered = holder.and_then(|holder| without_boolean_options(message, holder));
        filtered.map_or(Cow::Borrowed(message), Cow::Owned)
    }
}

/// The message without the boolean ones among the config options of `holder`, a part of it; `None` when it has none.
fn without_boolean_options(message: &[u8], holder: &RawValue) -> Option<Vec<u8>> {
    let options = member(holder, "configOptions")?;
    let all: Vec<&RawValue> = serde_json::from_str(options.get()).ok()?;
    let is_boolean = |option: &RawValue| {
        let kind = member(option, "type").and_then(|kind| serde_json::from_str::<String>(kind.get()).ok());
        kind.is_some_and(|kind| kind == "boolean")
    };
    let kept: Vec<&RawValue> = all.iter().copied().filter(|option| !is_boolean(option)).collect();
    if kept.len() == all.len() {
        return None;
    }
    let (span, kept) = (span_of(message, options)?, serde_json::to_vec(&kept).ok()?);
    let mut filtered = Vec::with_capacity(message.len());
    splice(&mut filtered, message, &[(span, &kept)]);
    Some(filtered)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(update: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
        )
    }

    fn filtered<'a>(client: &ClientCapabilities, line: &'a str) -> Option<Cow<'a, [u8]>> {
        let kind = scan(line.as_bytes()).expect("JSON").kind();
        client.filter_update(kind, line.as_bytes())
    }

    fn passes(client: &ClientCapabilities, update: &str) -> bool {
        filtered(client, &line(update)).is_some()
    }

    fn full() -> ClientCapabilities {
        let session = r#"{"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}}"#;
        declared(&format!(r#"{{"session": {session}, "auth": {{"terminal": true}}}}"#))
    }

    fn declared(capabilities: &str) -> ClientCapabilities {
        let params = format!(r#"{{"protocolVersion": 1, "clientCapabilities": {capabilities}}}"#);
        InitializeParams::read(Some(params.as_bytes())).expect("params").capabilities()
    }

    // IN-7
    #[test]
    fn clients_get_only_what_they_advertised() {
        let bare = declared("{}");
        for update in [
            r#"{"sessionUpdate":"notice","severity":"info","title":"x"}"#,
            r#"{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed"}"#,
            r#"{"sessionUpdate":"compaction_summary_chunk","compactionId":"c"}"#,
        ] {
            assert!(passes(&full(), update) && !passes(&bare, update), "{update}");
        }
        let text =
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a \"notice\""}}"#;
        assert!(passes(&bare, text));
    }

    // IN-7
    // quirk discriminator-last
    #[test]
    fn what_an_update_is_counts_wherever_it_says_so() {
        let (bare, long) = (declared("{}"), "x".repeat(2000));
        let summary = format!(
            r#"{{"content":{{"type":"text","text":"{long}"}},"sessionUpdate":"compaction_summary_chunk"}}"#
        );
        assert!(passes(&full(), &summary) && !passes(&bare, &summary));
        for chunk in [
            r#"{"_meta":{"sessionUpdate":"notice"},"sessionUpdate":"agent_message_chunk"}"#,
            r#"{"rawInput":{"sessionUpdate":"compaction_summary_chunk"},"sessionUpdate":"tool_call"}"#,
        ] {
            assert!(passes(&bare, chunk), "{chunk}");
        }
        let option = r#"{"id":"a","ty\u0070e":"bool\u0065an"}"#;
        let options = line(&format!(
            r#"{{"configOptions":[{option}],"x":"{long}","sessionUpdate":"config_option_update"}}"#
        ));
        let seen = filtered(&bare, &options).expect("it passes");
        assert_eq!(seen, options.replace(option, "").as_bytes());
        let without = options.replace("bool", "");
        let seen = filtered(&bare, &without).expect("it passes");
        assert!(matches!(seen, Cow::Borrowed(_)), "nothing to leave out");
    }

    // IN-7: boolean options, in updates and in results
    #[test]
    fn boolean_options_are_left_out_for_clients_without_them() {
        let bare = ClientCapabilities::default();
        let update = line(
            r#"{"sessionUpdate":"config_option_update","configOptions":[{"id":"a","type":"boolean"},{"id":"b","type":"select"}]}"#,
        );
        let seen = filtered(&bare, &update).expect("it passes");
        assert_eq!(seen, update.replace(r#"{"id":"a","type":"boolean"},"#, "").as_bytes());
        assert_eq!(filtered(&full(), &update).expect("it passes"), update.as_bytes());
        let result = br#"{"sessionId":"s","configOptions":[{"id":"a","type":"boolean"}]}"#;
        assert_eq!(bare.filter_result(result).as_ref(), br#"{"sessionId":"s","configOptions":[]}"#);
        assert_eq!(full().filter_result(result).as_ref(), result);
    }
}
