//! The answer to come.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;

use super::body::InboundBody;
use super::served::Served;

pin_project! {
    /// The answer of an [`InboundService`](super::InboundService).
    pub struct InboundFuture<F> {
        #[pin]
        future: F,
        // Taken when the answer is there.
        served: Option<Served>,
    }
}

impl<F> InboundFuture<F> {
    pub(crate) fn new(future: F, served: Served) -> Self {
        Self { future, served: Some(served) }
    }
}

impl<F, R, E> Future for InboundFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body,
{
    type Output = Result<Response<InboundBody<R>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = match this.served {
            Some(served) => ready!(served.enter(|| this.future.poll(cx))),
            None => ready!(this.future.poll(cx)),
        };
        let served = this.served.take();
        Poll::Ready(match result {
            Ok(mut response) => {
                let mut served = served;
                if let Some(served) = &mut served {
                    served.head(response.status(), response.headers_mut());
                }
                Ok(response.map(|body| InboundBody::new(body, served)))
            }
            Err(error) => {
                if let Some(mut served) = served {
                    served.broken();
                }
                Err(error)
            }
        })
    }
}
