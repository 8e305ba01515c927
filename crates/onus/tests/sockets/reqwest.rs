//! A wrapped reqwest client does what the client alone does, and retries beside it.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use onus::{CallOutcome, ErrorSet, Onus, OnusBuilder, RetryPolicy};
use reqwest::{Body, redirect};

use super::peer::{Answers, Peer};
use crate::cast::{Piece, Pieces, counted};

/// What a call came to: the answer as the application sees it, and the requests as the peer did.
#[derive(Debug, PartialEq)]
struct Seen {
    answer: String,
    requests: Vec<String>,
}

fn show_request(request: &Request<Bytes>) -> String {
    let mut headers: Vec<_> = request
        .headers()
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    headers.sort();
    let (method, uri, body) = (request.method(), request.uri(), request.body());
    format!("{method} {uri} {headers:?} {} bytes, {:?}", body.len(), body.first())
}

async fn show_answer(answer: Result<reqwest::Response, reqwest::Error>) -> String {
    let response = match answer {
        Ok(response) => response,
        Err(error) => return show_error(&error),
    };
    let head = format!(
        "{} {} {:?} {:?} {:?} {:?}",
        response.status(),
        response.url(),
        response.version(),
        response.content_length(),
        response.headers().get("x-own"),
        response.remote_addr(),
    );
    match response.bytes().await {
        Ok(body) => format!("{head} {body:?}"),
        Err(error) => format!("{head} {}", show_error(&error)),
    }
}

fn show_error(error: &reqwest::Error) -> String {
    let kinds = [
        ("timeout", error.is_timeout()),
        ("connect", error.is_connect()),
        ("request", error.is_request()),
        ("body", error.is_body()),
        ("decode", error.is_decode()),
        ("redirect", error.is_redirect()),
        ("builder", error.is_builder()),
    ];
    let kinds: Vec<_> = kinds.iter().filter(|(_, is)| *is).map(|(kind, _)| *kind).collect();
    format!("{error} {kinds:?}")
}

/// The same request through a client, and through the wrapped client where the hop may not retry
/// and where it may, though none of the errors here.
async fn both(answers: Answers, make: impl Fn(&reqwest::Client, &Peer) -> reqwest::RequestBuilder) {
    let peer = Peer::start(answers).await;
    let client = client();
    let alone = Seen {
        answer: show_answer(make(&client, &peer).send().await).await,
        requests: peer.take().iter().map(show_request).collect(),
    };
    let may_retry = |b: OnusBuilder| {
        let policy = RetryPolicy::attempts(2).unsafe_methods().errors(ErrorSet::EMPTY);
        b.retry("peer", policy)
    };
    for configure in [|b: OnusBuilder| b, may_retry] {
        let onus = configure(Onus::builder("checkout").enforce()).build().unwrap();
        let wrapped = onus.outbound("peer").reqwest(client.clone());
        let answer = match make(&client, &peer).build() {
            Ok(request) => wrapped.execute(request).await,
            Err(error) => Err(error),
        };
        let answer = show_answer(answer).await;
        let requests = peer.take().iter().map(show_request).collect();
        assert_eq!(Seen { answer, requests }, alone);
    }
}

fn client() -> reqwest::Client {
    reqwest::Client::builder().redirect(redirect::Policy::limited(3)).no_proxy().build().unwrap()
}

fn answer(status: u16) -> http::response::Builder {
    Response::builder().status(status).header("x-own", "1")
}

fn ok(_: usize, _: &Request<Bytes>) -> Option<Response<Pieces>> {
    Some(answer(200).body(Pieces::sized("fine")).unwrap())
}

fn chunked() -> Body {
    Body::wrap(Pieces::chunked(3, 100))
}

#[tokio::test]
async fn requests_are_sent_as_without_the_layer() {
    both(ok, |client, peer| client.get(peer.url("/a?b=c#d"))).await;
    both(ok, |client, peer| client.head(peer.url("/"))).await;
    both(ok, |client, peer| client.delete(peer.url("/"))).await;
    both(ok, |client, peer| client.post(peer.url("/"))).await;
    both(ok, |client, peer| client.post(peer.url("/")).body("")).await;
    both(ok, |client, peer| client.post(peer.url("/")).body("17 EUR")).await;
    both(ok, |client, peer| client.put(peer.url("/")).body(vec![7; 200_000])).await;
    both(ok, |client, peer| client.patch(peer.url("/")).body(chunked())).await;
    both(ok, |client, peer| client.get(peer.url("/")).body("a body")).await;
    both(ok, |client, peer| {
        let sized = Body::wrap(Pieces::sized("17 EUR"));
        client.post(peer.url("/")).body(sized)
    })
    .await;
    both(ok, |client, peer| {
        let request = client.get(peer.url("/")).basic_auth("ann", Some("secret"));
        request.header("accept", "text/plain").header("accept", "text/html")
    })
    .await;
    both(ok, |client, peer| client.get(peer.url("/").replace("//", "//ann:secret@"))).await;
}

