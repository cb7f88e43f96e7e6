//! The environment of a program: the user's own, without acpd's, plus what the caller says (SU-7).

use std::ffi::{OsStr, OsString};

/// Variables with this prefix configure acpd and may hold its secrets.
const OWN_PREFIX: &[u8] = b"ACPD_";

/// `inherited` minus acpd's own variables, overridden by `own`.
pub fn program_environment(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    own: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let is_own = |name: &OsStr| own.iter().any(|(own, _)| own == name);
    inherited
        .into_iter()
        .filter(|(name, _)| !name.as_encoded_bytes().starts_with(OWN_PREFIX) && !is_own(name))
        .chain(own.iter().cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        list.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    // SU-7
    #[test]
    fn the_users_environment_passes_and_acpds_own_does_not() {
        let inherited = pairs(&[("PATH", "/bin"), ("ACPD_TOKEN", "secret"), ("OTEL_X", "1"), ("KEY", "old")]);
        let got = program_environment(inherited, &pairs(&[("KEY", "new"), ("ACPD_FOR_AGENT", "meant")]));
        let expected =
            pairs(&[("PATH", "/bin"), ("OTEL_X", "1"), ("KEY", "new"), ("ACPD_FOR_AGENT", "meant")]);
        assert_eq!(got, expected);
    }
}
