//! A service with Onus as a process of its own: this test binary, started once more.
//!
//! It serves `GET /`, answers it with an error of its own after `POST /break`, and calls another
//! process where it is told one. Operators talk to the other address that it prints.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use onus::report::Analysis;
use onus::{Onus, RetryPolicy};
use tokio::net::TcpListener;
use tower::ServiceExt;

use super::server::ask;

pub(crate) const TOKEN: &str = "a-token-of-the-mesh";

/// What a process is started with.
#[derive(Clone, Copy, Default)]
pub(crate) struct Setup<'a> {
    pub(crate) analysis: Option<&'a str>,
    /// The service that it calls for each request, and where that is.
    pub(crate) callee: Option<(&'a str, &'a str)>,
    pub(crate) switch_file: Option<&'a Path>,
}

/// A service that runs, and ends with the test.
pub(crate) struct Process {
    child: Child,
    /// Where it serves.
    pub(crate) url: String,
    /// Where operators talk to it.
    pub(crate) admin: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Process {
    pub(crate) fn start(name: &str, setup: Setup<'_>) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("it has a path"));
        command.args(["--exact", "analysis::process::run", "--nocapture"]);
        command.env("ONUS_TEST_SERVICE", name);
        if let Some(analysis) = setup.analysis {
            command.env("ONUS_TEST_ANALYSIS", analysis);
        }
        if let Some((callee, url)) = setup.callee {
            command.env("ONUS_TEST_CALLEE", format!("{callee} {url}"));
        }
        if let Some(path) = setup.switch_file {
            command.env("ONUS_TEST_SWITCH_FILE", path);
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it runs");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let addresses = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("serving at ")?.1.to_owned()))
            .expect("it says where it serves");
        std::thread::spawn(move || lines.for_each(drop));
        let (url, admin) = addresses.split_once(' ').expect("two addresses");
        Self { child, url: url.to_owned(), admin: admin.to_owned() }
    }

    /// The answer to a request, head and all.
    pub(crate) fn request(&self) -> String {
        ask(&self.url, "", "GET", "/", "").1
    }

    /// From now on it answers with errors of its own.
    pub(crate) fn fail(&self) {
        assert_eq!(ask(&self.url, "", "POST", "/break", "").0, 200);
    }
}

/// No test: it is the process of a service where a test has started it as one.
#[tokio::test(flavor = "multi_thread")]
async fn run() {
    let Ok(name) = std::env::var("ONUS_TEST_SERVICE") else { return };
    let callee = std::env::var("ONUS_TEST_CALLEE").ok();
    let callee = callee.as_deref().and_then(|it| it.split_once(' '));
    let mut builder = Onus::builder(&name);
    if let Some((callee, _)) = callee {
        builder = builder.retry(callee, RetryPolicy::attempts(2).no_budget());
    }
    let onus = builder.build().expect("the service is configured");
    if let Ok(analysis) = std::env::var("ONUS_TEST_ANALYSIS") {
        // The tasks end with the last handle of the service.
        let _ = onus.report_to(Analysis::at(analysis)).expect("the analysis is configured");
    }
    if let Ok(path) = std::env::var("ONUS_TEST_SWITCH_FILE") {
        tokio::spawn(onus.watch_switch_file(path));
    }
    let broken = Arc::new(AtomicBool::new(false));
    let http = Client::builder(TokioExecutor::new()).build_http();
    let outbound = callee.map(|(name, url)| (onus.outbound(name).hyper(http), url.to_owned()));
    let handler = {
        let broken = broken.clone();
        move |_: Request| {
            let (broken, outbound) = (broken.load(Ordering::Relaxed), outbound.clone());
            async move {
                if broken {
                    return StatusCode::INTERNAL_SERVER_ERROR.into_response();
                }
                let Some((outbound, url)) = outbound else { return "ok".into_response() };
                let request = http::Request::get(url).body(Full::<Bytes>::default());
                let answer = outbound.oneshot(request.expect("it is made")).await;
                let Ok(answer) = answer else { return StatusCode::BAD_GATEWAY.into_response() };
                let status = answer.status();
                let _ = answer.into_body().collect().await;
                status.into_response()
            }
        }
    };
    let breaks = move || {
        broken.store(true, Ordering::Relaxed);
        std::future::ready(StatusCode::OK)
    };
    let routes = Router::new().route("/", get(handler)).layer(onus.inbound());
    let routes = routes.route("/break", post(breaks));
    let admin = Router::new().fallback_service(onus.admin().token(TOKEN));
    let [serving, operated] =
        [TcpListener::bind("127.0.0.1:0").await, TcpListener::bind("127.0.0.1:0").await]
            .map(|bound| bound.expect("a port is free"));
    let [url, at] =
        [&serving, &operated].map(|listener| listener.local_addr().expect("it has an address"));
    println!("\nserving at http://{url} {at}");
    let (one, two) = tokio::join!(axum::serve(serving, routes), axum::serve(operated, admin));
    one.and(two).expect("it serves until it is killed");
}
