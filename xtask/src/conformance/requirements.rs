//! What an ACP session host has to do, as a table: one short line for each requirement, and why one is not tested.
//!
//! Owned by hand; the generated page and the check of marks read it. Invariants: ids are those that marks name,
//! numbered from 1 without holes in each group. Not here: which tests show a requirement; their marks say that.

/// Requirements with one subject.
pub(crate) struct Group {
    /// What its ids begin with.
    pub(crate) name: &'static str,
    pub(super) title: &'static str,
    pub(super) untested: Untested,
    pub(crate) requirements: &'static [Requirement],
}

/// What holds for a requirement that has neither a test nor a reason of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Untested {
    /// The check fails.
    Fails,
    /// This is the reason; the group is not complete yet.
    Because(&'static str),
}

/// One requirement.
pub(crate) struct Requirement {
    pub(crate) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) gap: Gap,
}

/// What tests do not show yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// Nothing is left out.
    None,
    /// Tests show the requirement apart from this.
    Part(&'static str),
    /// No test shows it, for this reason.
    All(&'static str),
}

/// A requirement that tests show in full.
const fn row(id: &'static str, summary: &'static str) -> Requirement {
    Requirement { id, summary, gap: Gap::None }
}

/// A requirement that tests show apart from `gap`.
const fn part(id: &'static str, summary: &'static str, gap: &'static str) -> Requirement {
    Requirement { id, summary, gap: Gap::Part(gap) }
}

/// A requirement that no test can show yet.
const fn later(id: &'static str, summary: &'static str, reason: &'static str) -> Requirement {
    Requirement { id, summary, gap: Gap::All(reason) }
}

/// The requirement with this id.
pub(crate) fn find(id: &str) -> Option<&'static Requirement> {
    GROUPS.iter().flat_map(|group| group.requirements).find(|requirement| requirement.id == id)
}

