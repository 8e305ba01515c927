//! `onus tail`: attempts of sidecars, while they happen.

use std::io::Write;

use anyhow::{anyhow, bail};
use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;
use tokio::runtime;
use tokio::sync::mpsc::{self, Sender};

use crate::analysis::Client;
use crate::cli::{Output, TailOptions};

/// An attempt, or a gap.
#[derive(Debug, Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Line {
    missed: u64,
    at: u64,
    service: String,
    callee: String,
    instance: String,
    attempt: u32,
    method: String,
    path: String,
    status: u16,
    grpc_status: Option<u16>,
    ms: u64,
    retry: String,
    cause: String,
    origin: String,
    hops: u8,
    error: String,
}

/// Prints lines until all sidecars have ended, or nobody reads.
pub(crate) fn run(options: &TailOptions) -> anyhow::Result<()> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(follow(options))
}

async fn follow(options: &TailOptions) -> anyhow::Result<()> {
    let filters = [
        ("service", &options.service),
        ("edge", &options.edge),
        ("status", &options.status),
        ("retry", &options.retry),
        ("origin", &options.origin),
    ];
    let query: Vec<(&str, &str)> =
        filters.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
    let (sender, mut lines) = mpsc::channel(BETWEEN);
    let mut open = 0;
    for sidecar in &options.sidecars {
        let client = Client::at(sidecar, None)?;
        match client.open("/api/v1/tail", &query).await {
            Ok(body) => {
                open += 1;
                let (sender, sidecar) = (sender.clone(), sidecar.clone());
                tokio::spawn(async move {
                    // Kept, because connections end with it.
                    let _client = client;
                    let ended = read(body, &sender).await;
                    let why = ended.err().map(|error| format!(": {error:#}")).unwrap_or_default();
                    let told = format!("{sidecar} has ended{why}");
                    let _ = sender.send(Err(told)).await;
                });
            }
            // The others are worth reading.
            Err(error) if options.sidecars.len() > 1 => {
                anstream::eprintln!("warning: failed to {error:#}");
            }
            Err(error) => return Err(error),
        }
    }
    drop(sender);
    if open == 0 {
        bail!("find a sidecar: none of {} answers", options.sidecars.join(", "));
    }
    let mut out = anstream::stdout();
    if options.output == Output::Table {
        writeln!(out, "{HEADINGS}")?;
    }
    while let Some(line) = lines.recv().await {
        match (line, options.output) {
            (Ok(text), Output::Json) => writeln!(out, "{text}")?,
            (Ok(text), Output::Table) => writeln!(out, "{}", row(&serde_json::from_str(&text)?))?,
            (Err(told), Output::Json | Output::Table) => anstream::eprintln!("warning: {told}"),
        }
        out.flush()?;
    }
    bail!("read on: all sidecars have ended")
}

/// Lines, or how a sidecar ended.
type Told = Result<String, String>;

async fn read(mut body: Incoming, sender: &Sender<Told>) -> anyhow::Result<()> {
    let mut text = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        text.extend_from_slice(&data);
        while let Some(end) = text.iter().position(|&byte| byte == b'\n') {
            let line = text.split_to(end + 1);
            let line = std::str::from_utf8(&line)?.trim();
            // An empty one is a sign of life.
            if !line.is_empty() && sender.send(Ok(line.to_owned())).await.is_err() {
                return Ok(());
            }
        }
        if text.len() > LINE_MAX {
            return Err(anyhow!("read a line of more than {LINE_MAX} bytes"));
        }
    }
    Ok(())
}

fn row(line: &Line) -> String {
    if line.missed > 0 {
        return format!("{:<12} {} lines are missing: this reader was too slow", "", line.missed);
    }
    let status = match (line.status, line.grpc_status) {
        (0, _) => "-".to_owned(),
        (_, Some(code)) => format!("grpc-{code}"),
        (status, None) => status.to_string(),
    };
    let mut row = format!(
        "{} {:<18} {:<18} {:>3} {:>7} {:>7} {:<6} {} {}",
        clock(line.at),
        line.service,
        line.callee,
        line.attempt,
        status,
        format!("{}ms", line.ms),
        if line.retry.is_empty() { "-" } else { &line.retry },
        line.method,
        line.path,
    );
    if !line.instance.is_empty() {
        row.push_str(&format!(" {}", line.instance));
    }
    if !line.retry.is_empty() {
        let origin = if line.origin.is_empty() { "unknown" } else { &line.origin };
        row.push_str(&format!(" cause={} origin={origin} hops={}", line.cause, line.hops));
    }
    if !line.error.is_empty() {
        row.push_str(&format!(" error={:?}", line.error));
    }
    shown(&row)
}

/// The text without what a stranger may have written for the terminal: signs that control it, or
/// that turn the direction of writing.
fn shown(text: &str) -> String {
    let turns = |sign| {
        let embeds = ('\u{202a}'..='\u{202e}').contains(&sign);
        let isolates = ('\u{2066}'..='\u{2069}').contains(&sign);
        embeds || isolates || ['\u{61c}', '\u{200e}', '\u{200f}'].contains(&sign)
    };
    let mut shown = String::with_capacity(text.len());
    for sign in text.chars() {
        if sign.is_control() || turns(sign) {
            shown.extend(sign.escape_unicode());
        } else {
            shown.push(sign);
        }
    }
    shown
}

/// The time of day, of Greenwich.
fn clock(at: u64) -> String {
    let of_day = at % 86_400_000;
    let (seconds, millis) = (of_day / 1000, of_day % 1000);
    format!("{:02}:{:02}:{:02}.{millis:03}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

const HEADINGS: &str = "TIME (UTC)   SERVICE            CALLEE              TRY  STATUS    TOOK \
                        RETRY  REQUEST, INSTANCE, ERROR";

/// Lines between the sidecars and the screen; who is slow there is slow at the sidecars.
const BETWEEN: usize = 64;

/// More than a line with the longest path that a sidecar takes.
const LINE_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_for_people() {
        let line = Line {
            at: 86_400_000 + 3_723_004,
            service: "shop/web".to_owned(),
            callee: "shop/pay".to_owned(),
            instance: "10.0.0.7:80".to_owned(),
            attempt: 2,
            method: "POST".to_owned(),
            path: "/charge".to_owned(),
            status: 503,
            ms: 12,
            retry: "closed".to_owned(),
            cause: "dependency".to_owned(),
            origin: "shop/db".to_owned(),
            hops: 1,
            ..Line::default()
        };
        assert_eq!(
            row(&line),
            "01:02:03.004 shop/web           shop/pay             2     503    12ms closed POST \
             /charge 10.0.0.7:80 cause=dependency origin=shop/db hops=1"
        );
        let strange = Line { path: "/\u{9b}31m\u{202e}\r/ö".to_owned(), ..Line::default() };
        assert!(row(&strange).contains(" /\\u{9b}31m\\u{202e}\\u{d}/ö"), "{}", row(&strange));
        let gap = Line { missed: 7, ..Line::default() };
        assert!(row(&gap).contains("7 lines are missing"));
    }
}