#[tokio::test]
async fn answers_come_as_without_the_layer() {
    let streams: Answers = |_, _| {
        let pieces = [Piece::data("part"), Piece::data(" and part")];
        Some(answer(200).body(Pieces::new(pieces)).unwrap())
    };
    both(streams, |client, peer| client.get(peer.url("/"))).await;
    let missing: Answers = |_, _| Some(answer(404).body(Pieces::empty()).unwrap());
    both(missing, |client, peer| client.get(peer.url("/"))).await;
    let fails: Answers = |_, _| Some(answer(503).body(Pieces::sized("sorry")).unwrap());
    both(fails, |client, peer| client.post(peer.url("/")).body("17 EUR")).await;
    let breaks: Answers = |_, _| {
        // The head leaves before the body breaks.
        let pause = Piece::Wait(Duration::from_millis(10));
        let pieces = [Piece::data("part"), pause, Piece::Break];
        Some(answer(200).body(Pieces::new(pieces)).unwrap())
    };
    both(breaks, |client, peer| client.get(peer.url("/"))).await;
}

#[tokio::test]
async fn redirects_are_followed_as_without_the_layer() {
    let moved: Answers = |_, request| {
        let status = match request.uri().path() {
            "/303" => 303,
            "/307" => 307,
            "/308" => 308,
            "/loop" => 302,
            _ => return Some(answer(200).body(Pieces::sized("there")).unwrap()),
        };
        let to = if status == 302 { "/loop" } else { "/there" };
        Some(answer(status).header("location", to).body(Pieces::empty()).unwrap())
    };
    for path in ["/303", "/307", "/308", "/loop"] {
        both(moved, |client, peer| client.get(peer.url(path))).await;
        both(moved, |client, peer| client.post(peer.url(path)).body("17 EUR")).await;
        both(moved, |client, peer| client.post(peer.url(path)).body(chunked())).await;
    }
}

#[tokio::test]
async fn errors_are_reqwests_own() {
    let never: Answers = |_, _| None;
    let limit = Duration::from_millis(100);
    both(never, |client, peer| client.post(peer.url("/")).timeout(limit)).await;
    let half: Answers = |_, _| {
        let pieces = [Piece::data("part"), Piece::Hang];
        Some(answer(200).body(Pieces::new(pieces)).unwrap())
    };
    both(half, |client, peer| client.get(peer.url("/")).timeout(limit)).await;
    // Nobody listens on port 1, and these are no URLs to send a request to.
    both(ok, |client, _| client.post("http://127.0.0.1:1/")).await;
    both(ok, |client, _| client.get("ftp://127.0.0.1/")).await;
    both(ok, |client, _| client.get("no url")).await;
    both(ok, |client, peer| client.get(peer.url("/")).header("bad name", "x")).await;
}

/// A call on a hop that may retry: attempts as the peer saw them, and the outcome.
async fn retried(
    answers: Answers,
    policy: RetryPolicy,
    make: impl Fn(&onus::reqwest::Client, &Peer) -> onus::reqwest::RequestBuilder,
) -> (Vec<Request<Bytes>>, Result<reqwest::Response, reqwest::Error>) {
    let peer = Peer::start(answers).await;
    let policy = policy.no_budget().no_probes().unsafe_methods();
    let onus = Onus::builder("checkout").enforce().retry("peer", policy).build().unwrap();
    let wrapped = onus.outbound("peer").reqwest(client());
    let answer = make(&wrapped, &peer).send().await;
    (peer.take(), answer)
}

fn fails_once(number: usize, _: &Request<Bytes>) -> Option<Response<Pieces>> {
    let status = if number == 0 { 503 } else { 200 };
    let response = answer(status).header("onus-claim", "claimed;reason=own");
    Some(response.body(Pieces::sized("body")).unwrap())
}

