//! Callees that break, one of three instances at a time, with ownership and without.

use super::Scene;
use super::app::Does;

/// The same fault in both modes at the same time. With another instance there no read is lost; and
/// ownership costs no answer.
async fn check(name: &str, happens: impl AsyncFn(&mut Scene)) {
    let (owned, free) = (Scene::new("enforce").await, Scene::new("off").await);
    let free_name = format!("{name}, without ownership");
    let (owned, free) = tokio::join!(
        owned.run(name, true, async |scene| happens(scene).await),
        free.run(&free_name, false, async |scene| happens(scene).await),
    );
    assert_eq!(owned.failed_reads, 0, "{name}: another instance answers");
    // Some more than a share of a short round: those on their way when a fault begins or ends.
    let more = (owned.sent / 10_000).max(4);
    assert!(owned.failed_writes <= free.failed_writes + more, "{name}: {owned:?} {free:?}");
    assert!(owned.lost_writes <= free.lost_writes + more, "{name}: {owned:?} {free:?}");
}

/// One instance does this for half of the time.
async fn one_does(scene: &mut Scene, does: Does) {
    scene.load.part(4).await;
    scene.apps[0].does(does);
    scene.load.part(2).await;
    scene.apps[0].does(Does::Answer);
}

#[tokio::test]
async fn a_callee_that_is_killed_and_started_again_loses_no_read() {
    check("killed and restarted", async |scene| {
        for _ in 0..2 {
            scene.load.part(5).await;
            scene.apps[0].kill().await;
            scene.load.part(5).await;
            scene.apps[0].revive().await;
        }
    })
    .await;
}

#[tokio::test]
async fn resets_lose_no_read_and_repeat_no_write() {
    check("resets", async |scene| one_does(scene, Does::Reset).await).await;
}

#[tokio::test]
async fn a_black_hole_loses_no_read_and_repeats_no_write() {
    check("black hole", async |scene| one_does(scene, Does::Nothing).await).await;
}

#[tokio::test]
async fn slow_heads_lose_nothing() {
    check("slow heads", async |scene| one_does(scene, Does::SlowHead).await).await;
}

#[tokio::test]
async fn slow_bodies_lose_nothing() {
    check("slow bodies", async |scene| one_does(scene, Does::SlowBody).await).await;
}

#[tokio::test]
async fn half_closed_sockets_lose_no_read_and_repeat_no_write() {
    check("half-closed sockets", async |scene| {
        scene.load.part(4).await;
        scene.apps[0].does(Does::HalfClose);
        scene.load.part(4).await;
        scene.apps[0].does(Does::AnswerAndClose);
        scene.load.part(4).await;
        scene.apps[0].does(Does::Answer);
    })
    .await;
}

#[tokio::test]
async fn all_of_it_together_loses_no_read_and_repeats_no_write() {
    check("mixed", async |scene| {
        for round in 0..7 {
            let at = round % 2;
            let does = [
                Does::Reset,
                Does::SlowHead,
                Does::Nothing,
                Does::SlowBody,
                Does::HalfClose,
                Does::AnswerAndClose,
            ];
            scene.load.part(16).await;
            match does.get(round) {
                Some(&does) => scene.apps[at].does(does),
                None => scene.apps[at].kill().await,
            }
            scene.load.part(16).await;
            match does.get(round) {
                Some(_) => scene.apps[at].does(Does::Answer),
                None => scene.apps[at].revive().await,
            }
        }
    })
    .await;
}
