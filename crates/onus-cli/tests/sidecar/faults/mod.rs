//! Faults under load: no request is lost that could be answered, none is answered twice, none is
//! retried against the table, and all counts balance to the unit.
//!
//! A short round at a low rate each; `ONUS_FAULTS_RATE=2000 ONUS_FAULTS_SECONDS=60` makes it a long
//! one at a high rate.

mod app;
mod away;
mod callees;
mod check;
mod instances;
mod load;
mod operating;

use std::net::SocketAddr;

use self::app::{App, Asked};
use self::check::Sums;
use self::load::{Ended, Load};
use super::cast::Sidecar;

/// The sidecar of a caller, and three instances that it calls.
struct Scene {
    sidecar: Sidecar,
    apps: Vec<App>,
    asked: Asked,
    load: Load,
}

/// Three attempts, each of which may take longer than a busy machine needs for an answer.
const RETRY: &str = "attempts: 3, no-budget: true, no-gate: true, no-probes: true, \
                     backoff-base: 1ms, backoff-max: 2ms, per-try-timeout: 2s";
/// Also of writes that have provably met nobody.
const UNSENT: &str = "errors: [connect], unsafe-methods: true";

impl Scene {
    async fn new(mode: &str) -> Self {
        Self::with(mode, "").await
    }

    /// With more of the sidecar's configuration.
    async fn with(mode: &str, more: &str) -> Self {
        let (asked, load) = (Asked::default(), Load::of_environment());
        let mut apps = Vec::new();
        for _ in 0..3 {
            apps.push(App::start(&asked).await);
        }
        let addresses: Vec<_> = apps.iter().map(|app| app.address).collect();
        let sidecar = Sidecar::start(&(caller(mode, apps[0].address, &addresses) + more)).await;
        Self { sidecar, apps, asked, load }
    }

    /// Sends the load while this happens, and checks what came of it.
    async fn run(
        mut self,
        name: &str,
        is_owned: bool,
        happens: impl AsyncFnOnce(&mut Self),
    ) -> Sums {
        let load = self.load.clone();
        let sends = load.send(self.sidecar.outbound, true);
        let (all, ()) = tokio::join!(sends, happens(&mut self));
        self.checked(name, is_owned, &all).await
    }

    async fn checked(&self, name: &str, is_owned: bool, all: &[Ended]) -> Sums {
        let sums = check::sums(name, all, &self.asked, is_owned);
        let page = self.sidecar.metrics().await;
        let (now, most) = self.sidecar.memory();
        println!("{name}: {sums}; {now} KiB, at most {most}");
        check::balance(name, &sums, self.asked.read_and_left(), &page);
        if is_owned {
            check::table(name, &page);
        }
        sums
    }
}

/// The configuration of a caller's sidecar.
fn caller(mode: &str, app: SocketAddr, instances: &[SocketAddr]) -> String {
    let instances: Vec<_> = instances.iter().map(|address| format!("\"{address}\"")).collect();
    let instances = instances.join(", ");
    // YAML 1.1 reads a bare `off` as a boolean.
    format!(
        "service: caller\nmode: \"{mode}\"\n\
         inbound: {{listen: \"127.0.0.1:0\", app: \"{app}\"}}\n\
         callees:\n  peer: {{address: [{instances}], retry: {{{RETRY}}}}}\n  \
         ledger: {{address: [{instances}], retry: {{{RETRY}, {UNSENT}}}}}\n"
    )
}
