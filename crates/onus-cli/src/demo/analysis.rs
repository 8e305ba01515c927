//! `onus demo --analysis`: what the memory of an embedded analysis changes.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use onus::EdgeClass;
use onus_analysis::{AnalysisConfig, Server};
use onus_api::{Incident, Minute, RadiusPage, Window, WindowPair};
use onus_demo::{
    CalleeConfig, Cluster, Demo, Fault, Load, Policy, Report, RetryPermission, ServiceConfig,
    Topology, What, When,
};
use serde::Serialize;

use crate::analysis::Client;
use crate::report::markdown;

/// A fails one request in ten by itself.
const OWN: f64 = 0.1;
/// B and C fail so often that one call in ten fails in both of its attempts.
const BESIDE: f64 = 0.316;
const WAIT: Duration = Duration::from_secs(30);

/// What is shown.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    schema_version: u32,
    /// Errors of A itself, and those of them that its caller was told not to retry.
    without_memory: [u64; 2],
    with_memory: [u64; 2],
    /// The radius of the chain A to G without ownership, and with it.
    radius: [u32; 2],
    amplification: [f64; 2],
    incident: Incident,
}

/// The embedded analysis, on a port of loopback, with a store that goes with it.
struct Embedded {
    analysis: onus_analysis::Analysis,
    client: Client,
    url: String,
    folder: PathBuf,
}

impl Drop for Embedded {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(super) async fn run(demo: &Demo) -> anyhow::Result<Shown> {
    let embedded = Embedded::start().await?;
    let requests = demo.requests;
    let without_memory = own_errors(&diamond(true, demo), requests, None).await?;
    embedded.learn(demo).await?;
    let with_memory = own_errors(&diamond(true, demo), requests, Some(&embedded)).await?;
    let (radius, incident) = embedded.storm(demo).await?;
    let [storm] = &radius.services[..] else { bail!("find the chain: it has one root") };
    Ok(Shown {
        schema_version: 1,
        without_memory,
        with_memory,
        radius: [storm.without.radius, storm.now.radius],
        amplification: [storm.without.amplification, storm.now.amplification],
        incident,
    })
}

/// A calls B and C, and answers without them.
fn diamond(fails: bool, demo: &Demo) -> Topology {
    let share = |what, share| Fault { what, when: When::Share(share) };
    let mut root = ServiceConfig::new("shop");
    root.callees = ["ratings", "recs"]
        .map(|name| CalleeConfig { attempts: 2, tolerated: true, ..CalleeConfig::new(name) })
        .into();
    let mut services = vec![root, ServiceConfig::new("ratings"), ServiceConfig::new("recs")];
    if fails {
        services[0].faults.push(share(What::Fails, OWN));
        services[1].faults.push(share(What::Fails, BESIDE));
        services[2].faults.push(share(What::Fails, BESIDE));
    }
    Topology { services, protocol: demo.protocol, seed: 7 }
}

/// Errors of A, and those that its caller must not retry.
async fn own_errors(
    topology: &Topology,
    requests: u64,
    embedded: Option<&Embedded>,
) -> anyhow::Result<[u64; 2]> {
    let cluster = Cluster::start(topology).await?;
    if let Some(embedded) = embedded {
        let reporter = embedded.follow(&cluster)?;
        // One request, so that there are edges; their classes were learnt before this A began.
        send(&cluster, 1).await?;
        let agent = cluster.handles()[0].agent();
        let known = async {
            while !agent.edges().all(|edge| edge.class() == EdgeClass::FailOpen) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(WAIT, known).await.context("wait for the classes")?;
        drop(reporter);
    }
    let report = send(&cluster, requests).await?;
    let closed = report.seen.iter().filter(|(error, _)| error.retry() == RetryPermission::Closed);
    Ok([report.client_errors, closed.map(|(_, count)| count).sum()])
}

async fn send(cluster: &Cluster, requests: u64) -> anyhow::Result<Report> {
    let load = Load { requests, concurrency: 16, ramp: Duration::ZERO, timeout: None };
    Ok(cluster.send(load).await?)
}

impl Embedded {
    async fn start() -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("onus-demo-{}", std::process::id()));
        let mut config = AnalysisConfig::new(&folder);
        config.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let analysis = onus_analysis::Analysis::start(config)?;
        let server = Server::bind(analysis.clone()).await?;
        let url = format!("http://{}", server.address()?);
        tokio::spawn(server.serve(std::future::pending()));
        Ok(Self { analysis, client: Client::at(&url, None)?, url, folder })
    }

