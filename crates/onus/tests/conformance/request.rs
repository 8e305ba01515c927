//! A request being served, by a handler that does what it is told, when it is told.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use onus::inbound::InboundBody;
use onus::{InboundService, Onus};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tower::util::ServiceFn;
use tower::{Layer, ServiceExt, service_fn};

use crate::cast::Pieces;

/// What a handler is told to do.
enum Order {
    /// Something in the scope of the request.
    Do(Box<dyn FnOnce() + Send>),
    /// To answer so.
    Answer(Response<Pieces>),
}

type Handled = Pin<Box<dyn Future<Output = Result<Response<Pieces>, Infallible>> + Send>>;
type Handler = Box<dyn Fn(Request<Pieces>) -> Handled + Send + Sync>;

/// A request being served.
pub(super) struct Running {
    orders: UnboundedSender<Order>,
    answer: JoinHandle<Response<InboundBody<Pieces>>>,
}

impl Running {
    /// Lets a request arrive.
    pub(super) fn arrive(onus: &Onus, request: Request<Pieces>) -> Self {
        let (orders, obeyed) = unbounded_channel();
        let node = node(onus, obeyed);
        let answer = tokio::spawn(async {
            match node.oneshot(request).await {
                Ok(answer) => answer,
                Err(never) => match never {},
            }
        });
        Self { orders, answer }
    }

    /// Does something in the scope of the request; `false` where its handler is gone.
    pub(super) fn run(&self, run: impl FnOnce() + Send + 'static) -> bool {
        self.orders.send(Order::Do(Box::new(run))).is_ok()
    }

    /// Answers so.
    pub(super) async fn answer(self, answer: Response<Pieces>) -> Response<InboundBody<Pieces>> {
        let _ = self.orders.send(Order::Answer(answer));
        self.answer.await.unwrap()
    }

    /// The caller goes away.
    pub(super) fn cancel(self) {
        self.answer.abort();
    }
}

fn node(onus: &Onus, orders: UnboundedReceiver<Order>) -> InboundService<ServiceFn<Handler>> {
    let orders = Arc::new(Mutex::new(Some(orders)));
    let handler: Handler = Box::new(move |_| {
        let mut orders = orders.lock().unwrap().take().expect("one request for one handler");
        Box::pin(async move {
            loop {
                match orders.recv().await {
                    Some(Order::Do(run)) => run(),
                    Some(Order::Answer(answer)) => return Ok(answer),
                    None => std::future::pending().await,
                }
            }
        })
    });
    onus.inbound().layer(service_fn(handler))
}
