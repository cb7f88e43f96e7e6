//! The list of all operations, in the order of their paths.

use crate::agents::{CheckAgent, ListAgents};
use crate::callers::{GetWhoami, IssueCode, ListTokens, OpenByCode};
use crate::creating::{CreateSession, ForkSession, ResumeSession};
use crate::daemon::{GetHealth, GetReady, GetStats, HandOver, ReloadConfiguration};
use crate::events::GetSessionEvents;
use crate::members::{Members, member_names};
use crate::nodes::{DrainNode, ListNodes, RemoveNode, UndrainNode};
use crate::operation::{Operation, Spec, Verb};
use crate::prompting::{AnswerQuestion, CancelTurn, PromptSession};
use crate::pruning::PruneSessions;
use crate::search::Search;
use crate::sessions::{CloseSession, DeleteSession, GetSession, ListSessions, TerminateSession};
use crate::transfer::{ExportSession, ImportSession};

macro_rules! operations {
    ($($name:ident,)*) => {
        /// An operation, by its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Op {
            $(#[doc = concat!("The operation `", stringify!($name), "`.")] $name,)*
        }

        impl Op {
            /// All operations, in the order of their paths.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns its row.
            pub const fn spec(self) -> &'static Spec {
                match self {
                    $(Self::$name => &$name::SPEC,)*
                }
            }

            /// Returns the names of its query parameters.
            pub fn query(self) -> Members {
                match self {
                    $(Self::$name => query_of::<$name>(),)*
                }
            }

            /// Returns the schemas of its input and its answer.
            #[cfg(feature = "schema")]
            pub(crate) fn schemas(self) -> crate::openapi::Schemas {
                match self {
                    $(Self::$name => crate::openapi::Schemas::of::<
                        <$name as Operation>::Input<'static>,
                        <$name as Operation>::Answer,
                    >(),)*
                }
            }
        }
    };
}

operations! {
    ListAgents,
    CheckAgent,
    IssueCode,
    HandOver,
    GetHealth,
    ImportSession,
    ListNodes,
    RemoveNode,
    DrainNode,
    UndrainNode,
    OpenByCode,
    PruneSessions,
    GetReady,
    ReloadConfiguration,
    Search,
    ListSessions,
    CreateSession,
    GetSession,
    DeleteSession,
    AnswerQuestion,
    CancelTurn,
    CloseSession,
    GetSessionEvents,
    ExportSession,
    ForkSession,
    PromptSession,
    ResumeSession,
    TerminateSession,
    GetStats,
    ListTokens,
    GetWhoami,
}

fn query_of<O: Operation>() -> Members {
    match O::SPEC.verb {
        Verb::Get | Verb::Delete => member_names::<O::Input<'static>>(),
        Verb::Post => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    // issue 30, attacked 1: no row is half written: each has a path of its own, a name of its own and words
    #[test]
    fn each_row_is_whole() {
        let specs = || Op::ALL.iter().map(|op| op.spec());
        let paths: BTreeSet<_> = specs().map(|spec| (spec.path, spec.verb.as_str())).collect();
        let ids: BTreeSet<_> = specs().map(|spec| spec.id).collect();
        assert_eq!((paths.len(), ids.len()), (Op::ALL.len(), Op::ALL.len()));
        assert!(specs().is_sorted_by_key(|spec| spec.path), "the description has them in this order");
        for spec in specs() {
            assert!(
                spec.path.starts_with('/') && !spec.id.is_empty() && !spec.summary.is_empty(),
                "{spec:?}"
            );
            assert_eq!(spec.path.contains('{'), spec.target.is_some(), "{spec:?}");
            assert!(spec.answers.iter().any(|answer| answer.status < 300), "{spec:?}");
        }
    }
}
