//! How much the analysis takes in: reports of 1,000 deltas each, over a socket, one `fsync` for
//! each, until 250,000 edges are known. Prints deltas per second of wall time and of the processor,
//! and the memory of the process.
//!
//! `cargo bench -p onus-bench --bench ingest`

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use onus_analysis::{Analysis, AnalysisConfig, Server};
use tokio::time::Instant;

const SERVICES: usize = 250;
const EDGES: usize = 1_000;
const ROUNDS: u64 = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("onus-load-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut config = AnalysisConfig::new(&folder);
    config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let (address, ready) = std::sync::mpsc::channel();
    thread::spawn(move || {
        runtime.block_on(async {
            let analysis = Analysis::start(config).expect("the store opens");
            let server = Server::bind(analysis).await.expect("it listens");
            let _ = address.send(server.address().expect("it has an address"));
            server.serve(std::future::pending()).await
        })
    });
    let mut stream = TcpStream::connect(ready.recv()?)?;
    stream.set_nodelay(true)?;
    for round in 1..=ROUNDS {
        // Made before the clock runs: it is the analysis that is measured.
        let bodies: Vec<String> = (0..SERVICES).map(|service| report(service, round)).collect();
        let (start, used) = (Instant::now(), processor_seconds()?);
        for body in &bodies {
            post(&mut stream, body)?;
        }
        let wall = start.elapsed().as_secs_f64();
        let used = processor_seconds()? - used;
        let deltas = (SERVICES * EDGES) as f64;
        println(&format!(
            "round {round}: {:.0} deltas/s, {:.0} per second of the processor, {:.1} ms a report; {} MB",
            deltas / wall,
            deltas / used,
            1000.0 * wall / SERVICES as f64,
            resident_megabytes()?,
        ))?;
    }
    fs::remove_dir_all(folder)?;
    Ok(())
}

fn report(service: usize, sequence: u64) -> String {
    let edges: Vec<String> = (0..EDGES)
        .map(|edge| {
            format!(
                "{{\"caller_procedure\":\"POST /orders/{{id}}/{}\",\"callee\":\"shop/callee-{}\",\"procedure\":\"/shop.Service{}/Method\",\"policy\":{{\"attempts\":2,\"budget_percent\":10,\"budget_min_per_second\":1}},\"counts\":{{\"ok_caller_ok\":812,\"alone_caller_failed\":3,\"calls_ok\":812,\"calls_failed\":3,\"retries\":3,\"retries_claimed\":3}}}}",
                edge % 10,
                edge % 100,
                edge,
            )
        })
        .collect();
    format!(
        "{{\"schema_version\":1,\"service\":\"shop/service-{service}\",\"instance\":\"0123456789abcdef\",\"sequence\":{sequence},\"at\":0,\"edges\":[{}]}}",
        edges.join(",")
    )
}

fn post(stream: &mut TcpStream, body: &str) -> io::Result<()> {
    let head = format!(
        "POST /api/v1/reports HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut answer = [0; 4096];
    let length = stream.read(&mut answer)?;
    if answer[..length].starts_with(b"HTTP/1.1 200") {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&answer[..length]).into_owned()))
}

/// User and system time of the process, in ticks of 10 ms.
fn processor_seconds() -> io::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<f64> = after_name.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    // The state is no number, so that utime and stime are the eleventh and twelfth of the rest.
    Ok((fields[10] + fields[11]) / 100.0)
}

fn resident_megabytes() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes =
        line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    Ok(kilobytes.unwrap_or(0) / 1024)
}

fn println(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}
