//! What operators do to a sidecar while it serves.

use std::time::Duration;

use rustix::process::Signal;
use tokio::time::interval;

use super::Scene;
use super::load::Load;
use crate::sidecar::cast::process::until;

#[tokio::test]
async fn reloads_lose_nothing_and_forget_nothing() {
    let scene = Scene::new("enforce").await;
    let sums = scene
        .run("reloads", true, async |scene| {
            let mut pace = interval(Duration::from_millis(100));
            for round in 0..scene.load.time.as_millis() / 110 {
                pace.tick().await;
                scene.sidecar.rewrite(|text| match round % 4 {
                    // The same, another policy, another callee beside it, and nonsense.
                    0 => text.replace("service: other", "service: caller"),
                    1 => text.replace("backoff-max: 2ms", "backoff-max: 3ms"),
                    2 => text.replace("backoff-max: 3ms", "backoff-max: 2ms"),
                    _ => text.replace("service: caller", "service: other"),
                });
                scene.sidecar.signal(Signal::HUP);
            }
        })
        .await;
    assert_eq!((sums.failed_reads, sums.failed_writes), (0, 0));
}

#[tokio::test]
async fn a_sidecar_that_is_told_to_end_serves_its_application_until_that_is_gone() {
    // As long as the load lasts, and longer.
    let limit = format!("drain: {{limit: {}s}}\n", Load::of_environment().time.as_secs() + 60);
    let mut scene = Scene::with("enforce", &limit).await;
    let load = scene.load.clone();
    let sends = load.send(scene.sidecar.outbound, true);
    let told = async {
        load.part(4).await;
        scene.sidecar.signal(Signal::TERM);
        until("it is not ready", async || scene.sidecar.get("/readyz").await.0 == 503).await;
    };
    let (all, ()) = tokio::join!(sends, told);
    let sums = scene.checked("told to end", true, &all).await;
    assert_eq!((sums.failed_reads, sums.failed_writes), (0, 0));
    scene.apps[0].kill().await;
    assert_eq!(scene.sidecar.ended().await, Some(0));
    let cut_off = scene.sidecar.said().iter().any(|line| line.contains("cut off"));
    assert!(!cut_off, "it ended by itself");
}