/// Every group, in the order of the page.
pub(crate) const GROUPS: &[Group] = &[
    Group {
        name: "IN",
        title: "initialization",
        untested: Untested::Fails,
        requirements: &[
            row("IN-1", "answers protocol version 1, whatever version is offered"),
            row("IN-2", "requests before `initialize` get an error; a second one is consistent"),
            row("IN-3", "names itself; what is listed can be called, nothing else can"),
            row("IN-4", "initializes an agent once per process, with capabilities of its own"),
            row("IN-5", "never calls what an agent lacks; refuses an agent's other version"),
            row("IN-6", "a silent agent costs a bounded wait and an error with stderr"),
            part(
                "IN-7",
                "updates reach only clients that said they understand them",
                "plan updates and subagents are unstable in ACP, and not offered",
            ),
        ],
    },
    Group {
        name: "SE",
        title: "sessions",
        untested: Untested::Fails,
        requirements: &[
            row("SE-1", "session ids are never given twice, by any agent or run"),
            row("SE-2", "a relative or missing directory is refused; agents see the session's own"),
            row("SE-3", "MCP servers and extra directories reach their session's agent only, unlogged"),
            row("SE-4", "load replays the whole history in order, then answers with current state"),
            row("SE-5", "loading during a turn disturbs nothing: no gap, no duplicate"),
            row("SE-6", "an ended session loads from the log, agent or not"),
            row("SE-7", "history that an agent replays is not stored again"),
            row("SE-8", "resume sends no history, even when the agent replays some"),
            row("SE-9", "a failed restore says not resumable; the session stays listed"),
            row("SE-10", "loading a live session again starts no process"),
            row("SE-11", "the list is newest first, with directories and current titles"),
            row("SE-12", "pages show each session once; bad cursors are refused; filter before paging"),
            row("SE-13", "the list spans agents, endings and restarts, and starts nothing"),
            row("SE-14", "close in a turn cancels, answers what is open, ends an idle process"),
            row("SE-15", "other viewers learn of an end; closed sessions stay listed and loadable"),
            row("SE-16", "delete is idempotent and closes first; deleted sessions are unknown"),
            row("SE-17", "close succeeds also when the agent cannot close"),
            row("SE-18", "a fork is a session of its own; the source never changes"),
            part(
                "SE-19",
                "status tells open from saved, starts nothing",
                "archiving is an unstable part of ACP and not offered",
            ),
            row("SE-20", "an unknown session is error -32002 with its id, in every method"),
            row("SE-21", "one session that hangs holds up no other"),
        ],
    },
    Group {
        name: "PR",
        title: "prompts and cancelling",
        untested: Untested::Fails,
        requirements: &[
            row("PR-1", "a turn's updates come before its answer, which has a stop reason"),
            row("PR-2", "text and links always pass; content the agent cannot take is refused"),
            row("PR-3", "everybody sees the user's message exactly once, history too"),
            row("PR-4", "a cancelled prompt gets a result, after late updates"),
            row("PR-5", "cancel and every end settle open questions, for agent and viewers"),
            row("PR-6", "an agent that ignores cancel does not hold the prompt up"),
            row("PR-7", "cancel hits the running turn only, never process or next turn"),
            row("PR-8", "more prompts queue in order, bounded, each with its own answer"),
            row("PR-9", "a client withdraws its own request, answered once, no other's"),
            row("PR-10", "an agent withdraws its own request, answered once, question dismissed"),
            row("PR-11", "an agent's death in a turn answers the prompt with the record"),
            row("PR-12", "a turn goes on without its prompter; its stop reason is kept"),
        ],
    },
    Group {
        name: "TM",
        title: "how sessions ended",
        untested: Untested::Fails,
        requirements: &[
            row("TM-1", "each end records cause, initiator, exit, stderr, turn and times"),
            row("TM-2", "exits are judged by what was asked; reported codes stay untouched"),
            row("TM-3", "the record is in list, final event, errors and replay, under `_meta`"),
            row("TM-4", "the record is durable before it is told, and written once"),
        ],
    },
    Group {
        name: "SU",
        title: "agent processes",
        untested: Untested::Fails,
        requirements: &[
            row("SU-1", "each agent leads a process group; no descendant and no zombie stays"),
            row("SU-2", "stopping is a ladder of bounded steps, gentle first"),
            row("SU-3", "no agent outlives a host that was killed"),
            row("SU-4", "stderr is drained always, and a bounded part kept"),
            row("SU-5", "failed start, early exit and later exit are told apart"),
            row("SU-6", "an exit fails all that waits on it; crash loops are bounded"),
            row("SU-7", "agents inherit the user's environment without acpd's secrets"),
            row("SU-8", "an agent that closes one of its pipes is noticed and stopped"),
            row("SU-9", "a shared process ends with the last of its sessions"),
        ],
    },
    Group {
        name: "UP",
        title: "updates, history and viewers",
        untested: Untested::Fails,
        requirements: &[
            row("UP-1", "all viewers see one order of updates"),
            row("UP-2", "a stalled viewer delays nobody, costs bounded memory, loses nothing"),
            row("UP-3", "notices are neither stored nor replayed"),
            row("UP-4", "replay ends in the state that live viewers have"),
            row("UP-5", "history survives `kill -9` of the host up to the last update seen"),
            row("UP-6", "mode and option changes are complete and reach the other viewers"),
            row("UP-7", "updates for sessions not known yet wait or are dropped, never fatal"),
            later(
                "UP-8",
                "a subagent's updates reach only viewers that want them",
                "subagents are not served yet",
            ),
        ],
    },
    Group {
        name: "FR",
        title: "framing and JSON-RPC",
        untested: Untested::Because("no test names it"),
        requirements: &[
            row("FR-1", "one message per line on stdout, everything else on stderr"),
            row("FR-2", "ids come back as they were sent, and each hop has its own"),
            row("FR-3", "each request gets exactly one answer, a notification none"),
            row("FR-4", "unknown requests get -32601, unknown notifications nothing; talk goes on"),
            row("FR-5", "broken JSON, wrong envelopes and batches each get their one error"),
            row("FR-6", "over-long lines cost bounded memory and a clear error"),
            row("FR-7", "noise on an agent's stdout is skipped"),
            row("FR-8", "what the host does not know passes through unchanged"),
            row("FR-9", "the host's own data stands in `_meta` only"),
            row("FR-10", "parameters of the wrong type are refused with a useful message"),
        ],
    },
    Group {
        name: "AU",
        title: "authentication with agents",
        untested: Untested::Because("no test names it"),
        requirements: &[
            row("AU-1", "clients see the agent's login methods that they can show"),
            row("AU-2", "a demand to log in passes through; `authenticate` finds the same agent"),
        ],
    },
    Group {
        name: "PE",
        title: "permissions and elicitation",
        untested: Untested::Fails,
        requirements: &[
            row("PE-1", "options pass unchanged; only an offered one can be chosen"),
            row("PE-2", "all eligible viewers are asked; the first valid answer wins"),
            row("PE-3", "who joins sees open questions; who leaves answers none"),
            row("PE-4", "without viewers nothing is allowed unasked; refusals use reject options"),
            row("PE-5", "elicitation goes to clients that can show it, else is declined"),
        ],
    },
    Group {
        name: "FS",
        title: "files for agents",
        untested: Untested::Fails,
        requirements: &[
            row("FS-1", "relative paths and paths out of the roots are refused"),
            row("FS-2", "line and limit count as specified; line ends stay"),
            row("FS-3", "missing, binary and huge files are clean errors"),
            row("FS-4", "writing is atomic, makes parents, keeps the mode"),
            row("FS-5", "who serves files is decided by configuration, unseen by agents"),
        ],
    },
    Group {
        name: "TE",
        title: "terminals for agents",
        untested: Untested::Fails,
        requirements: &[
            row("TE-1", "create answers at once, without a shell, with or without viewers"),
            row("TE-2", "exit status appears after the exit: a code or a signal"),
            row("TE-3", "limited output is its tail, cut between characters"),
            row("TE-4", "memory stays bounded and the command never blocks"),
            row("TE-5", "stdout and stderr in order, the last bytes included"),
            row("TE-6", "any number of waits, each answered, each withdrawn alone"),
            row("TE-7", "kill ends the whole group; the id stays valid"),
            row("TE-8", "release ends everything; the id is invalid, also for others"),
            row("TE-9", "a wait ends with the process, whoever holds its pipe"),
            row("TE-10", "final output stays visible after release"),
            row("TE-11", "no terminal outlives session, agent or host"),
        ],
    },
    Group {
        name: "HT",
        title: "HTTP and server-sent events",
        untested: Untested::Fails,
        requirements: &[
            row("HT-1", "`initialize` answers in its response, everything else in a stream"),
            row("HT-2", "each misuse has its status; batches do nothing"),
            row("HT-3", "the session id is taken from header or parameters, if they agree"),
            row("HT-4", "a stream may be opened before its session is"),
            row("HT-5", "replay arrives before the answer to load"),
            row("HT-6", "events have ids; a reader resumes exactly where it stopped"),
            row("HT-7", "a new reader takes over from a half-open one"),
            row("HT-8", "what was written to a dead socket comes again"),
            row("HT-9", "keepalive and headers that proxies respect, HTTP/1.1 and HTTP/2"),
            row("HT-10", "a connection without readers expires; sessions stay"),
            row("HT-11", "deleting a connection leaves its sessions alive"),
            row("HT-12", "connections, streams, ids, bodies and buffers have limits"),
        ],
    },
    Group {
        name: "WS",
        title: "WebSocket",
        untested: Untested::Fails,
        requirements: &[
            row("WS-1", "the first message must be `initialize`; broken text is survived"),
            row("WS-2", "fragments, binary frames and limits, each end with its code"),
            row("WS-3", "a peer that answers no ping is detached"),
            row("WS-4", "reading goes on while writing is blocked"),
        ],
    },
    Group {
        name: "MC",
        title: "several clients",
        untested: Untested::Fails,
        requirements: &[
            row("MC-1", "clients on different transports share one live session"),
            row("MC-2", "leaving, however it happens, ends nothing"),
            row("MC-3", "each client may do what its role allows"),
            row("MC-4", "only load and resume attach a viewer"),
        ],
    },
    Group {
        name: "SC",
        title: "security and operation",
        untested: Untested::Fails,
        requirements: &[
            row("SC-1", "strangers are refused before any work; files are private"),
            row("SC-2", "foreign origins and hosts are refused everywhere"),
            row("SC-3", "knowing an id gives no access"),
            row("SC-4", "trace context and extension methods pass, or are refused"),
            row("SC-5", "SIGTERM ends everything in order and in bounded time"),
            row("SC-6", "a stdio front end ends with its input, sessions go on"),
            later(
                "SC-7",
                "the protocol's conformance kit finds no mandatory failure",
                "the kit is not run by the tests",
            ),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_numbered_without_holes() {
        for group in GROUPS {
            for (at, requirement) in group.requirements.iter().enumerate() {
                assert_eq!(requirement.id, format!("{}-{}", group.name, at + 1));
            }
        }
    }

    #[test]
    fn texts_are_short_and_fit_into_a_table_cell() {
        for requirement in GROUPS.iter().flat_map(|group| group.requirements) {
            let gap = match requirement.gap {
                Gap::None => "",
                Gap::Part(text) | Gap::All(text) => text,
            };
            for text in [requirement.summary, gap] {
                let words = text.split_whitespace().count();
                assert!(words <= 13 && !text.contains(['|', '\n']) && !text.ends_with('.'), "{text}");
            }
            assert!(!requirement.summary.is_empty(), "{}", requirement.id);
        }
    }

    #[test]
    fn a_requirement_is_found_by_its_exact_id_only() {
        assert_eq!(find("SE-14").map(|found| found.id), Some("SE-14"));
        for unknown in ["SE-22", "SE-014", "se-14", "SE-14 ", "XX-1"] {
            assert!(find(unknown).is_none(), "{unknown}");
        }
    }
}
