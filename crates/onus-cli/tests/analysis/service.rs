//! A service with Onus: it calls `payments`, without which it cannot answer, and `recs`, without
//! which it can.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use onus::report::{Analysis, Reporter};
use onus::{Onus, RetryPolicy};
use tower::{Layer, ServiceExt, service_fn};

/// A service and its connection to the analysis.
pub(crate) struct Service {
    pub(crate) onus: Onus,
    pub(crate) reporter: Reporter,
}

/// Which callee fails.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    Nothing,
    Payments,
    Recs,
    /// The service itself, which then calls nobody.
    Itself,
    /// `recs`, and the service itself beside it.
    RecsAndItself,
}

impl Service {
    pub(crate) fn start(name: &str, analysis: Analysis) -> Self {
        let onus = Onus::builder(name)
            .retry("payments", RetryPolicy::attempts(2).no_budget())
            .build()
            .expect("the service is configured");
        let reporter = onus.report_to(analysis).expect("the analysis is configured");
        Self { onus, reporter }
    }

    /// Serves a request, and says with what status.
    pub(crate) async fn serve(&self, broken: Broken) -> StatusCode {
        let [payments, recs] =
            [("payments", Broken::Payments), ("recs", Broken::Recs)].map(|(callee, when)| {
                let beside = broken == Broken::RecsAndItself && when == Broken::Recs;
                let fails = broken == when || beside;
                let answers = if fails { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
                self.onus.outbound(callee).layer(service_fn(move |_request| async move {
                    let answer = Response::builder().status(answers).body(Full::<Bytes>::default());
                    Ok::<_, Infallible>(answer.expect("the answer is made"))
                }))
            });
        let handler = service_fn(move |_request: Request<Full<Bytes>>| {
            let (payments, recs) = (payments.clone(), recs.clone());
            async move {
                if broken == Broken::Itself {
                    let answer = Response::builder().status(StatusCode::INTERNAL_SERVER_ERROR);
                    return Ok(answer.body(Full::default()).expect("the answer is made"));
                }
                let call = |path: &str| {
                    Request::get(path).body(Full::<Bytes>::default()).expect("a request")
                };
                let recs = recs.oneshot(call("/recs")).await.expect("recs answers");
                let _ = recs.into_body().collect().await;
                let payments = payments.oneshot(call("/rate")).await.expect("payments answers");
                let status = match broken {
                    Broken::RecsAndItself => StatusCode::INTERNAL_SERVER_ERROR,
                    Broken::Nothing | Broken::Payments | Broken::Recs | Broken::Itself => {
                        payments.status()
                    }
                };
                let _ = payments.into_body().collect().await;
                let answer = Response::builder().status(status).body(Full::<Bytes>::default());
                Ok::<_, Infallible>(answer.expect("the answer is made"))
            }
        });
        let request = Request::get("/").body(Full::default()).expect("a request");
        let answer = self.onus.inbound().layer(handler).oneshot(request).await.expect("it answers");
        let status = answer.status();
        let _ = answer.into_body().collect().await;
        status
    }
}
