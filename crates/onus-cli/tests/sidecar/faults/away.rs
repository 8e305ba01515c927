//! The dependency analysis goes away under load, and comes back.

use std::time::Duration;

use rustix::process::Signal;

use super::Scene;
use super::app::Does;
use crate::analysis::server::{Folder, Server};
use crate::sidecar::cast::process::until;
use crate::sidecar::reporting::counted;

#[tokio::test(flavor = "multi_thread")]
async fn an_analysis_that_is_away_costs_no_request_and_no_count() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    let url = server.url.clone();
    let more = format!("analysis: {{url: \"{url}\", interval: 1s}}\n");
    let mut scene = Scene::with("enforce", &more).await;
    let load = scene.load.clone();
    let sends = load.send(scene.sidecar.outbound, true);
    let happens = async {
        load.part(4).await;
        // As `kill -9`, in the middle of whatever it does.
        server.kill();
        load.part(8).await;
        scene.apps[0].does(Does::Reset);
        load.part(8).await;
        scene.apps[0].does(Does::Answer);
        assert_eq!(scene.sidecar.get("/readyz").await.0, 200, "it serves without the analysis");
        load.part(4).await;
        Server::start(&folder, url.trim_start_matches("http://"), "")
    };
    let (all, server) = tokio::join!(sends, happens);
    let sums = scene.checked("analysis away", true, &all).await;
    assert_eq!(sums.failed_reads, 0, "{sums:?}");
    let page = scene.sidecar.metrics().await;
    assert!(page.sum("onus_reports_total", &["result=\"failed\""]) > 0, "it was away");
    assert_eq!(page.sum("onus_reports_total", &["result=\"refused\""]), 0);
    let retries = page.sum("onus_retries_total", &["verdict=\"made\""]);
    let own = [sums.sent - sums.errors, sums.errors, retries];
    until("all counts are there", async || counted(&server, "caller") == own).await;

    // A second load ends with the sidecar, and the last counts are told before that.
    let short = load.lasting(Duration::from_secs(1));
    let more = short.send(scene.sidecar.outbound, true);
    let all = [all, more.await].concat();
    scene.apps[0].kill().await;
    scene.sidecar.signal(Signal::TERM);
    assert_eq!(scene.sidecar.ended().await, Some(0));
    let [ok, failed, _] = counted(&server, "caller");
    assert_eq!(ok + failed, all.len() as u64);
}
