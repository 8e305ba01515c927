//! A tree of services: each node is the inbound layer around a handler, whose clients are the
//! outbound layer around the nodes that it calls.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::BodyExt;
use onus::replay::ReplayBody;
use onus::{CallError, CalleeClaim, EdgeClass, ErrorSet, Mode, Onus, OutboundService, RetryPolicy};
use onus::{Source, Switches};
use onus_agent::wire::ClaimHeaders;
use onus_conformance::step::ModeName;
use onus_conformance::tree::{Node, RetriesBy, TreeAnswer, TreeEdge, What};
use onus_conformance::{Counts, TreeVector, Unsupported};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::cast::{Broken, Pieces};

/// Runs the tree, in virtual time.
pub(super) async fn run(vector: &TreeVector) -> Result<Counts, Unsupported> {
    let root = vector.root().ok_or("needs one root")?;
    let mut forest = Forest {
        vector: Arc::new(vector.clone()),
        handled: Arc::default(),
        nodes: BTreeMap::new(),
    };
    let serve = forest.node(root);
    let mut answer = None;
    for _ in 0..vector.runs {
        let head = Request::get("/").body(()).unwrap().into_parts().0;
        answer = Some(match serve(head).await {
            Ok(reply) => read(&reply),
            Err(Broken(_)) => TreeAnswer::Error(CalleeClaim::Silent),
        });
    }
    let requests = forest.handled.lock().unwrap().clone();
    Ok(Counts { requests, answer })
}

