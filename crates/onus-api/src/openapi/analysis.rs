//! The API of the analysis.

use serde_json::json;

use super::ANALYSIS_OPENAPI;
use super::document::{Answer, Api, Route, get, of, post};
use crate::{
    Accepted, Audit, ClassPage, EdgePage, GraphPage, Incident, OrderRequest, Orders, OverrideDrop,
    OverrideRequest, OverridesPlan, OverridesRequest, RadiusPage, Report, Snapshot, Window,
};

const ELSEWHERE: (&str, &str) = ("307", "Another analysis has the callers of this service.");

#[test]
fn the_document_of_the_analysis_is_that_of_its_types() {
    let mut routes = health();
    routes.extend(of_agents());
    routes.extend(of_readers());
    routes.extend(of_operators());
    let api = Api {
        title: "The dependency analysis of Onus",
        about: "Counts of all processes in; classes, orders and figures of the mesh out. \
                A reader ignores fields that it does not know.",
        routes,
    };
    api.check("analysis.json", ANALYSIS_OPENAPI);
}

fn health() -> Vec<Route> {
    let open_metrics = Answer::Text("application/openmetrics-text");
    Vec::from([
        get("/livez", "live", "The process runs.", Answer::Text("text/plain")),
        get("/readyz", "ready", "Reports can be stored.", Answer::Text("text/plain")),
        get("/openapi.json", "openapi", "This document.", Answer::Any),
        get("/metrics", "metrics", "Counts of all callers, and the analysis' own.", open_metrics)
            .role("viewer"),
    ])
}

fn of_agents() -> Vec<Route> {
    let text = || json!({"type": "string"});
    let classes = get(
        "/api/v1/classes",
        "classes",
        "Classes and orders of a service.",
        Answer::Json(of::<ClassPage>),
    );
    let accepted = Answer::Json(of::<Accepted>);
    Vec::from([
        post("/api/v1/reports", "report", "Takes a report in.", of::<Report>, accepted)
            .role("agent")
            .also(&[ELSEWHERE]),
        classes
            .role("agent")
            .with("service", "query", "The caller of the edges.", true, text())
            .with("If-None-Match", "header", "The version that is known.", false, text())
            .with("Prefer", "header", "How long to wait for news: `wait=30`.", false, text())
            .also(&[("304", "Nothing has changed."), ELSEWHERE]),
    ])
}

fn of_readers() -> Vec<Route> {
    let edges = Answer::Json(of::<EdgePage>);
    let radius = Answer::Json(of::<RadiusPage>);
    let routes = [
        get("/api/v1/edges", "edges", "Edges with counts and classes.", edges)
            .text("caller", "Only the calls of this service.")
            .text("callee", "Only the calls to this service.")
            .number("from", "Counts of a window, such as that of an incident; with `to`.")
            .number("to", "Its end; now without it.")
            .number("after", "How many edges to leave out: `next` of the page before.")
            .number("limit", "The most edges of the page, up to 10,000."),
        get("/api/v1/now", "now", "How the mesh is.", Answer::Json(of::<Snapshot>)),
        get("/api/v1/graph", "graph", "Services and calls.", Answer::Json(of::<GraphPage>)),
        get("/api/v1/radius", "radius", "How far a retry storm may reach.", radius)
            .text("service", "Below this service, with advice."),
        get("/api/v1/incident", "incident", "A window of time.", Answer::Json(of::<Incident>))
            .number("from", "Its begin, in milliseconds since 1970; an hour ago without it.")
            .number("to", "Its end; now without it."),
        get("/api/v1/window", "window", "Its counts by pair.", Answer::Json(of::<Window>))
            .number("from", "Its begin, in milliseconds since 1970; an hour ago without it.")
            .number("to", "Its end; now without it."),
        get("/api/v1/orders", "orders", "All that operators say.", Answer::Json(of::<Orders>)),
        get("/api/v1/audit", "audit", "Who said what, newest first.", Answer::Json(of::<Audit>))
            .number("limit", "The most lines, up to 10,000."),
    ];
    routes.map(|route| route.role("viewer")).into()
}

fn of_operators() -> Vec<Route> {
    let orders = || Answer::Json(of::<Orders>);
    let store = Answer::Text("application/octet-stream");
    Vec::from([
        get("/api/v1/backup", "backup", "A copy of the store, as it is now.", store).role("admin"),
        post(
            "/api/v1/orders",
            "order",
            "Says a shield, or, as admin, a mode.",
            of::<OrderRequest>,
            orders(),
        )
        .role("operator")
        .also(&[ELSEWHERE]),
        post(
            "/api/v1/overrides",
            "override",
            "Says the class of edges.",
            of::<OverrideRequest>,
            orders(),
        )
        .role("operator")
        .also(&[ELSEWHERE]),
        post(
            "/api/v1/overrides/apply",
            "apply",
            "Says several at once, or, with dry_run, what that would change.",
            of::<OverridesRequest>,
            Answer::Json(of::<OverridesPlan>),
        )
        .role("viewer"),
        post(
            "/api/v1/overrides/drop",
            "drop",
            "Takes an override back.",
            of::<OverrideDrop>,
            orders(),
        )
        .role("operator"),
    ])
}
