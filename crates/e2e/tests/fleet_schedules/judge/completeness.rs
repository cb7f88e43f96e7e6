//! The archive has the events of the owner's log, all of them and no others.

use super::Recorded;

/// Where they differ.
pub(crate) fn judge(log: &[Recorded], archive: &[Recorded]) -> Vec<String> {
    let same = log.iter().zip(archive).take_while(|(log, archive)| log == archive).count();
    let at = |events: &[Recorded]| match events.get(same) {
        None => "nothing".to_owned(),
        Some(event) => format!(
            "event {} of kind {} at {}: {:.200}",
            event.seq,
            event.kind,
            event.at_ms,
            String::from_utf8_lossy(&event.payload)
        ),
    };
    match same == log.len() && same == archive.len() {
        true => Vec::new(),
        false => vec![format!(
            "of {} events {} are in the archive; behind event {same} the log has {}, and the archive {}",
            log.len(),
            archive.len(),
            at(log),
            at(archive)
        )],
    }
}

#[cfg(test)]
mod tests {
    use super::super::{What::Other, events};
    use super::*;

    // design fleet, tests: no event of an owner's log is missing from the archive after healing
    #[test]
    fn what_the_archive_lacks_and_what_is_other_there_is_found() {
        let log = [(1, 10, Other), (2, 20, Other)];
        for (what, archive, is_same) in [
            ("all", vec![(1, 10, Other), (2, 20, Other)], true),
            ("nothing", vec![], false),
            ("not the last", vec![(1, 10, Other)], false),
            ("not the first", vec![(2, 20, Other)], false),
            ("one more", vec![(1, 10, Other), (2, 20, Other), (3, 30, Other)], false),
            ("another one", vec![(1, 10, Other), (2, 21, Other)], false),
        ] {
            let found = judge(&events(&log), &events(&archive));
            assert_eq!(found.is_empty(), is_same, "{what}: {found:?}");
        }
        assert!(judge(&[], &[]).is_empty());
    }
}