fn read(reply: &Response<Pieces>) -> TreeAnswer {
    match reply.status().is_server_error() {
        true => TreeAnswer::Error(ClaimHeaders::default().read(reply.headers()).callee_claim()),
        false => TreeAnswer::Ok,
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Pieces>, Broken>> + Send>>;

/// What a node does with a request.
type Serve = Arc<dyn Fn(Parts) -> Answer + Send + Sync>;

/// One logical call of a handler; whether it is answered in the end.
type Call = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = bool> + Send>> + Send + Sync>;

type Handled = Arc<Mutex<BTreeMap<String, u64>>>;

/// The nodes that have been built.
struct Forest {
    vector: Arc<TreeVector>,
    handled: Handled,
    nodes: BTreeMap<String, Serve>,
}

impl Forest {
    fn node(&mut self, name: &str) -> Serve {
        if let Some(node) = self.nodes.get(name) {
            return node.clone();
        }
        let vector = self.vector.clone();
        let node = vector.node(name);
        let names = vector.calls()[name].clone();
        let callees: Vec<_> = names.iter().map(|to| vector.edge(name, to)).collect();
        let onus = node.onus.then(|| onus(name, &node, &callees));
        let calls = callees.iter().map(|edge| {
            let below = Below::new(&node, edge, self.node(&edge.to));
            (edge.fail_open, call(onus.as_ref(), edge, below))
        });
        let calls = calls.collect();
        let handler = Handler { vector: vector.clone(), name: name.to_owned(), node, calls };
        let serve = serve(Arc::new(handler), onus, self.handled.clone());
        self.nodes.insert(name.to_owned(), serve.clone());
        serve
    }
}

/// The service's Onus, configured as the vector says.
fn onus(name: &str, node: &Node, callees: &[TreeEdge]) -> Onus {
    let mut builder = Onus::builder(name).replay_limits(0, 0).mode(match node.mode {
        ModeName::Off => Mode::Off,
        ModeName::Observe => Mode::Observe,
        ModeName::Enforce => Mode::ENFORCE,
    });
    if node.silent_claims {
        builder = builder.silent_claims();
    }
    for edge in callees {
        let attempts = edge.attempts.unwrap_or(0);
        builder = match (attempts, node.retries) {
            (..2, _) => builder,
            (_, RetriesBy::Onus) => builder.retry(&edge.to, policy(attempts, edge.budget_percent)),
            (_, RetriesBy::BlindLayer | RetriesBy::ObedientLayer) => {
                builder.declared_retries(&edge.to, attempts, ErrorSet::FAILURES)
            }
        };
        builder = match edge.held {
            Some(class @ (EdgeClass::FailClose | EdgeClass::FailOpen)) => {
                builder.override_class(&edge.to, class)
            }
            Some(EdgeClass::Unknown) | None => builder,
        };
    }
    let onus = builder.build().unwrap();
    if node.shield {
        let shield = Some(Duration::from_secs(900));
        onus.switch(Source::Admin, &Switches { shield, ..Switches::default() });
    }
    onus
}

/// Without a wait, and but for the one error that no policy covers.
fn policy(attempts: u32, budget_percent: Option<u32>) -> RetryPolicy {
    let mut errors = ErrorSet::FAILURES;
    errors.remove(CallError::Http(EXCLUDED));
    let policy = RetryPolicy::articles(attempts).errors(errors).no_probes();
    let policy = policy.backoff(Duration::ZERO, Duration::ZERO);
    match budget_percent {
        Some(percent) => policy.budget_percent(percent).budget_min_per_second(0),
        None => policy.no_budget(),
    }
}

struct Handler {
    vector: Arc<TreeVector>,
    name: String,
    node: Node,
    /// The calls in their order, with whether the handler survives without each.
    calls: Vec<(bool, Call)>,
}

impl Handler {
    fn happens(&self, what: What, number: u64) -> bool {
        self.vector.happens(what, &self.name, number)
    }

    async fn answer(&self, number: u64) -> Response<Pieces> {
        let survives = !self.happens(What::FailsAtOnce, number) && self.call_all().await;
        let fails = !survives || self.happens(What::Fails, number);
        let status = match fails {
            false => 200,
            true if self.happens(What::ExcludedError, number) => EXCLUDED,
            true => ORDINARY,
        };
        Response::builder().status(status).body(Pieces::empty()).unwrap()
    }

    async fn call_all(&self) -> bool {
        if self.vector.parallel.contains(&self.name) {
            let calls = self.calls.iter().map(|(survives, call)| (*survives, self.start(call)));
            let mut all = true;
            for (survives, call) in calls.collect::<Vec<_>>() {
                all &= call.await.unwrap() || survives;
            }
            return all;
        }
        for (survives, call) in &self.calls {
            if !self.start(call).await.unwrap() && !survives {
                return false;
            }
        }
        true
    }

    /// Makes a call in a task of its own, which knows the request or does not.
    fn start(&self, call: &Call) -> tokio::task::JoinHandle<bool> {
        let (call, tries, drops) = (call.clone(), self.node.tries, self.node.drops);
        let in_a_row = async move {
            for _ in 0..tries {
                let answered = match drops {
                    true => tokio::time::timeout(PATIENCE, call()).await.unwrap_or(false),
                    false => call().await,
                };
                if answered {
                    return true;
                }
            }
            false
        };
        if self.node.context_lost { tokio::spawn(in_a_row) } else { onus::spawn(in_a_row) }
    }
}

/// The number of a request at its node, from 1.
#[derive(Clone, Copy)]
struct Number(u64);

/// The node as its callers reach it.
fn serve(handler: Arc<Handler>, onus: Option<Onus>, handled: Handled) -> Serve {
    let own = handler.clone();
    let service = service_fn(move |request: Request<Pieces>| {
        let handler = own.clone();
        let Number(number) = *request.extensions().get().unwrap();
        async move { Ok(handler.answer(number).await) }
    });
    let inbound = onus.map(|onus| onus.inbound().layer(service.clone()));
    Arc::new(move |mut head| {
        let number = {
            let mut handled = handled.lock().unwrap();
            let number = handled.entry(handler.name.clone()).or_default();
            *number += 1;
            *number
        };
        head.extensions.insert(Number(number));
        let request = Request::from_parts(head, Pieces::empty());
        let lost = handler.happens(What::NeverAnswers, number);
        let answer: Answer = match inbound.clone() {
            Some(inbound) => Box::pin(async {
                let answer = inbound.oneshot(request).await?;
                Ok(answer.map(|_| Pieces::empty()))
            }),
            None => Box::pin(service.clone().oneshot(request)),
        };
        Box::pin(async move {
            let answer = answer.await?;
            if lost { Err(Broken("closed without an answer")) } else { Ok(answer) }
        })
    })
}

/// One logical call of the handler to a callee.
fn call(onus: Option<&Onus>, edge: &TreeEdge, below: Below) -> Call {
    // Not even one byte may be kept, so that a body makes a request that cannot be sent again.
    let body = if edge.replayable { "" } else { "x" };
    let request = move || {
        let body = if body.is_empty() { Pieces::empty() } else { Pieces::sized(body) };
        Request::get("/").body(body).unwrap()
    };
    match onus {
        Some(onus) => {
            let client: OutboundService<Below> = onus.outbound(&edge.to).layer(below);
            Arc::new(move || {
                let call = client.clone().oneshot(request());
                Box::pin(async { call.await.is_ok_and(|reply| !is_error(&reply)) })
            })
        }
        None => Arc::new(move || {
            let call = below.clone().oneshot(request());
            Box::pin(async { call.await.is_ok_and(|reply| !is_error(&reply)) })
        }),
    }
}

fn is_error<B>(reply: &Response<B>) -> bool {
    reply.status().is_server_error()
}

/// What is between a service and its callee: a retry layer that knows nothing of Onus, or nothing.
#[derive(Clone)]
struct Below {
    attempts: u32,
    obeys: bool,
    /// Whether a lost answer is waited for in vain, until the handler gives up.
    hangs: bool,
    callee: Serve,
}

impl Below {
    fn new(node: &Node, edge: &TreeEdge, callee: Serve) -> Self {
        let attempts = match node.retries {
            RetriesBy::Onus => 1,
            RetriesBy::BlindLayer | RetriesBy::ObedientLayer => edge.attempts.unwrap_or(0).max(1),
        };
        let obeys = node.retries == RetriesBy::ObedientLayer;
        Self { attempts, obeys, hangs: node.drops, callee }
    }

    async fn attempts(self, head: Parts) -> Result<Response<Pieces>, Broken> {
        let mut reply = (self.callee)(head.clone()).await;
        for attempt in 2..=self.attempts {
            let vetoed = |headers: &HeaderMap| headers.contains_key("x-envoy-ratelimited");
            match &reply {
                Ok(answer) if !is_error(answer) => break,
                Ok(answer) if self.obeys && vetoed(answer.headers()) => break,
                Ok(_) | Err(Broken(_)) => {}
            }
            let mut again = head.clone();
            again.headers.insert("x-envoy-attempt-count", HeaderValue::from(attempt));
            reply = (self.callee)(again).await;
        }
        if self.hangs && reply.is_err() { std::future::pending().await } else { reply }
    }
}

impl Service<Request<ReplayBody<Pieces>>> for Below {
    type Response = Response<Pieces>;
    type Error = Broken;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReplayBody<Pieces>>) -> Answer {
        let (head, body) = request.into_parts();
        let below = self.clone();
        Box::pin(async {
            // A body that was read is a body that is gone.
            let _ = body.collect().await;
            below.attempts(head).await
        })
    }
}

impl Service<Request<Pieces>> for Below {
    type Response = Response<Pieces>;
    type Error = Broken;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Pieces>) -> Answer {
        Box::pin(self.clone().attempts(request.into_parts().0))
    }
}

/// What a node answers that fails, and what it answers where no policy covers its error.
const ORDINARY: u16 = 503;
const EXCLUDED: u16 = 501;

/// How long a handler waits that gives calls up.
const PATIENCE: Duration = Duration::from_secs(1);
