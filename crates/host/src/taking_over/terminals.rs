//! Taking over the terminals of a session: their commands have outlived their host as its agent has.

use super::LISTENING;
use crate::agent::{AgentHandle, NotedTerminal, TakenAgent};
use crate::chain::chain;
use crate::host::Host;
use crate::services::Services;
use crate::session::SessionHandle;
use acpd_record::{Event, SessionId, TerminalNews};
use acpd_supervisor::{ExitStatus, ProcessMark, wait_for_keepers};
use acpd_terminal::{
    KeptTerminal, Note, TerminalEvent, TerminalId, TerminalOutput, TerminalReport, TerminalState, Told,
};
use acpd_wire::OwnedId;
use std::collections::HashMap;
use tokio::sync::mpsc;

impl Host {
    /// Takes over the terminals of a session whose last event is `last`. Gives those that are there, by the requests for them.
    pub(super) async fn take_terminals(
        &self,
        (id, last): (&SessionId, u64),
        taken: &TakenAgent,
        session: &SessionHandle,
    ) -> Vec<(OwnedId, TerminalId)> {
        let noted = taken.marks.terminals(id);
        let Some((services, feed)) = session.inherits_terminals().filter(|_| !noted.is_empty()) else {
            return Vec::new();
        };
        self.wait_until_they_listen(&noted).await;
        let told = self.told_of_terminals((id, last), &noted).await;
        let mut found = Vec::new();
        for NotedTerminal { request, terminal, after, .. } in noted {
            let note = taken.agent.notes_of_terminal(id, &request, after);
            let terminal = terminal.into_owned();
            let (name, told) = (terminal.id(), told.get(terminal.id().as_str()).copied().unwrap_or_default());
            if take_terminal(&taken.agent, (&services, &feed), (terminal, told), note).await {
                found.extend(OwnedId::parse(&request).map(|request| (request, name)));
            }
        }
        found
    }

    /// A keeper that was just told to outlive its host may not listen yet.
    async fn wait_until_they_listen(&self, noted: &[NotedTerminal<'_>]) {
        let marks = noted.iter().filter_map(|noted| ProcessMark::parse(noted.terminal.mark())).collect();
        let directory = self.shared.store.host_file.keepers();
        let waited = tokio::task::spawn_blocking(move || wait_for_keepers(&directory, marks, LISTENING));
        // It only bounds a race.
        let _panic = waited.await;
    }

    /// What the log has of each of them.
    async fn told_of_terminals(
        &self,
        (id, last): (&SessionId, u64),
        noted: &[NotedTerminal<'_>],
    ) -> HashMap<String, Told> {
        let mut told: HashMap<String, Told> = HashMap::new();
        let after = noted.iter().map(|noted| noted.after).min().unwrap_or(last);
        let Ok(mut cursor) = self.shared.store.log.cursor(id.as_str(), after).await else { return told };
        while cursor.position() < last {
            let Ok(Some(block)) = cursor.next().await else { break };
            for stored in block.events() {
                match Event::read(stored.kind, stored.payload) {
                    Ok(Event::Terminal(TerminalNews::Output(output))) => {
                        let told = told.entry(output.terminal_id.into_owned()).or_default();
                        told.text += output.output.len() as u64 + output.dropped_bytes;
                    }
                    Ok(Event::Terminal(TerminalNews::Ended(ended))) => {
                        told.entry(ended.terminal_id.into_owned()).or_default().end = true;
                    }
                    _ => {}
                }
            }
        }
        told
    }
}

/// Takes one over; false when it is gone, which is told if its end was not.
async fn take_terminal(
    agent: &AgentHandle,
    (services, feed): (&Services, &mpsc::Sender<TerminalEvent>),
    (terminal, told): (KeptTerminal, Told),
    note: Note,
) -> bool {
    let Some(directory) = agent.keepers() else { return false };
    let id = terminal.id();
    let place = (directory, services.agent.clone(), note);
    let taken = services.terminals.take_over(&services.owner, terminal, told, feed.clone(), place).await;
    let Err(error) = taken else { return true };
    tracing::warn!(terminal = id.as_str(), error = chain(&error), "a terminal cannot be taken over");
    agent.forget_terminal(&id);
    if !told.end {
        let report = TerminalReport { state: TerminalState::Killed, status: ExitStatus::Unknown };
        let output = TerminalOutput { text: String::new(), truncated: told.text > 0 };
        // There is room: nothing else speaks yet but the few before it.
        let _full = feed.try_send(TerminalEvent::Ended { terminal: id, report, output });
    }
    false
}
