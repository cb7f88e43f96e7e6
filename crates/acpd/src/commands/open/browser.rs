//! The browser of the person at this machine.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Sends the browser to an address, by a file in the state directory where there is one. The error says why there is no
/// browser.
pub(super) fn show(url: &str, state_dir: Option<&Path>) -> Result<(), String> {
    if !has_display(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) {
        return Err("there is no display here".to_owned());
    }
    let opened = match state_dir {
        Some(dir) => leading_to(url, dir).and_then(open::that_detached),
        None => open::that_detached(url),
    };
    opened.map_err(|error| format!("no browser could be started: {error}"))
}

/// Whether a window can be shown.
fn has_display(is_set: impl Fn(&str) -> bool) -> bool {
    cfg!(target_os = "macos") || ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"].into_iter().any(is_set)
}

/// A page for this user's eyes that leads on.
fn leading_to(url: &str, dir: &Path) -> io::Result<PathBuf> {
    let place = dir.join("open.html");
    // One that is there may have been made by another umask, or be a link to elsewhere.
    match std::fs::remove_file(&place) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&place)?;
    file.write_all(page(url).as_bytes())?;
    Ok(place)
}

fn page(url: &str) -> String {
    let escaped = url.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0;url={escaped}\">\n<title>acpd</title>\n<a href=\"{escaped}\">acpd</a>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_display_is_known_by_its_variables() {
        for (set, expected) in
            [("DISPLAY", true), ("WAYLAND_DISPLAY", true), ("SSH_TTY", cfg!(target_os = "macos"))]
        {
            assert_eq!(has_display(|name| name == set), expected, "{set}");
        }
    }

    // inspector: the code is for this user's eyes only
    #[test]
    fn the_page_is_for_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a directory");
        let elsewhere = dir.path().join("elsewhere");
        std::fs::write(&elsewhere, "mine").expect("written");
        std::os::unix::fs::symlink(&elsewhere, dir.path().join("open.html")).expect("linked");
        let place = leading_to("http://h:1/#code=1&to=\"<", dir.path()).expect("written");
        assert_eq!(std::fs::metadata(&place).expect("it is there").permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&place).expect("text");
        assert!(text.contains("0;url=http://h:1/#code=1&amp;to=&quot;&lt;\""), "{text}");
        assert_eq!(std::fs::read_to_string(&elsewhere).expect("text"), "mine");
    }
}
