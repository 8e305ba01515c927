//! The API that operators talk to in each process with Onus.

use super::AGENT_OPENAPI;
use super::document::{Answer, Api, get, of, post};
use crate::{Orders, Snapshot, SwitchRequest};

#[test]
fn the_document_of_agents_is_that_of_their_types() {
    let plain = || Answer::Text("text/plain");
    let snapshot = || Answer::Json(of::<Snapshot>);
    let switch = "Throws a switch of this process.";
    let api = Api {
        title: "The admin service of Onus",
        about: "What one process sees, and its switches; for `onus now`, `shield` and `off` while \
                the analysis is down.",
        routes: Vec::from([
            get("/livez", "live", "The process runs.", plain()),
            get("/version", "version", "The version of Onus in it.", plain()),
            get("/openapi.json", "openapi", "This document.", Answer::Any),
            get(
                "/metrics",
                "metrics",
                "Its metrics.",
                Answer::Text("application/openmetrics-text"),
            ),
            get("/api/v1/now", "now", "What it has counted since its start.", snapshot()),
            get("/api/v1/orders", "orders", "What was switched here.", Answer::Json(of::<Orders>)),
            post("/api/v1/switch", "switch", switch, of::<SwitchRequest>, snapshot())
                .role("operator"),
        ]),
    };
    api.check("agent.json", AGENT_OPENAPI);
}
