//! The environment of a program: the user's own, without acpd's and its service manager's, plus what the caller says (SU-7).

use std::ffi::{OsStr, OsString};

/// Variables with this prefix configure acpd and may hold its secrets.
const OWN_PREFIX: &[u8] = b"ACPD_";

/// What a service manager tells acpd alone: a program that took it for its own would speak in acpd's name.
const OF_THE_SERVICE: [&str; 6] =
    ["LISTEN_FDNAMES", "LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"];

/// `inherited` minus the variables that are for acpd alone, overridden by `own`.
pub fn program_environment(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    own: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let is_own = |name: &OsStr| own.iter().any(|(own, _)| own == name);
    let is_for_acpd = |name: &OsStr| {
        name.as_encoded_bytes().starts_with(OWN_PREFIX) || OF_THE_SERVICE.iter().any(|of| *of == name)
    };
    inherited
        .into_iter()
        .filter(|(name, _)| !is_for_acpd(name) && !is_own(name))
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
        let inherited = pairs(&[
            ("PATH", "/bin"),
            ("ACPD_TOKEN", "secret"),
            ("OTEL_X", "1"),
            ("KEY", "old"),
            ("NOTIFY_SOCKET", "/run/systemd/notify"),
            ("LISTEN_FDS", "2"),
        ]);
        let got = program_environment(inherited, &pairs(&[("KEY", "new"), ("ACPD_FOR_AGENT", "meant")]));
        let expected =
            pairs(&[("PATH", "/bin"), ("OTEL_X", "1"), ("KEY", "new"), ("ACPD_FOR_AGENT", "meant")]);
        assert_eq!(got, expected);
    }
}
