//! The applications of all services: one server, told by Envoy which of them a request is for.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use onus_conformance::TreeVector;
use onus_conformance::tree::{TreeEdge, What};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::config;
use crate::cast::{Client, Protocol};

/// What a node answers that fails, and what it answers where no policy covers its error.
const ORDINARY: u16 = 503;
const EXCLUDED: u16 = 501;

/// The applications of all services.
pub(super) struct Applications {
    address: SocketAddr,
    nodes: BTreeMap<String, Node>,
    handled: Mutex<BTreeMap<String, u64>>,
    outbound: OnceLock<BTreeMap<String, SocketAddr>>,
    client: Client,
}

/// A service, and the tree that it is in.
struct Node {
    name: String,
    tree: TreeVector,
}

impl Applications {
    /// Applications that are served as long as the runtime lives.
    pub(super) async fn start(trees: Vec<TreeVector>) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut nodes = BTreeMap::new();
        for tree in trees {
            for name in tree.calls().keys() {
                let node = Node { name: (*name).to_owned(), tree: tree.clone() };
                nodes.insert(config::node(&tree, name), node);
            }
        }
        let applications = Arc::new(Self {
            address: listener.local_addr().unwrap(),
            nodes,
            handled: Mutex::default(),
            outbound: OnceLock::new(),
            client: Client::new(Protocol::Http1),
        });
        tokio::spawn(serve(listener, applications.clone()));
        applications
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Each calls through the listener that has its name.
    pub(super) fn call_through(&self, listener: impl Fn(&str) -> SocketAddr) {
        let outbound = self.nodes.keys().map(|node| (node.clone(), listener(node))).collect();
        self.outbound.set(outbound).unwrap();
    }

    /// The requests that a service has handled.
    pub(super) fn handled(&self, node: &str) -> u64 {
        self.handled.lock().unwrap().get(node).copied().unwrap_or(0)
    }

    async fn handle(self: Arc<Self>, id: &str, request: &HeaderMap) -> u16 {
        let number = {
            let mut handled = self.handled.lock().unwrap();
            let number = handled.entry(id.to_owned()).or_default();
            *number += 1;
            *number
        };
        let Node { name, tree } = &self.nodes[id];
        let happens = |what| tree.happens(what, name, number);
        let error = if happens(What::ExcludedError) { EXCLUDED } else { ORDINARY };
        if happens(What::FailsAtOnce) {
            return error;
        }
        let mut carried = HeaderMap::new();
        if let Some(state) = request.get("tracestate").filter(|_| !tree.node(name).context_lost) {
            carried.insert("tracestate", state.clone());
        }
        let parallel = tree.parallel.contains(name);
        let (mut calls, mut failed) = (JoinSet::new(), false);
        for to in &tree.calls()[name.as_str()] {
            calls.spawn(self.clone().call(id.to_owned(), tree.edge(name, to), carried.clone()));
            if !parallel {
                failed |= calls.join_next().await.unwrap().unwrap();
            }
            if failed {
                return error;
            }
        }
        while let Some(call) = calls.join_next().await {
            failed |= call.unwrap();
        }
        if failed || happens(What::Fails) { error } else { 200 }
    }

    /// Calls a callee; whether the caller fails for it.
    async fn call(self: Arc<Self>, id: String, edge: TreeEdge, mut headers: HeaderMap) -> bool {
        let tree = &self.nodes[&id].tree;
        let callee = HeaderValue::from_str(&config::node(tree, &edge.to)).unwrap();
        headers.insert(config::CALLEE, callee);
        let outbound = self.outbound.get().unwrap()[&id];
        for _ in 0..tree.node(&edge.from).tries.max(1) {
            let seen = self.client.send(outbound, &headers).await.unwrap();
            if !seen.failed() {
                return false;
            }
        }
        !edge.fail_open
    }
}

async fn serve(listener: TcpListener, applications: Arc<Applications>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let _ = stream.set_nodelay(true);
        let applications = applications.clone();
        let front = service_fn(move |request: Request<Incoming>| {
            let applications = applications.clone();
            async move {
                let headers = request.headers();
                let id = headers[config::NODE].to_str().unwrap();
                let mut response = Response::new(Empty::<Bytes>::new());
                *response.status_mut() = applications.handle(id, headers).await.try_into().unwrap();
                Ok::<_, Infallible>(response)
            }
        });
        connections.spawn(async move {
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), front).await;
        });
    }
}
