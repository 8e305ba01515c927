//! Instances with sidecars of their own, called by Onus or by Envoy.

use std::net::{Ipv4Addr, SocketAddr};

use rustix::process::Signal;
use tokio::net::{TcpListener, TcpStream};

use super::app::{App, Asked, Does};
use super::caller;
use super::check::{self, Attempts, Sums};
use super::load::Load;
use crate::sidecar::cast::envoy::Envoy;
use crate::sidecar::cast::process::{free_address, until};
use crate::sidecar::cast::{Line, Page, Sidecar, gateway};

/// An instance: an application with its sidecar.
struct Instance {
    app: App,
    sidecar: Sidecar,
    inbound: SocketAddr,
    /// Where it calls somebody who never answers.
    silent: TcpListener,
    served: Served,
}

/// What the sidecars of an instance have counted, one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    requests: u64,
    /// What became of them at the application.
    asked: Attempts,
}

impl Served {
    fn of(page: &Page) -> Self {
        let app = |family| page.sum(family, &["callee=\"app\""]);
        let requests = page.sum_of_any("onus_requests_total", &[]);
        let unsent = app("onus_proxy_unreachable_total") + app("onus_proxy_refused_total");
        let broken = app("onus_proxy_broken_total") + app("onus_proxy_given_up_total");
        Self { requests, asked: Attempts { made: requests, unsent, broken } }
    }

    fn and(self, other: Self) -> Self {
        let (a, b) = (self.asked, other.asked);
        let (made, unsent) = (a.made + b.made, a.unsent + b.unsent);
        let asked = Attempts { made, unsent, broken: a.broken + b.broken };
        Self { requests: self.requests + other.requests, asked }
    }
}

impl Instance {
    async fn start(asked: &Asked) -> Self {
        let app = App::start(asked).await;
        let inbound = free_address();
        let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let sidecar = sidecar(inbound, &app, &silent).await;
        Self { app, sidecar, inbound, silent, served: Served::default() }
    }

    /// As a rolling restart does: the sidecar is told first, and both come back.
    async fn restart(&mut self) {
        // As long as its application calls somebody, the sidecar does not end, and can be asked.
        let mut call = Line::to(self.sidecar.outbound).await;
        call.say("GET / HTTP/1.1\r\nhost: silent\r\n\r\n").await;
        let (_called, _) = self.silent.accept().await.expect("it is called");
        self.sidecar.signal(Signal::TERM);
        until("it accepts no more", async || TcpStream::connect(self.inbound).await.is_err()).await;
        let inbound = ["listener=\"inbound\""];
        let mut page = self.sidecar.metrics().await;
        while page.sum("onus_proxy_connections", &inbound) > 0 {
            tokio::task::yield_now().await;
            page = self.sidecar.metrics().await;
        }
        self.served = self.served.and(Served::of(&page));
        self.app.kill().await;
        drop(call);
        assert_eq!(self.sidecar.ended().await, Some(0));
        let said = self.sidecar.said();
        assert!(!said.iter().any(|line| line.contains("cut off")), "{said:?}");
        self.app.revive().await;
        self.sidecar = sidecar(self.inbound, &self.app, &self.silent).await;
    }

    async fn served(&self) -> Served {
        self.served.and(Served::of(&self.sidecar.metrics().await))
    }
}

async fn sidecar(inbound: SocketAddr, app: &App, silent: &TcpListener) -> Sidecar {
    let silent = silent.local_addr().expect("it is bound");
    Sidecar::start(&format!(
        "service: peer\nmode: enforce\ninbound: {{listen: \"{inbound}\", app: \"{}\"}}\n\
         callees: {{silent: {{address: \"{silent}\"}}}}\n",
        app.address
    ))
    .await
}

/// Three of them, and what is asked of them.
struct Scene {
    instances: Vec<Instance>,
    asked: Asked,
    load: Load,
}

impl Scene {
    async fn new() -> Self {
        let (asked, load) = (Asked::default(), Load::of_environment());
        let mut instances = Vec::new();
        for _ in 0..3 {
            instances.push(Instance::start(&asked).await);
        }
        Self { instances, asked, load }
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.instances.iter().map(|instance| instance.inbound).collect()
    }

    async fn caller(&self) -> Sidecar {
        let app = self.instances[0].app.address;
        Sidecar::start(&caller("enforce", app, &self.addresses())).await
    }

