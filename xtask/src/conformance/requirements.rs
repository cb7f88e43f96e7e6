//! What an ACP session host has to do, from the table `requirements.toml`.
//!
//! Invariants: ids are those that marks name, numbered from 1 without holes in each group. Not here: which tests show a
//! requirement; their marks say that.

use serde::Deserialize;
use std::sync::LazyLock;

/// Requirements with one subject.
#[derive(Deserialize)]
pub(crate) struct Group {
    /// What its ids begin with.
    pub(crate) name: String,
    pub(super) title: String,
    /// Why it is not complete yet; otherwise the check fails where there is neither a test nor a reason.
    pub(super) untested: Option<String>,
    pub(crate) requirements: Vec<Requirement>,
}

/// One requirement.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Requirement {
    pub(crate) id: String,
    pub(super) summary: String,
    /// Tests show the requirement apart from this.
    pub(super) part: Option<String>,
    /// No test shows it, for this reason.
    pub(super) later: Option<String>,
}

/// Every group, in the order of the page.
pub(crate) static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Table {
        group: Vec<Group>,
    }
    let table: Table = toml::from_str(include_str!("requirements.toml")).expect("the tests read it");
    table.group
});

/// All requirements, with their groups.
pub(super) fn all() -> impl Iterator<Item = (&'static Group, &'static Requirement)> {
    GROUPS.iter().flat_map(|group| group.requirements.iter().map(move |requirement| (group, requirement)))
}

/// The requirement with this id.
pub(crate) fn find(id: &str) -> Option<&'static Requirement> {
    all().map(|(_, requirement)| requirement).find(|requirement| requirement.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_numbered_without_holes_and_found_exactly() {
        for group in GROUPS.iter() {
            for (at, requirement) in group.requirements.iter().enumerate() {
                assert_eq!(requirement.id, format!("{}-{}", group.name, at + 1));
            }
        }
        assert_eq!(find("SE-14").map(|found| found.id.as_str()), Some("SE-14"));
        for unknown in ["SE-22", "SE-014", "se-14", "SE-14 ", "XX-1"] {
            assert!(find(unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    fn texts_are_short_and_fit_into_a_table_cell() {
        for (_, requirement) in all() {
            let Requirement { summary, part, later, .. } = requirement;
            for text in [Some(summary), part.as_ref(), later.as_ref()].into_iter().flatten() {
                let words = text.split_whitespace().count();
                assert!(
                    (1..=13).contains(&words) && !text.contains(['|', '\n']) && !text.ends_with('.'),
                    "{text}"
                );
            }
        }
    }
}
