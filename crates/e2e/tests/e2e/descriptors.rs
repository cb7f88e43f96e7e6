//! One acpd that lives long: what ended sessions had open is closed.

use acpd_e2e::{Scratch, open_files, until};

/// Sessions before the first count: caches and pools have their size by then, and each of the log's readers its file.
const WARM: usize = 20;
/// Sessions between the counts.
const MORE: usize = 40;

// SU-6: many agents end on one connection, and no descriptor is left of them
#[test]
fn descriptors_do_not_grow() {
    let scratch = Scratch::new();
    let mut client = scratch.stdio("example");
    client.initialize();
    let mut warm = 0;
    for n in 0..WARM + MORE {
        let session = client.new_session();
        let end = ["crash", "exit 0", "exit 3", "signal KILL", "fork setsid\nexit 1"][n % 5];
        let asked = client.prompt(&session, end);
        client.error(&asked);
        client.is_alone();
        if n + 1 == WARM {
            warm = open_files(client.pid());
        }
    }
    // The last agent is gone a moment before the sockets of its keeper are closed here.
    until(&format!("no more than the {warm} descriptors after {WARM} sessions, {MORE} later"), || {
        (open_files(client.pid()) <= warm).then_some(())
    });
    client.finish();
}
