//! How fast a dump of traces is imported, beside plain deserialisation of the same bytes:
//! `cargo bench --bench traces -- 1000000 dump.json` takes a million spans and leaves the dump.

#![expect(clippy::print_stdout, reason = "its output is all it is for")]

use std::hint::black_box;
use std::time::Duration;
use std::{fs, io};

use onus_bench::traces::{deserialise, import, write};

fn main() -> io::Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let spans = arguments.iter().find_map(|argument| argument.parse().ok());
    // Cargo says so when it wants figures; else it wants to see that this runs.
    let in_earnest = arguments.iter().any(|argument| argument == "--bench");
    let mut dump = Vec::new();
    write(spans.unwrap_or(if in_earnest { 200_000 } else { 1_000 }), &mut dump)?;
    if let Some(path) = arguments.iter().find(|argument| argument.ends_with(".json")) {
        fs::write(path, &dump)?;
    }
    let (mut plain, mut imported) = (Duration::MAX, Duration::MAX);
    // Taken in turns, so that a busy machine is busy for both; the least disturbed turn counts.
    for _ in 0..5 {
        plain = plain.min(timed(|| deserialise(black_box(&dump)).expect("it is a dump of Jaeger")));
        imported = imported.min(timed(|| import(black_box(&dump))));
    }
    let pace = |time: Duration| dump.len() as f64 / 1e6 / time.as_secs_f64();
    println!("plain deserialisation: {:.0} MB/s", pace(plain));
    println!("import and report:     {:.0} MB/s", pace(imported));
    println!("ratio:                 {:.2}", plain.as_secs_f64() / imported.as_secs_f64());
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the clock is what it is for")]
fn timed(work: impl FnOnce() -> u64) -> Duration {
    let start = std::time::Instant::now();
    black_box(work());
    start.elapsed()
}
