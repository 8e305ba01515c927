//! axum under the inbound layer, with a reqwest client in its state: what README promises.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use onus::{Onus, RetryPolicy};
use tokio::net::TcpListener;
use tower::{Layer, ServiceExt};

use super::peer::Peer;
use crate::cast::{Pieces, counted, said};

async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

#[derive(Clone)]
struct Payments {
    client: onus::reqwest::Client,
    url: String,
}

/// A handler that knows nothing of Onus.
async fn pay(State(payments): State<Payments>, Path(_): Path<u32>) -> Result<String, StatusCode> {
    let answer = payments.client.post(&payments.url).body("17 EUR").send().await;
    let answer = answer.map_err(|_| StatusCode::BAD_GATEWAY)?;
    match answer.error_for_status() {
        Ok(answer) => answer.text().await.map_err(|_| StatusCode::BAD_GATEWAY),
        Err(error) => Err(error.status().unwrap_or(StatusCode::BAD_GATEWAY)),
    }
}

#[tokio::test]
async fn a_service_passes_on_whose_error_it_is() {
    let fails_twice = |number, _: &_| {
        let status = if number < 2 { 503 } else { 200 };
        let answer = http::Response::builder().status(status);
        Some(answer.header("onus-claim", "claimed;reason=own").body(Pieces::sized("paid")).unwrap())
    };
    let peer = Peer::start(fails_twice).await;
    let policy = RetryPolicy::attempts(2).no_budget();
    let onus = Onus::builder("checkout").enforce().retry_procedure("payments", "POST", policy);
    let onus = onus.build().unwrap();
    let client = onus.outbound("payments").reqwest(reqwest::Client::new());
    let payments = Payments { client, url: peer.url("/charge") };
    let app = Router::new().route("/pay/{id}", post(pay)).with_state(payments);
    let address = serve(app.layer(onus.inbound())).await;

    let client = reqwest::Client::new();
    let url = format!("http://{address}/pay/17");
    let failed = client.post(&url).send().await.unwrap();
    assert_eq!(
        (failed.status().as_u16(), said(failed.headers())),
        (503, "unclaimed exhausted".into())
    );
    let paid = client.post(&url).send().await.unwrap();
    assert_eq!((paid.status().as_u16(), said(paid.headers())), (200, "nothing".into()));
    assert_eq!(paid.text().await.unwrap(), "paid");
    assert_eq!(peer.take().len(), 3);
    let labels = [("caller_method", "POST /pay/{id}"), ("callee_method", "POST")];
    assert_eq!(counted(&onus, "onus_calls_total", &labels), 2);
}

#[tokio::test]
async fn procedures_are_matched_paths() {
    // [term-1]
    async fn fails() -> StatusCode {
        StatusCode::INTERNAL_SERVER_ERROR
    }
    let onus = Onus::builder("checkout").build().unwrap();
    let nested = Router::new().route("/orders/{id}/items", get(fails));
    let routes = Router::new()
        .route("/pay/{id}", get(fails).post(fails))
        .route("/files/{*path}", get(fails))
        .nest("/v1", nested)
        .fallback(fails);
    let address = serve(routes.layer(onus.inbound())).await;
    for (method, path, procedure) in [
        ("GET", "/pay/17", "GET /pay/{id}"),
        ("GET", "/pay/18?of=EUR", "GET /pay/{id}"),
        ("POST", "/pay/17", "POST /pay/{id}"),
        ("GET", "/files/a/b", "GET /files/{*path}"),
        ("GET", "/v1/orders/17/items", "GET /v1/orders/{id}/items"),
        ("GET", "/nowhere/17", "GET"),
    ] {
        let labels = [("method", procedure), ("outcome", "error")];
        let before = counted(&onus, "onus_requests_total", &labels);
        let client = reqwest::Client::new();
        let request = client.request(method.parse().unwrap(), format!("http://{address}{path}"));
        let answer = request.send().await.unwrap();
        assert_eq!(said(answer.headers()), "claimed own", "{path}");
        let after = counted(&onus, "onus_requests_total", &labels);
        assert_eq!(after - before, 1, "{path}");
    }
}

#[tokio::test]
async fn the_layer_may_be_around_the_whole_router() {
    let onus = Onus::builder("checkout").build().unwrap();
    let app = Router::new().route("/", get(|| async { "fine" }));
    let app = onus.inbound().layer(app);
    let answer = ServiceExt::<Request>::oneshot(app, Request::default()).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}