    async fn restart_all(&mut self) {
        for instance in &mut self.instances {
            self.load.part(8).await;
            instance.restart().await;
        }
    }

    /// How many requests all sidecars have served; what they have asked their applications adds up.
    async fn served(&self, name: &str) -> u64 {
        let mut all = Served::default();
        for instance in &self.instances {
            all = all.and(instance.served().await);
        }
        all.asked.balance(name, self.asked.read_and_left(), 0);
        all.requests
    }

    /// What the load has come to at the caller's sidecar: on each edge all counts balance.
    async fn checked(&self, name: &str, sums: Sums, sidecar: &Sidecar) -> Sums {
        println!("{name}: {sums}");
        let page = sidecar.metrics().await;
        check::balance(name, &sums, [self.served(name).await, 0], &page);
        check::table(name, &page);
        assert_eq!(sums.failed_reads, 0, "{name}: {sums}");
        sums
    }
}

/// Lost are at most writes that are on the wire when their connection is closed.
fn check_writes(name: &str, sums: &Sums) {
    assert!(sums.failed_writes <= (sums.sent / 10_000).max(1), "{name}: {sums}");
}

#[tokio::test]
async fn a_rolling_restart_behind_the_sidecar_of_a_caller_loses_no_read() {
    let mut scene = Scene::new().await;
    let (sidecar, load) = (scene.caller().await, scene.load.clone());
    let sends = load.send(sidecar.outbound, false);
    let (all, ()) = tokio::join!(sends, scene.restart_all());
    let name = "rolling restart, retries by Onus";
    let sums = check::sums(name, &all, &scene.asked, true);
    let sums = scene.checked(name, sums, &sidecar).await;
    check_writes(name, &sums);
}

#[tokio::test]
async fn a_rolling_restart_behind_envoy_loses_no_read() {
    let Some(binary) = Envoy::binary("a_rolling_restart_behind_envoy_loses_no_read") else {
        return;
    };
    let mut scene = Scene::new().await;
    let envoy = Envoy::start(&binary, &gateway::in_front_of(&scene.addresses())).await;
    let load = scene.load.clone();
    let sends = load.send(envoy.port("inbound"), false);
    let (all, ()) = tokio::join!(sends, scene.restart_all());
    let name = "rolling restart, retries by Envoy";
    let sums = check::sums(name, &all, &scene.asked, true);
    println!("{name}: {sums}");
    assert_eq!(sums.failed_reads, 0, "{name}: {sums}");
    check_writes(name, &sums);
    let stats = envoy.get("/stats").await.expect("it answers");
    let stat = |name: &str| -> u64 {
        let mut values =
            stats.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        values.next().and_then(|value| value.parse().ok()).expect("it is among them")
    };
    assert_eq!(stat("http.inbound.downstream_rq_total"), sums.sent);
    assert_eq!(stat("http.inbound.downstream_rq_5xx"), sums.errors);
    let attempts = Attempts {
        made: sums.sent + stat("cluster.peer.upstream_rq_retry"),
        unsent: stat("cluster.peer.upstream_rq_pending_failure_eject"),
        broken: stat("cluster.peer.upstream_cx_destroy_remote_with_active_rq"),
    };
    assert_eq!(stat("cluster.peer.upstream_rq_total"), attempts.made - attempts.unsent);
    attempts.balance(name, [scene.served(name).await, 0], sums.again);
}

#[tokio::test]
async fn an_application_that_is_killed_fails_no_read_of_its_callers() {
    let mut scene = Scene::new().await;
    let (sidecar, load) = (scene.caller().await, scene.load.clone());
    let sends = load.send(sidecar.outbound, false);
    let happens = async {
        let app = &mut scene.instances[0].app;
        for _ in 0..2 {
            load.part(6).await;
            app.kill().await;
            load.part(6).await;
            app.revive().await;
        }
        app.does(Does::Reset);
        load.part(8).await;
        app.does(Does::Answer);
    };
    let (all, ()) = tokio::join!(sends, happens);
    let name = "application killed";
    let sums = check::sums(name, &all, &scene.asked, true);
    scene.checked(name, sums, &sidecar).await;
    // Whose error it was is told to the caller, and told again by nobody.
    let page = scene.instances[0].sidecar.metrics().await;
    assert!(page.sum("onus_claims_total", &["reason=\"own\""]) > 0);
}
