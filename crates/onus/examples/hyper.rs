//! hyper on both sides: a server under the inbound layer, a pooled client under the outbound one.
//!
//! ```sh
//! cargo run -p onus --example hyper --features hyper
//! curl -i localhost:3000/
//! ```

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use onus::{Onus, RetryPolicy};
use tower::{Layer, ServiceExt, service_fn};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt::init();

    let onus = Onus::builder("front").enforce().retry("back", RetryPolicy::attempts(2)).build()?;
    let pool = Client::builder(TokioExecutor::new()).build_http();
    let back = onus.outbound("back").hyper(pool);

    let handler = service_fn(move |_: Request<Incoming>| {
        let back = back.clone();
        async move {
            let call = Request::get("http://127.0.0.1:3001/").body(Empty::<Bytes>::new())?;
            // Where `back` gave no answer at all, this service has one nevertheless.
            let Ok(answer) = back.oneshot(call).await else {
                return Response::builder().status(502).body(Full::default());
            };
            let (status, body) = (answer.status(), answer.into_body().collect().await);
            let body = body.map_or_else(|_| Bytes::new(), |all| all.to_bytes());
            Response::builder().status(status).body(Full::new(body))
        }
    });
    let service = TowerToHyperService::new(onus.inbound().layer(handler));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    loop {
        let stream = TokioIo::new(listener.accept().await?.0);
        tokio::spawn(http1::Builder::new().serve_connection(stream, service.clone()));
    }
}
