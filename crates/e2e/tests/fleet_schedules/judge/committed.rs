//! Nothing that a client was shown is missing afterwards: it is in the owner's log, or in a copy that was set aside.

use std::collections::BTreeSet;

/// What was shown of a session and is in none of its logs.
pub(crate) fn judge<'a>(shown: impl IntoIterator<Item = &'a String>, logs: &[&[String]]) -> Vec<String> {
    let kept: BTreeSet<&String> = logs.iter().copied().flatten().collect();
    let missing = shown.into_iter().filter(|event| !kept.contains(event));
    missing.map(|event| format!("this was shown, and is in no log: {event:.300}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // design fleet, partition: what a client has seen is not lost
    #[test]
    fn what_was_shown_and_is_in_no_log_is_found() {
        let all = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let (owner, copy) = (all(&["1", "2", "3 there"]), all(&["1", "2", "3 here"]));
        for (shown, missing) in
            [(vec![], 0), (vec!["1", "3 here", "3 there"], 0), (vec!["4"], 1), (vec!["1", "3", "4"], 2)]
        {
            let found = judge(&all(&shown), &[&owner, &copy]);
            assert_eq!(found.len(), missing, "{shown:?}: {found:?}");
        }
        assert_eq!(judge(&all(&["1"]), &[]).len(), 1);
    }
}
