//! Instances with sidecars of their own, called by Onus or by Envoy.

use std::net::SocketAddr;

use rustix::process::Signal;
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::app::{App, Asked, Does};
use super::check;
use super::load::Load;
use super::{RETRY, caller};
use crate::sidecar::cast::envoy::Envoy;
use crate::sidecar::cast::process::{free_address, until};
use crate::sidecar::cast::{Sidecar, gateway};

/// An instance: an application with its sidecar.
struct Instance {
    app: App,
    sidecar: Sidecar,
    inbound: SocketAddr,
}

impl Instance {
    async fn start(asked: &Asked) -> Self {
        let app = App::start(asked).await;
        let inbound = free_address();
        let sidecar = Sidecar::start(&Self::yaml(inbound, app.address)).await;
        Self { app, sidecar, inbound }
    }

    fn yaml(inbound: SocketAddr, app: SocketAddr) -> String {
        format!(
            "service: peer\nmode: enforce\ninbound: {{listen: \"{inbound}\", app: \"{app}\"}}\n\
             callees: {{other: {{address: \"127.0.0.1:9\", {RETRY}}}}}\n"
        )
    }

    /// As a rolling restart does: the sidecar is told first, and both come back.
    async fn restart(&mut self) {
        self.sidecar.signal(Signal::TERM);
        until("it accepts no more, and has answered what it had", async || {
            let is_closed = TcpStream::connect(self.inbound).await.is_err();
            is_closed && self.sidecar.metrics().await.sum("onus_proxy_requests", &[]) == 0
        })
        .await;
        self.app.kill().await;
        assert_eq!(self.sidecar.ended().await, Some(0));
        self.app.revive().await;
        self.sidecar = Sidecar::start(&Self::yaml(self.inbound, self.app.address)).await;
    }
}

async fn instances(asked: &Asked) -> Vec<Instance> {
    let mut instances = Vec::new();
    for _ in 0..3 {
        instances.push(Instance::start(asked).await);
    }
    instances
}

fn addresses(instances: &[Instance]) -> Vec<SocketAddr> {
    instances.iter().map(|instance| instance.inbound).collect()
}

async fn restart_all(instances: &mut [Instance], load: Load) {
    for instance in instances {
        sleep(load.part(8)).await;
        instance.restart().await;
    }
}

#[tokio::test]
async fn a_rolling_restart_behind_the_sidecar_of_a_caller_loses_no_read() {
    let (asked, load) = (Asked::default(), Load::of_environment());
    let mut instances = instances(&asked).await;
    let yaml = caller("enforce", instances[0].app.address, &addresses(&instances));
    let sidecar = Sidecar::start(&yaml).await;
    let sends = load.send(sidecar.outbound, false);
    let (all, ()) = tokio::join!(sends, restart_all(&mut instances, load));
    let name = "rolling restart, retries by Onus";
    let sums = check::sums(name, &all, &asked, true);
    println!("{name}: {sums:?}");
    assert_eq!(sums.failed_reads, 0, "{sums:?}");
}

#[tokio::test]
async fn a_rolling_restart_behind_envoy_loses_no_read() {
    let Some(binary) = Envoy::binary("a_rolling_restart_behind_envoy_loses_no_read") else {
        return;
    };
    let (asked, load) = (Asked::default(), Load::of_environment());
    let mut instances = instances(&asked).await;
    let envoy = Envoy::start(&binary, &gateway::in_front_of(&addresses(&instances))).await;
    let sends = load.send(envoy.port("inbound"), false);
    let (all, ()) = tokio::join!(sends, restart_all(&mut instances, load));
    let name = "rolling restart, retries by Envoy";
    let sums = check::sums(name, &all, &asked, true);
    println!("{name}: {sums:?}");
    assert_eq!(sums.failed_reads, 0, "{sums:?}");
}

#[tokio::test]
async fn an_application_that_is_killed_fails_no_read_of_its_callers() {
    let (asked, load) = (Asked::default(), Load::of_environment());
    let mut instances = instances(&asked).await;
    let yaml = caller("enforce", instances[0].app.address, &addresses(&instances));
    let sidecar = Sidecar::start(&yaml).await;
    let sends = load.send(sidecar.outbound, false);
    let happens = async {
        let app = &mut instances[0].app;
        for _ in 0..2 {
            sleep(load.part(6)).await;
            app.kill().await;
            sleep(load.part(6)).await;
            app.revive().await;
        }
        app.does(Does::Reset);
        sleep(load.part(8)).await;
        app.does(Does::Answer);
    };
    let (all, ()) = tokio::join!(sends, happens);
    let name = "application killed";
    let sums = check::sums(name, &all, &asked, true);
    println!("{name}: {sums:?}");
    assert_eq!(sums.failed_reads, 0, "{sums:?}");
    // Whose error it was is told to the caller, and told again by nobody.
    let page = instances[0].sidecar.metrics().await;
    assert!(page.sum("onus_claims_total", &["reason=\"own\""]) > 0);
}
