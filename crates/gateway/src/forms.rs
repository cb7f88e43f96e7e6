//! The forms of a session's blocks that are made once for many readers.

use acpd_eventlog::FormKind;

/// As event streams of REST show them.
pub(crate) const EVENT_STREAM: FormKind = FormKind(0);

/// As ACP clients see them of which all these are equally so.
pub(crate) fn of_clients(are: impl IntoIterator<Item = bool>) -> FormKind {
    FormKind(are.into_iter().fold(1, |kind, is| kind << 1 | u32::from(is)))
}
