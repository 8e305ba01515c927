//! One subject at one work for some seconds.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use tokio::time::{Instant, timeout};

use super::load::call::{Call, Miss};
use super::load::line::{Wire, connect};
use super::load::pacer::Pacer;
use super::load::tally::Tally;
use super::load::{closed, open, schedule};
use super::order::Cell;
use super::process::usage::Usage;
use super::subject::{Running, Subject};
use super::work::{Pace, Work};

/// What one subject did, and what it cost.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) work: Work,
    pub(crate) subject: Subject,
    pub(crate) requests: u64,
    pub(crate) per_second: f64,
    /// `None` where nothing is in between.
    pub(crate) cost: Option<Cost>,
    /// `None` where the next request waits for the last answer: such a latency misleads.
    pub(crate) latency: Option<Latency>,
}

/// What a request costs the process.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Cost {
    pub(crate) cpu_us: f64,
    /// The share of it in the process's own code, from 0 to 1.
    pub(crate) user_share: f64,
    pub(crate) voluntary_switches: f64,
}

/// Latency from when requests were to be sent.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

/// Requests failed: the run says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{failed} requests through {} at {} failed: {miss}", subject.name(), work.name())]
pub(crate) struct Void {
    work: Work,
    subject: Subject,
    failed: u64,
    #[source]
    miss: Miss,
}

/// Measures a subject that runs.
pub(crate) async fn measure(
    (work, subject): Cell,
    running: &Running,
    time: Duration,
    seed: u64,
) -> anyhow::Result<Sample> {
    let is_claimed = (work, subject) == (Work::Http1Error, Subject::Onus);
    let call = Arc::new(Call { is_claimed, ..work.call() });
    let lines = work.lines();
    let address = running.address(call.protocol);
    let mut wires = connect(address, call.protocol, lines.connections, lines.streams).await?;
    let warm = load(work, &mut wires, &call, WARM_UP, !seed).await?;
    whole((work, subject), &warm)?;
    let usage = || running.pid().map(Usage::of).transpose();
    let (before, start) = (usage()?, Instant::now());
    let tally = load(work, &mut wires, &call, time, seed).await?;
    let (after, seconds) = (usage()?, start.elapsed().as_secs_f64());
    whole((work, subject), &tally)?;
    let used = after.zip(before).map(|(after, before)| after.since(before));
    let latency = Latency { p50_us: tally.quantile_us(0.5), p99_us: tally.quantile_us(0.99) };
    Ok(Sample {
        work,
        subject,
        requests: tally.completed,
        per_second: tally.completed as f64 / seconds,
        cost: used.map(|used| cost(used, tally.completed)),
        latency: match work.pace() {
            Pace::Saturation => None,
            Pace::PerSecond(_) => Some(latency),
        },
    })
}

async fn load(
    work: Work,
    wires: &mut Vec<Wire>,
    call: &Arc<Call>,
    time: Duration,
    seed: u64,
) -> anyhow::Result<Tally> {
    let tally = async {
        Ok(match work.pace() {
            Pace::Saturation => closed::run(wires, call, time).await,
            Pace::PerSecond(rate) => {
                let pacer = Pacer::new()?;
                let times = schedule::poisson(seed, rate, time);
                open::run(wires, call, times, |at| pacer.until(at)).await?
            }
        })
    };
    let in_time = timeout(time + LATE_MAX, tally).await;
    in_time.with_context(|| format!("get all answers at {} in time", work.name()))?
}

/// Whether every request was answered as it must, and there were some.
fn whole((work, subject): Cell, tally: &Tally) -> Result<(), Void> {
    let miss = match (&tally.first_miss, tally.completed) {
        (Some(miss), _) => miss.clone(),
        (None, 0) => Miss::Broken("nothing was answered in time".to_owned()),
        (None, _) => return Ok(()),
    };
    Err(Void { work, subject, failed: tally.failed, miss })
}

fn cost(used: Usage, requests: u64) -> Cost {
    let requests = requests as f64;
    let ticks = (used.user_ticks + used.system_ticks).max(1) as f64;
    Cost {
        cpu_us: used.cpu_ns as f64 / 1e3 / requests,
        user_share: used.user_ticks as f64 / ticks,
        voluntary_switches: used.voluntary_switches as f64 / requests,
    }
}

/// Until connections, caches and allocators are as they stay.
const WARM_UP: Duration = Duration::from_millis(400);

/// How long the last answers may take beyond the time of a load; who hangs ends the comparison.
const LATE_MAX: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_failed_request_voids() {
        let cell = (Work::Http1Saturation, Subject::Envoy);
        let mut tally = Tally::new();
        assert!(whole(cell, &tally).is_err());
        for _ in 0..1_000_000 {
            tally.add(Ok(()), Duration::from_micros(300));
        }
        assert_eq!(whole(cell, &tally), Ok(()));
        tally.add(Err(Miss::Status(503)), Duration::from_micros(300));
        let void = whole(cell, &tally).unwrap_err();
        let text = "1 requests through envoy at h1-saturation failed: the status was 503";
        assert_eq!(void.to_string(), text);
    }

    #[test]
    fn cost_is_per_request() {
        let used =
            Usage { cpu_ns: 3_000_000, user_ticks: 1, system_ticks: 3, voluntary_switches: 50 };
        let cost = cost(used, 200);
        let got = (cost.cpu_us, cost.user_share, cost.voluntary_switches);
        assert_eq!(got, (15.0, 0.25, 0.25));
    }
}
