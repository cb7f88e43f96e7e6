//! Names of the protocol in what acpd itself answers, as the flags that a person typed.

use std::borrow::Cow;

/// Each name, and the flag that it is given by.
const FLAGS: [(&str, &str); 6] = [
    ("_meta[\"sandboxagent.dev\"].title", "--title"),
    ("_meta[\"sandboxagent.dev\"].permissionMode", "--permission-mode"),
    ("additionalDirectories", "--add-dir"),
    ("olderThanMs", "--older-than"),
    ("keepBytes", "--keep-bytes"),
    // Of an import: a line as a whole.
    (": line: ", ": "),
];

/// A text of acpd's with flags in the place of the names that only programs use.
pub(crate) fn in_flags(text: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(text);
    for (name, flag) in FLAGS {
        if shown.contains(name) {
            shown = Cow::Owned(shown.replace(name, flag));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpd_host::META;

    // issue 28, C5: people read the flags that they typed
    #[test]
    fn flags_stand_for_names_of_the_wire() {
        let meta = format!("_meta[{META:?}].title: one line is required");
        for (text, shown) in [
            (meta.as_str(), "--title: one line is required"),
            (
                "give olderThanMs or keepBytes, or set keep_for",
                "give --older-than or --keep-bytes, or set keep_for",
            ),
            ("line 1: line: UTF-8 is required", "line 1: UTF-8 is required"),
            ("line 1: cwd: a string is required", "line 1: cwd: a string is required"),
        ] {
            assert_eq!(in_flags(text), shown);
        }
    }
}
