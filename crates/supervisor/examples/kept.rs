//! What it costs that a program is kept: round trips, and lines of one write each, next to the same program that is not.
//!
//! `cargo run --release -p acpd-supervisor --example kept -- KEEPER [ARGUMENT...]`, where that is `acpd keeper`, say. By turns, and
//! the middle one of five each; needs perl.

use acpd_supervisor::{KeeperCommand, Process, ProgramSpec, Supervisor, TaskScope};
use std::io::{self, Write};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::bytes::BytesMut;

const TURNS: usize = 5;
const ROUND_TRIPS: u32 = 5_000;
const BYTES: usize = 60 << 20;

const ECHO: &str = "$| = 1; while (sysread(STDIN, my $b, 65536)) { syswrite(STDOUT, $b) }";

fn lines(length: usize) -> String {
    let count = BYTES / 4 / length;
    format!(
        "my $l = ('x' x {}) . \"\\n\"; syswrite(STDOUT, $l) for 1..{count}; syswrite(STDOUT, '!'); sleep 1000",
        length - 1
    )
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments.next().expect("the keeper's program is the first argument").into();
    let keeper = KeeperCommand { program, args: arguments.collect() };
    let supervisor = Supervisor::new(keeper, "cost-of-keeping", TaskScope::default());
    let mut out = io::stdout();
    let [plain, kept] = by_turns(&supervisor, ECHO, round_trip).await?;
    writeln!(out, "round trip: plain {plain:.1?}, kept {kept:.1?}")?;
    for length in [60, 200, 400, 16 * 1024] {
        let [plain, kept] = by_turns(&supervisor, &lines(length), flow).await?;
        let rate = |took: Duration| (BYTES / 4 / length) as f64 / took.as_secs_f64() / 1000.0;
        let part = plain.as_secs_f64() / kept.as_secs_f64();
        writeln!(out, "{length} bytes: plain {:.0} k/s, kept {:.0} k/s, {part:.2}", rate(plain), rate(kept))?;
    }
    Ok(())
}

/// The middle time of a plain program, and of a kept one.
async fn by_turns(
    supervisor: &Supervisor,
    script: &str,
    measure: impl AsyncFn(&mut Process) -> io::Result<Duration>,
) -> io::Result<[Duration; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (kept, times) in [false, true].into_iter().zip(&mut times) {
            let mut spec = ProgramSpec { kept, ..ProgramSpec::new("perl", std::env::temp_dir()) };
            spec.args = vec!["-e".into(), script.into()];
            spec.env = std::env::vars_os().filter(|(name, _)| name == "PATH").collect();
            let mut process = supervisor.start(spec).await.map_err(io::Error::other)?;
            times.push(measure(&mut process).await?);
            process.handle.kill();
            process.handle.exited().await;
        }
    }
    Ok(times.map(|mut times| {
        times.sort();
        times[TURNS / 2]
    }))
}

async fn round_trip(process: &mut Process) -> io::Result<Duration> {
    let (mut begun, mut buffer) = (Instant::now(), BytesMut::with_capacity(4096));
    for round in 0..ROUND_TRIPS + 100 {
        if round == 100 {
            begun = Instant::now();
        }
        process.stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await?;
        buffer.clear();
        while !buffer.ends_with(b"\n") {
            buffer.reserve(4096);
            process.stdout.read_buf(&mut buffer).await?;
        }
        process.stdout.committed(process.stdout.position());
    }
    Ok(begun.elapsed() / ROUND_TRIPS)
}

async fn flow(process: &mut Process) -> io::Result<Duration> {
    let (begun, mut buffer) = (Instant::now(), BytesMut::with_capacity(64 * 1024));
    while !buffer.ends_with(b"!") {
        // As after a commit of what came before.
        process.stdout.committed(process.stdout.position());
        buffer.clear();
        buffer.reserve(64 * 1024);
        process.stdout.read_buf(&mut buffer).await?;
    }
    Ok(begun.elapsed())
}