    fn follow(&self, cluster: &Cluster) -> anyhow::Result<Vec<onus::report::Reporter>> {
        let report = |onus: &onus::Onus| onus.report_to(onus::report::Analysis::at(&self.url));
        Ok(cluster.handles().iter().map(report).collect::<Result<_, _>>()?)
    }

    /// Lets services report what they have counted, and ends a minute before its time.
    async fn counted(&self, reporters: Vec<onus::report::Reporter>) {
        for reporter in reporters {
            reporter.finish().await;
        }
        self.analysis.tick().await;
    }

    /// Breaks B and C on purpose, one after the other: A survives, and the analysis remembers.
    async fn learn(&self, demo: &Demo) -> anyhow::Result<()> {
        for broken in [1, 2] {
            let mut topology = diamond(false, demo);
            topology.services[broken].faults.push(Fault::always(What::Fails));
            let cluster = Cluster::start(&topology).await?;
            let reporters = self.follow(&cluster)?;
            send(&cluster, 50).await?;
            self.counted(reporters).await;
        }
        Ok(())
    }

    /// The chain A to G, of which D fails every request.
    async fn storm(&self, demo: &Demo) -> anyhow::Result<(RadiusPage, Incident)> {
        let cluster = Cluster::start(&demo.topology(Policy::Ownership)).await?;
        let reporters = self.follow(&cluster)?;
        send(&cluster, demo.requests).await?;
        self.counted(reporters).await;
        let radius = self.client.get("/api/v1/radius", &[("service", "A")]).await?;
        let window: Window = self.client.get("/api/v1/window", &[]).await?;
        Ok((radius, onus_analysis::incident(&of_the_chain(window))))
    }
}

/// The window without the calls of the shop, so that its sums are those of the chain.
fn of_the_chain(mut window: Window) -> Window {
    window.pairs.retain(|pair| pair.caller.len() == 1);
    let mut sum = Minute { at: window.minutes.last().map_or(0, |it| it.at), ..Minute::default() };
    for WindowPair { counts, .. } in &window.pairs {
        sum.calls += counts.calls();
        sum.failed += counts.calls_failed;
        sum.retries += counts.retries;
        sum.suppressed += counts.suppressed;
    }
    Window { minutes: vec![sum], ..window }
}

impl Shown {
    pub(super) fn render(&self) -> String {
        let mut text = String::from(
            "shop calls ratings and recs, answers without them, and fails one request in ten by itself.\n\
             Each of the two fails one call in ten for good, so that one of them has failed in 1.9 of 10 errors.\n\
             Errors of shop, and those of them that its caller was told not to retry:\n",
        );
        let rows = [
            ("no memory: whoever failed is blamed", self.without_memory),
            ("classes learnt before, by breaking each once", self.with_memory),
        ];
        for (what, [errors, closed]) in rows {
            let of_ten = 10.0 * closed as f64 / errors.max(1) as f64;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {what:46}{closed:>6} of {errors} ({of_ten:.1} of 10)");
        }
        let [without, now] = self.radius;
        let [large, small] = self.amplification;
        let _ = writeln!(
            text,
            "\nA to G in a chain, two attempts at each hop. Without ownership a storm multiplies at {without} hops, {large:.0} requests for one (radius and amplification); with it at {now}, {small:.0} for one.\n\
             D fails every request:\n\n{}",
            markdown::render(&self.incident)
        );
        text
    }
}
