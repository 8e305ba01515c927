//! Health probes that come in where requests do.

use tokio::net::TcpStream;

use super::admin::get;
use crate::cast::{Line, lines, proxy};

#[tokio::test]
async fn a_probe_whose_path_is_named_is_a_procedure_of_its_own() {
    let app = lines(|mut line| async move {
        while let Some(seen) = line.request().await {
            let status = if seen.uri.path() == "/healthz" { 503 } else { 200 };
            line.say(format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n")).await;
        }
    })
    .await;
    let proxy = proxy(&format!(
        "service: checkout\ninbound: {{listen: \"127.0.0.1:0\", app: \"{}\", routes: [/healthz]}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n",
        app.address
    ))
    .await;
    // A probe of the port says nothing, and is none of those that a client has broken.
    drop(TcpStream::connect(proxy.inbound()).await.unwrap());
    for path in ["/healthz", "/pay", "/healthz"] {
        let mut line = Line::to(proxy.inbound()).await;
        line.say(format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")).await;
        assert!(line.head().await.is_some());
    }
    let (_, _, metrics) = get(proxy.admin(), "/metrics").await;
    let clean = "onus_clean_requests_total{caller=\"checkout\",caller_method=";
    for series in [
        format!("{clean}\"GET /healthz\",outcome=\"error\"}} 2"),
        format!("{clean}\"GET\",outcome=\"ok\"}} 1"),
        format!("{clean}\"GET\",outcome=\"error\"}} 0"),
    ] {
        assert!(metrics.contains(&series), "{series} is not in\n{metrics}");
    }
    let broken = |line: &&str| line.starts_with("onus_proxy_client_errors_total{");
    assert!(metrics.lines().filter(broken).all(|line| line.ends_with(" 0")), "{metrics}");
}
