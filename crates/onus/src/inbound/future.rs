//! The answer to come.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;

use super::body::InboundBody;
use super::served::Served;
use crate::clock::Timer;

pin_project! {
    /// The answer of an [`InboundService`](super::InboundService).
    pub struct InboundFuture<F> {
        #[pin]
        future: Option<F>,
        // The caller's deadline, where it said one.
        timer: Option<Timer>,
        // Taken when the answer is there.
        served: Option<Served>,
    }
}

impl<F> InboundFuture<F> {
    pub(crate) fn new(future: F, timer: Option<Timer>, served: Served) -> Self {
        Self { future: Some(future), timer, served: Some(served) }
    }
}

impl<F, R, E> Future for InboundFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body,
{
    type Output = Result<Response<InboundBody<R>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let (Some(future), Some(served)) =
            (this.future.as_mut().as_pin_mut(), this.served.as_mut())
        else {
            panic!("an answer was polled after it was ready");
        };
        let scope = served.enter();
        let mut polled = future.poll(cx);
        drop(scope);
        match &mut polled {
            Poll::Ready(Ok(response)) => served.head(response),
            Poll::Ready(Err(_)) => served.broken(),
            Poll::Pending => {
                let Some(timer) = this.timer else { return Poll::Pending };
                ready!(timer.as_mut().poll(cx));
                // What the handler still waits for is given up before the error is judged.
                let scope = served.enter();
                this.future.set(None);
                drop(scope);
                let answer = served.out_of_time();
                *this.served = None;
                return Poll::Ready(Ok(answer));
            }
        }
        let served = this.served.take().filter(Served::is_live);
        // The answer is large: it is moved once, to where it goes.
        polled.map_ok(|response| response.map(|body| InboundBody::new(body, served)))
    }
}
