//! Sidecars that report to the dependency analysis: what it counts, hands back and orders.

use serde_json::Value;
use tokio::time::Instant;

use super::cast::process::until;
use super::cast::{Line, Sidecar, Stub, answers, lines, relay};
use crate::analysis::server::{Folder, Server, body};
use crate::analysis::tls::Authority;

/// Two services with their sidecars, one of which calls the other.
struct Mesh {
    caller: Sidecar,
    peer: Sidecar,
    /// The application of the peer.
    last: Stub,
    _relay: Stub,
}

impl Mesh {
    async fn start(server: &Server, more: &str) -> Self {
        // Reads are answered, other paths are not.
        let last = lines(|mut line| async move {
            while let Some(seen) = line.request().await {
                let status =
                    if seen.uri.path() == "/read" { "200 OK" } else { "503 Service Unavailable" };
                line.say(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n")).await;
            }
        })
        .await;
        let analysis = format!("analysis: {{url: \"{}\", {more}}}\n", server.url);
        let peer = Sidecar::start(&format!(
            "service: peer\nmode: enforce\n{analysis}\
             inbound: {{listen: \"127.0.0.1:0\", app: \"{}\"}}\n",
            last.address
        ))
        .await;
        let (relay, tell) = relay().await;
        let caller = Sidecar::start(&format!(
            "service: caller\nmode: enforce\n{analysis}\
             inbound: {{listen: \"127.0.0.1:0\", app: \"{}\"}}\n\
             callees: {{peer: {{address: \"{}\", retry: {{attempts: 2, no-budget: true, \
             no-gate: true, no-probes: true, backoff-base: 1ms, backoff-max: 2ms}}}}}}\n",
            relay.address, peer.inbound
        ))
        .await;
        tell.send_replace(Some(caller.outbound));
        Self { caller, peer, last, _relay: relay }
    }

    /// The status of each of so many requests.
    async fn ask(&self, path: &str, count: usize) -> Vec<u16> {
        let mut said = Vec::new();
        let mut line = Line::to(self.caller.inbound).await;
        for root in 1..=count {
            let trace = format!("traceparent: 00-{root:032x}-{root:016x}-01\r\n");
            line.say(format!("GET {path} HTTP/1.1\r\nhost: caller\r\n{trace}\r\n")).await;
            let head = line.head().await.expect("an answer");
            line.body(&head).await.expect("a whole one");
            said.push(head.status());
        }
        said
    }

    /// How many requests of its callers reach the application of the peer for so many.
    async fn reach(&self, path: &str, count: usize) -> usize {
        let before = self.last.seen().len();
        self.ask(path, count).await;
        self.last.seen().len() - before
    }
}

/// What the sidecar has counted of its calls: ok, failed, retries.
async fn own(sidecar: &Sidecar) -> [u64; 3] {
    let page = sidecar.metrics().await;
    let made = ["verdict=\"made\""];
    [
        page.sum("onus_calls_total", &["outcome=\"ok\""]),
        page.sum("onus_calls_total", &["outcome=\"error\""]),
        page.sum("onus_retries_total", &made),
    ]
}

/// What the analysis has counted of the calls of a service: ok, failed, retries.
pub(super) fn counted(server: &Server, caller: &str) -> [u64; 3] {
    let output = server.onus(&["edges", "--caller", caller, "-o", "json"]);
    let page: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let edges = page["edges"].as_array().cloned().unwrap_or_default();
    ["calls_ok", "calls_failed", "retries"]
        .map(|name| edges.iter().filter_map(|edge| edge["counts"][name].as_u64()).sum())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_analysis_counts_what_sidecars_count_and_hands_classes_back() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    let kept = folder.path().join("classes.json");
    let mesh = Mesh::start(&server, &format!("interval: 1s, state-file: {}", kept.display())).await;
    assert_eq!(mesh.ask("/read", 30).await, [200; 30]);
    assert_eq!(mesh.ask("/broken", 30).await, [503; 30]);
    let counts = own(&mesh.caller).await;
    assert_eq!(counts, [30, 30, 30]);
    until("it has counted all", async || counted(&server, "caller") == counts).await;
    // This process alone would have to wait for a minute.
    until("the class comes back", async || {
        let (_, edges) = mesh.caller.get("/api/v1/edges").await;
        let edges: Value = serde_json::from_str(&edges).expect("it is JSON");
        edges["edges"][0]["class"] == "fail-close"
    })
    .await;
    until("the class is on disk", async || {
        std::fs::read_to_string(&kept).is_ok_and(|text| text.contains("fail-close"))
    })
    .await;
    let page = mesh.caller.metrics().await;
    assert!(page.sum("onus_reports_total", &["result=\"stored\""]) > 0);
    assert_eq!(page.sum("onus_reports_total", &["result=\"refused\""]), 0);
    page.sum("onus_classes_age_seconds", &[]);
    // Both halves of an operator's screen know both services.
    let now = server.get("/api/v1/now").1;
    let now: Value = serde_json::from_str(body(&now)).expect("it is JSON");
    assert!(now.to_string().contains("peer"), "{now}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_counted_last_is_told_before_the_end() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    // Long before the next report is due.
    let mut mesh = Mesh::start(&server, "interval: 5m").await;
    assert_eq!(mesh.ask("/read", 7).await, [200; 7]);
    assert_eq!(counted(&server, "caller"), [0; 3]);
    mesh.caller.signal(rustix::process::Signal::TERM);
    assert_eq!(mesh.caller.ended().await, Some(0));
    assert_eq!(counted(&server, "caller"), [7, 0, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_to_the_analysis_hold_in_sidecars() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    let mesh = Mesh::start(&server, "interval: 1s").await;
    assert_eq!(mesh.reach("/broken", 5).await, 10, "each is tried twice");
    let order = |arguments: &[&str]| {
        let by = ["--reason", "db", "--who", "alice"];
        let output = server.onus(&[arguments, &by[..]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let since = Instant::now();
    order(&["shield", "peer", "--for", "2m"]);
    until("its callers retry no more", async || mesh.reach("/broken", 5).await == 5).await;
    assert!(since.elapsed().as_secs() < 15, "{:?}", since.elapsed());
    order(&["shield", "peer", "--end"]);
    until("they retry again", async || mesh.reach("/broken", 5).await == 10).await;
    order(&["off", "caller"]);
    until("the mode is off", async || mesh.caller.get("/api/v1/now").await.1.contains("\"off\""))
        .await;
    let peer = mesh.peer.get("/api/v1/now").await.1;
    assert!(!peer.contains("\"off\""), "{peer}");
}

#[tokio::test]
async fn an_analysis_that_never_answers_holds_up_an_end_for_seconds_only() {
    let silent = lines(|mut line| async move {
        line.request().await;
        std::future::pending::<()>().await;
    })
    .await;
    let app = answers("200 OK").await;
    let mut sidecar = Sidecar::start(&format!(
        "service: caller\nanalysis: {{url: \"http://{}\"}}\n\
         inbound: {{listen: \"127.0.0.1:0\", app: \"{}\"}}\ndrain: {{limit: 100ms}}\n",
        silent.address, app.address
    ))
    .await;
    assert_eq!(sidecar.get("/readyz").await.0, 200);
    let since = Instant::now();
    sidecar.signal(rustix::process::Signal::TERM);
    assert_eq!(sidecar.ended().await, Some(0));
    assert!(since.elapsed().as_secs() < 10, "{:?}", since.elapsed());
    let asked = silent.seen();
    assert!(asked.iter().any(|seen| seen.method == "POST"), "it has tried: {asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sidecars_say_by_a_token_or_a_certificate_for_whom_they_report() {
    let folder = Folder::new();
    let mesh = Authority::new(&folder, "mesh");
    mesh.sign("server", &["127.0.0.1"], None);
    mesh.sign("caller", &[], Some("spiffe://mesh/sa/caller"));
    let at = |name: &str| folder.path().join(name).display().to_string();
    let write = |name: &str, token: &str| {
        std::fs::write(folder.path().join(name), token).expect("it is written");
    };
    write("viewer", "viewer-0123456789");
    write("granted", "agents-0123456789");
    // Not the one that is granted, until somebody renews it.
    write("token", "before-0123456789\n");
    let more = format!(
        "tls: {{certificate: {}, key: {}, client-authorities: {}}}\n\
         grants:\n\
         - {{name: a, role: agent, services: [caller], certificate: \"spiffe://mesh/sa/caller\"}}\n\
         - {{name: b, role: agent, services: [other], token-file: {}}}\n\
         - {{name: c, role: viewer, token-file: {}}}\n",
        at("server.crt"),
        at("server.key"),
        at("mesh.pem"),
        at("granted"),
        at("viewer"),
    );
    let server = Server::start(&folder, "127.0.0.1:0", &more);
    let app = answers("200 OK").await;
    let sidecar = async |service: &str, more: &str| {
        Sidecar::start(&format!(
            "service: {service}\nmode: enforce\n\
             analysis: {{url: \"{}\", ca: {}, interval: 1s, {more}}}\n\
             inbound: {{listen: \"127.0.0.1:0\", app: \"{}\"}}\n\
             callees: {{peer: {{address: \"{}\"}}}}\n",
            server.url,
            at("mesh.pem"),
            app.address,
            app.address
        ))
        .await
    };
    let certificate = format!("certificate: {}, key: {}", at("caller.crt"), at("caller.key"));
    let caller = sidecar("caller", &certificate).await;
    let other = sidecar("other", &format!("token-file: {}", at("token"))).await;
    let known = |service: &str| {
        let authorities = at("mesh.pem");
        let identity = ["--token", "viewer-0123456789", "--authorities", &authorities];
        let arguments = ["edges", "--caller", service, "-o", "json"];
        let output = server.onus(&[&arguments[..], &identity[..]].concat());
        String::from_utf8_lossy(&output.stdout).contains("\"calls_ok\": 1")
    };
    for sidecar in [&caller, &other] {
        let mut line = Line::to(sidecar.outbound).await;
        line.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
        assert_eq!(line.head().await.expect("an answer").status(), 200);
    }
    until("the certificate is believed", async || known("caller")).await;
    until("the token is not", async || {
        other.metrics().await.sum("onus_reports_total", &["result=\"failed\""]) > 0
    })
    .await;
    assert!(!known("other"));
    write("token", "agents-0123456789\n");
    until("the renewed token is", async || known("other")).await;
}
