//! The response to come, after as many attempts as the decisions allow.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{HeaderMap, Request, Response};
use http_body::Body;
use onus_agent::classify::Answer;
use onus_agent::{CallError, Stop, Verdict};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::body::{Awaits, OutboundBody};
use super::call::Call;
use super::hop::{AttemptError, ClassifyError};
use super::peek::{Peek, Peeked};
use super::rest::Rest;
use super::start::Start;
use crate::answer;
use crate::clock::Timer;
use crate::onus::Onus;
use crate::replay::{Attempt, BoxError, ReplayBody};
use crate::told::told;

pin_project! {
    /// The response of an [`OutboundService`](super::OutboundService).
    pub struct OutboundFuture<S, C, B, R>
    where
        S: Service<Request<ReplayBody<B>>>,
        B: Body,
        R: Body,
    {
        #[pin]
        state: State<S::Future, R, B>,
        call: Call<S, C, B>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F, R, B>
    where
        R: Body,
    {
        /// The body is read before the call starts: it tells whether the call is a repeat.
        Reading { #[pin] body: ReplayBody<B>, timer: Option<Timer>, start: Option<Start>, onus: Onus },
        /// An attempt is under way.
        Sending { #[pin] future: F, timer: Option<Timer> },
        /// The outcome may be in the first frame behind the response head, which is held back.
        Peeking { peek: Box<Peek<R>> },
        /// The backoff before the attempt that sends `next`.
        Waiting { #[pin] rest: Rest<R>, sleep: Option<Timer>, next: Option<ReplayBody<B>> },
        /// The wait for the service below to take the attempt that sends `next`.
        Readying { timer: Option<Timer>, next: Option<ReplayBody<B>> },
        /// There is no time for an attempt.
        OutOfTime,
        Done,
    }
}

/// What an attempt without success came to.
enum Attempted<R: Body, E> {
    Failed(CallError, Response<R>),
    /// The response was looked into, and may have failed.
    Peeked(Peeked<R>),
    Error(E),
    TimedOut,
}

/// What follows.
#[expect(clippy::large_enum_variant, reason = "made and taken apart within one poll")]
enum Next<R: Body, E, B> {
    Finish(Result<Response<OutboundBody<R>>, E>),
    Wait { sleep: Option<Timer>, rest: Option<R>, next: ReplayBody<B> },
}

impl<S, C, B, R> OutboundFuture<S, C, B, R>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>>,
    B: Body,
    R: Body,
{
    /// A call whose first attempt is under way.
    pub(super) fn sending(future: S::Future, call: Call<S, C, B>) -> Self {
        let timer = call.timer();
        Self { state: State::Sending { future, timer }, call }
    }

    /// A call that starts when its body has been read.
    pub(super) fn reading(onus: Onus, start: Start, call: Call<S, C, B>) -> Self {
        let body = call.kept.as_ref().and_then(|kept| kept.tape.read_ahead().ok());
        let body = body.unwrap_or_else(|| ReplayBody::empty(Attempt::FIRST));
        let timer = start.latest(call.now()).and_then(|at| call.clock.timer(at));
        Self { state: State::Reading { body, timer, start: Some(start), onus }, call }
    }

    /// A call for which there is no time.
    pub(super) fn out_of_time(call: Call<S, C, B>) -> Self {
        Self { state: State::OutOfTime, call }
    }
}

impl<S, C, B, R> Future for OutboundFuture<S, C, B, R>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>>,
    C: ClassifyError<S::Error>,
    B: Body,
    B::Error: Into<BoxError>,
    R: Body,
{
    type Output = Result<Response<OutboundBody<R>>, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let mut this = self.as_mut().project();
            let call = this.call;
            let attempted = match this.state.as_mut().project() {
                StateProj::Sending { future, timer } => match future.poll(cx) {
                    Poll::Ready(Ok(mut response)) => match call.answer(&response) {
                        Answer::Failed(error) => Attempted::Failed(error, response),
                        answer @ (Answer::Ok | Answer::Pending) => {
                            let pending = answer == Answer::Pending;
                            if pending && let Some(timer) = call.peek_timer() {
                                let peek = Box::new(Peek::new(response, timer));
                                this.state.set(State::Peeking { peek });
                                continue;
                            }
                            this.state.set(State::Done);
                            let ended = response.body().is_end_stream();
                            let awaits = committed(call, response.headers_mut(), ended, pending);
                            let mut response = response.map(OutboundBody::new);
                            if let Some(awaits) = awaits {
                                response.body_mut().watch(call.watch(awaits));
                            }
                            return Poll::Ready(Ok(response));
                        }
                    },
                    // A service that keeps the same time may be the first to be asked.
                    Poll::Ready(Err(_)) if poll_timer(timer, cx).is_ready() => Attempted::TimedOut,
                    Poll::Ready(Err(error)) => Attempted::Error(error),
                    Poll::Pending => {
                        ready!(poll_timer(timer, cx));
                        Attempted::TimedOut
                    }
                },
                StateProj::Reading { body, timer, start, onus } => {
                    let broken = match read_to_end(body, cx) {
                        Poll::Ready(read) => read.err(),
                        // A body that is late is sent as it comes, and makes no repeat.
                        Poll::Pending => {
                            ready!(poll_timer(timer, cx));
                            None
                        }
                    };
                    let next = start.take().and_then(|start| call.begin(onus, start, broken));
                    this.state.set(match next {
                        Some(next) => State::Readying { timer: call.timer(), next: Some(next) },
                        None => State::OutOfTime,
                    });
                    continue;
                }
                StateProj::Peeking { peek } => Attempted::Peeked(ready!(peek.poll(cx))),
                StateProj::Waiting { rest, sleep, next } => {
                    rest.poll_drain(cx);
                    if let Some(sleep) = sleep {
                        ready!(sleep.as_mut().poll(cx));
                    }
                    let next = next.take();
                    this.state.set(State::Readying { timer: call.timer(), next });
                    continue;
                }
                StateProj::Readying { .. } if !call.may_send() => {
                    this.state.set(State::OutOfTime);
                    continue;
                }
                StateProj::Readying { timer, next } => {
                    let ready = call.poll_ready(cx);
                    if ready.is_pending() && poll_timer(timer, cx).is_pending() {
                        return Poll::Pending;
                    }
                    let (timer, next) = (timer.take(), next.take());
                    let Some((service, request)) = next.and_then(|body| call.request(body)) else {
                        return Poll::Pending;
                    };
                    match ready {
                        Poll::Ready(Ok(())) => {
                            let future = service.call(request);
                            this.state.set(State::Sending { future, timer });
                            continue;
                        }
                        Poll::Ready(Err(error)) => Attempted::Error(error),
                        Poll::Pending => Attempted::TimedOut,
                    }
                }
                StateProj::OutOfTime => {
                    let verdict = call.refuse(Stop::NoTime);
                    this.state.set(State::Done);
                    return Poll::Ready(Ok(timed_out(call, &verdict)));
                }
                StateProj::Done => panic!("a response future was polled after it was ready"),
            };
            match settle(call, attempted) {
                Next::Finish(result) => {
                    this.state.set(State::Done);
                    return Poll::Ready(result);
                }
                Next::Wait { sleep, rest, next } => {
                    let rest = Rest::new(rest);
                    this.state.set(State::Waiting { rest, sleep, next: Some(next) });
                }
            }
        }
    }
}

/// Books what a failed attempt came to and asks what follows.
fn settle<S, C, B, R>(
    call: &mut Call<S, C, B>,
    attempted: Attempted<R, S::Error>,
) -> Next<R, S::Error, B>
where
    S: Service<Request<ReplayBody<B>>, Response = Response<R>>,
    C: ClassifyError<S::Error>,
    B: Body,
    R: Body,
{
    match attempted {
        Attempted::Failed(error, response) => {
            let verdict = call.failed(error, Some(response.headers()));
            match call.go_on(verdict) {
                Ok((sleep, next)) => Next::Wait { sleep, rest: Some(response.into_body()), next },
                Err(verdict) => {
                    Next::Finish(Ok(failed(call, &verdict, response.map(OutboundBody::new))))
                }
            }
        }
        Attempted::Peeked(peeked) => {
            let failures = call.failures();
            let Some(error) = peeked.failure(&failures) else {
                let mut response = peeked.into_response();
                if let Some(awaits) = committed(call, response.headers_mut(), false, true) {
                    response.body_mut().watch(call.watch(awaits));
                }
                return Next::Finish(Ok(response));
            };
            let verdict = call.failed(error, peeked.trailers());
            match call.go_on(verdict) {
                Ok((sleep, next)) => Next::Wait { sleep, rest: None, next },
                Err(verdict) => Next::Finish(Ok(failed(call, &verdict, peeked.into_response()))),
            }
        }
        Attempted::Error(error) => {
            let classified = told(|| call.classify.classify(&error));
            let verdict = match classified.unwrap_or(AttemptError::Failed(CallError::Reset)) {
                AttemptError::Failed(error) => call.failed(error, None),
                AttemptError::Refused => call.refuse(Stop::Gated),
            };
            match call.go_on(verdict) {
                Ok((sleep, next)) => Next::Wait { sleep, rest: None, next },
                Err(_) => Next::Finish(Err(error)),
            }
        }
        Attempted::TimedOut => {
            let verdict = call.failed(CallError::Timeout, None);
            match call.go_on(verdict) {
                Ok((sleep, next)) => Next::Wait { sleep, rest: None, next },
                Err(verdict) => Next::Finish(Ok(timed_out(call, &verdict))),
            }
        }
    }
}

/// Books a response that goes to the application: as the call's outcome, or before it where that is
/// `pending` until the trailers. Returns what watches over the body; `None` where it has `ended`,
/// and with it the call.
#[inline]
fn committed<S, C, B: Body>(
    call: &mut Call<S, C, B>,
    headers: &mut HeaderMap,
    ended: bool,
    pending: bool,
) -> Option<Awaits> {
    let clock = call.clock;
    let over = !pending && ended;
    if let Some(outbound) = call.outbound() {
        if !pending {
            outbound.ok(over, || clock.now());
        }
        outbound.hide_from_application(headers);
    }
    if pending {
        // It may still fail, and be repeated.
        call.note_digest();
    }
    call.release();
    match (pending, ended) {
        (true, _) => Some(Awaits::Trailers),
        (false, false) => Some(Awaits::End),
        // A call that is over ends with this future.
        (false, true) => None,
    }
}

/// An error that goes to the application.
fn failed<S, C, B: Body, R: Body>(
    call: &mut Call<S, C, B>,
    verdict: &Verdict,
    mut response: Response<OutboundBody<R>>,
) -> Response<OutboundBody<R>> {
    if let Some(outcome) = call.outcome(verdict) {
        response.extensions_mut().insert(outcome);
    }
    call.release();
    if let Some(outbound) = call.outbound() {
        outbound.hide_from_application(response.headers_mut());
    }
    response.body_mut().watch(call.watch(Awaits::Nothing));
    response
}

/// The layer's own answer where the callee gave none in time: 504, for gRPC status 4.
fn timed_out<S, C, B: Body, R: Body>(
    call: &mut Call<S, C, B>,
    verdict: &Verdict,
) -> Response<OutboundBody<R>> {
    let mut response = answer::out_of_time(call.kind, OutboundBody::empty());
    if let Some(outcome) = call.outcome(verdict) {
        response.extensions_mut().insert(outcome);
    }
    response
}

/// Reads a body for its digest. One that breaks has none, and breaks again for its first attempt.
fn read_to_end<B>(
    mut body: Pin<&mut ReplayBody<B>>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), BoxError>>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    while let Some(frame) = ready!(body.as_mut().poll_frame(cx)) {
        frame?;
    }
    Poll::Ready(Ok(()))
}

/// Ready when the timer is; never without one.
fn poll_timer(timer: &mut Option<Timer>, cx: &mut Context<'_>) -> Poll<()> {
    match timer {
        Some(timer) => timer.as_mut().poll(cx),
        None => Poll::Pending,
    }
}