#[tokio::test]
async fn bodies_are_sent_again_in_the_same_form() {
    let two = || RetryPolicy::attempts(2);
    let check = |requests: &[Request<Bytes>], body: &[u8]| {
        assert_eq!(requests.len(), 2);
        for request in requests {
            assert_eq!(request.headers()["content-length"], body.len().to_string());
            assert_eq!(&request.body()[..], body);
        }
    };
    let (requests, answer) =
        retried(fails_once, two(), |client, peer| client.post(peer.url("/charge")).body("17 EUR"))
            .await;
    check(&requests, b"17 EUR");
    assert_eq!(answer.unwrap().status(), 200);
    let (requests, _) =
        retried(fails_once, two(), |client, peer| client.put(peer.url("/")).body(chunked())).await;
    assert_eq!(requests[0].headers()["transfer-encoding"], "chunked");
    assert_eq!((requests.len(), requests[0].body().len()), (2, 300));
    assert_eq!(requests[0].body(), requests[1].body());
    let (requests, _) = retried(fails_once, two(), |client, peer| client.post(peer.url("/"))).await;
    assert!(requests.iter().all(|request| request.body().is_empty()));
    let numbers = requests.iter().map(|request| request.headers().contains_key("onus-attempt"));
    assert_eq!(numbers.collect::<Vec<_>>(), [false, true]);

    // Over the limit, in memory or not, a body is sent once.
    let (requests, answer) = retried(fails_once, two(), |client, peer| {
        client.post(peer.url("/")).body(vec![7; 100_000])
    })
    .await;
    assert_eq!((requests.len(), requests[0].body().len()), (1, 100_000));
    assert_eq!(requests[0].headers()["content-length"], "100000");
    let answer = answer.unwrap();
    let outcome = answer.extensions().get::<CallOutcome>().unwrap();
    assert_eq!(outcome.stop.as_str(), "not-replayable");
}

#[tokio::test]
async fn errors_are_told_apart_for_policies() {
    let policy = |error| RetryPolicy::attempts(2).errors([error].into_iter().collect());
    let limit = Duration::from_millis(100);
    let never: Answers = |_, _| None;
    for (error, sends) in [(onus::CallError::Timeout, 2), (onus::CallError::Reset, 1)] {
        let (requests, answer) = retried(never, policy(error), |client, peer| {
            client.post(peer.url("/")).body("17 EUR").timeout(limit)
        })
        .await;
        assert_eq!(requests.len(), sends, "{error:?}");
        assert!(answer.unwrap_err().is_timeout());
    }
    let peer = Peer::start(ok).await;
    let errors = policy(onus::CallError::Connect).no_budget().no_probes();
    let onus = Onus::builder("checkout").retry("peer", errors).build().unwrap();
    let wrapped = onus.outbound("peer").reqwest(client());
    assert!(wrapped.get("http://127.0.0.1:1/").send().await.unwrap_err().is_connect());
    assert_eq!(counted(&onus, "onus_retries_total", &[("verdict", "made")]), 1);
    assert_eq!(wrapped.get(peer.url("/")).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn the_layers_own_answer_has_the_url_of_the_request() {
    let never: Answers = |_, _| None;
    let policy = RetryPolicy::attempts(1).deadline(Duration::from_millis(100));
    let (requests, answer) =
        retried(never, policy, |client, peer| client.get(peer.url("/slow?a=b"))).await;
    let answer = answer.unwrap();
    assert_eq!((requests.len(), answer.status()), (1, StatusCode::GATEWAY_TIMEOUT));
    assert_eq!((answer.url().path(), answer.url().query()), ("/slow", Some("a=b")));
    assert!(answer.extensions().get::<CallOutcome>().is_some());
    assert_eq!(answer.bytes().await.unwrap(), "");
}

#[tokio::test]
async fn the_builder_reaches_all_of_reqwests_own() {
    let peer = Peer::start(ok).await;
    let onus = Onus::builder("checkout").build().unwrap();
    let wrapped = onus.outbound("peer").reqwest(client());
    let mut headers = http::HeaderMap::new();
    headers.insert("x-merged", "1".parse().unwrap());
    let request = wrapped
        .request(Method::OPTIONS, peer.url("/"))
        .procedure(onus::Procedure::route("/any/{thing}"))
        .header("x-one", "1")
        .headers(headers)
        .bearer_auth("token")
        .version(http::Version::HTTP_11)
        .timeout(Duration::from_secs(60))
        .map(|request| request.header("x-mapped", "1"));
    let copy = request.try_clone().unwrap();
    assert_eq!(copy.build().unwrap().headers()["x-mapped"], "1");
    assert_eq!(request.send().await.unwrap().status(), 200);
    let [seen] = &peer.take()[..] else { panic!("one request") };
    for name in ["x-one", "x-merged", "x-mapped"] {
        assert_eq!(seen.headers()[name], "1");
    }
    assert_eq!(seen.headers()["authorization"], "Bearer token");
    let labels = [("callee_method", "OPTIONS /any/{thing}")];
    assert_eq!(counted(&onus, "onus_calls_total", &labels), 1);
    for send in [
        wrapped.get(peer.url("/")),
        wrapped.put(peer.url("/")),
        wrapped.patch(peer.url("/")),
        wrapped.delete(peer.url("/")),
        wrapped.head(peer.url("/")),
    ] {
        send.send().await.unwrap();
    }
    let methods: Vec<_> = peer.take().iter().map(|seen| seen.method().to_string()).collect();
    assert_eq!(methods, ["GET", "PUT", "PATCH", "DELETE", "HEAD"]);
}
