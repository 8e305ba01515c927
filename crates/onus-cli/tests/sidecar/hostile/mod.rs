//! Clients that mean harm: they are refused and counted, memory stays where it is, and others are
//! served meanwhile.

mod attacker;
mod edge;
mod floods;
mod heads;
mod slow;

use super::cast::process::until;
use super::cast::{Neighbour, Page, Sidecar, Stub, answers};

/// A sidecar beside an application that answers at once, and a client that is served.
struct Scene {
    stub: Stub,
    sidecar: Sidecar,
    neighbour: Neighbour,
    before: u64,
}

impl Scene {
    /// `more` is more of the sidecar's configuration.
    async fn new(more: &str) -> Self {
        Self::of(answers("200 OK").await, more).await
    }

    async fn of(stub: Stub, more: &str) -> Self {
        let app = stub.address;
        let sidecar = Sidecar::start(&format!(
            "service: checkout\nmode: enforce\n\
             inbound: {{listen: \"127.0.0.1:0\", app: \"{app}\", protocol: http1}}\n\
             callees: {{peer: {{address: \"{app}\", protocol: http1}}}}\n{more}"
        ))
        .await;
        let neighbour = Neighbour::at(sidecar.inbound);
        let (before, _) = sidecar.memory();
        Self { stub, sidecar, neighbour, before }
    }

    /// What the sidecar has counted, once the neighbour was served and the memory looked at.
    async fn ends(self) -> Page {
        let served = self.neighbour.leaves().await;
        assert!(served > 0, "the neighbour was served");
        let (_, most) = self.sidecar.memory();
        let grown = most.saturating_sub(self.before);
        assert!(grown < GROWTH_MAX, "{grown} KiB more than {} KiB", self.before);
        until("nothing is left of requests", async || {
            self.sidecar.metrics().await.sum("onus_proxy_requests", &[]) == 0
        })
        .await;
        self.sidecar.metrics().await
    }
}

/// KiB by which a sidecar may grow that is under attack: some connections' buffers, and far less than
/// what is sent to it.
const GROWTH_MAX: u64 = 32 << 10;
