//! An application that answers as its callee does, and hands on what tracing hands on.

use std::net::SocketAddr;

use tokio::sync::watch;

use super::{Line, Stub, lines};

/// The application; it calls `peer` through its sidecar, once it is told where that is.
pub(crate) async fn relay() -> (Stub, watch::Sender<Option<SocketAddr>>) {
    let (tell, told) = watch::channel(None::<SocketAddr>);
    let stub = lines(move |mut line| {
        let mut told = told.clone();
        async move {
            let mut call = None;
            while let Some(head) = line.head().await {
                let traced = head.lines.iter().filter(|field| field.starts_with("trace"));
                let traced: String = traced.map(|field| format!("{field}\r\n")).collect();
                let target = head.first.split(' ').nth(1).expect("a request has a target");
                let waited = told.wait_for(Option::is_some).await.map(|told| *told);
                let outbound = waited.ok().flatten().expect("it is told");
                let mut out = match call.take() {
                    Some(out) => out,
                    None => Line::to(outbound).await,
                };
                out.say(format!("GET {target} HTTP/1.1\r\nhost: peer\r\n{traced}\r\n")).await;
                let status = match out.head().await {
                    Some(head) if out.body(&head).await.is_some() => {
                        call = Some(out);
                        head.status()
                    }
                    Some(_) | None => 502,
                };
                line.say(format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n")).await;
            }
        }
    })
    .await;
    (stub, tell)
}
