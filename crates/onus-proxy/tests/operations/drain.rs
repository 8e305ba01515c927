//! A proxy that ends.

use std::sync::Arc;
use std::time::Duration;

use onus_proxy::{ConfigFile, Proxy, ProxyConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::admin::{ask, get, other_address};
use crate::cast::{Line, Stub, between, lines, proxy};

#[tokio::test]
async fn what_is_under_way_is_answered_and_the_application_goes_on_calling() {
    // S93 S94
    let release = Arc::new(Notify::new());
    let released = release.clone();
    let app = lines(move |mut line| {
        let released = released.clone();
        async move {
            while line.request().await.is_some() {
                released.notified().await;
                line.say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
            }
        }
    })
    .await;
    let callee = lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let proxy = between(app.address, &[callee.address], "").await;
    let (inbound, outbound, admin) = (proxy.inbound(), proxy.outbound(), proxy.admin());
    let mut request = Line::to(inbound).await;
    request.say("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let mut call = Line::to(outbound).await;
    while app.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    let drained = tokio::spawn(proxy.drain());
    let not_ready = async {
        while get(admin, "/readyz").await.0 == 200 {
            sleep(Duration::from_millis(1)).await;
        }
        // Nobody is accepted any more.
        while TcpStream::connect(inbound).await.is_ok() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), not_ready).await.expect("others see that it ends");
    call.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    let head = call.head().await.unwrap();
    assert_eq!((head.status(), head.headers.get("connection")), (200, None));
    release.notify_one();
    let head = request.head().await.unwrap();
    assert_eq!((head.status(), &head.headers["connection"]), (200, &"close".parse().unwrap()));
    assert_eq!(request.body(&head).await.unwrap().0, "ok");
    // The application may still make calls, on new connections too.
    let mut call = Line::to(outbound).await;
    call.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    assert_eq!(call.head().await.unwrap().status(), 200);
    assert!(!drained.is_finished(), "an application that calls is waited for");
    drop((app, call));
    let drained =
        timeout(Duration::from_secs(10), drained).await.expect("it ends with the application");
    assert!(drained.unwrap(), "nothing was cut off");
}

#[tokio::test]
async fn an_application_that_listens_nowhere_goes_on_calling() {
    // S94
    let release = Arc::new(Notify::new());
    let released = release.clone();
    let callee = lines(move |mut line| {
        let released = released.clone();
        async move {
            line.request().await;
            released.notified().await;
            line.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = between(nobody, &[callee.address], "").await;
    let (inbound, outbound) = (proxy.inbound(), proxy.outbound());
    let mut call = Line::to(outbound).await;
    call.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    while callee.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    let drained = tokio::spawn(drains(proxy));
    while TcpStream::connect(inbound).await.is_ok() {
        tokio::task::yield_now().await;
    }
    // One call after the other, each over a connection of its own.
    for _ in 0..50 {
        let mut next = Line::to(outbound).await;
        next.say("GET / HTTP/1.1\r\nhost: nobody\r\n\r\n").await;
        let head = next.head().await.expect("an answer");
        assert_eq!((head.status(), head.headers.get("connection")), (404, None));
    }
    release.notify_one();
    assert_eq!(call.head().await.expect("an answer").status(), 200);
    assert!(drained.await.unwrap(), "nothing was cut off");
}

#[tokio::test]
async fn a_sidecar_that_ends_alone_does_not_wait_for_its_limit() {
    let app = lines(|line| line.stays()).await;
    let proxy = between(app.address, &[app.address], "").await;
    // A client that holds an idle connection holds nobody up.
    let mut idle = Line::to(proxy.outbound()).await;
    idle.say("GET / HTTP/1.1\r\nhost: nobody\r\n\r\n").await;
    assert_eq!(idle.head().await.unwrap().status(), 404);
    let drained = timeout(Duration::from_secs(10), proxy.drain()).await;
    assert!(drained.expect("the limit is 25 s"), "nothing was cut off");
}

#[tokio::test]
async fn clients_that_say_nothing_or_half_of_it_hold_up_nobody() {
    let app = lines(|line| line.stays()).await;
    let address = app.address;
    let proxy = proxy(&format!(
        "service: checkout\ninbound: {{listen: \"127.0.0.1:0\", app: \"{address}\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n\
         limits: {{header-timeout: 100ms, idle-timeout: 1h}}\n"
    ))
    .await;
    let mut held = Vec::new();
    for said in ["", "P", "GET / HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut line = Line::to(proxy.inbound()).await;
        line.say(said).await;
        held.push(line);
    }
    let accepted = async {
        let text = "onus_proxy_connections{listener=\"inbound\"} 4";
        while !get(proxy.admin(), "/metrics").await.2.contains(text) {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), accepted).await.expect("all of them are accepted");
    let drained = timeout(Duration::from_secs(10), proxy.drain()).await;
    assert!(drained.expect("the limit is 25 s"), "nothing was cut off");
}

/// An application that answers at once, and a proxy beside it that ends like this.
async fn ending(drain: &str) -> (Stub, Proxy) {
    let app = lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let proxy = proxy(&yaml(&app, drain)).await;
    (app, proxy)
}

fn yaml(app: &Stub, drain: &str) -> String {
    format!(
        "service: checkout\ninbound: {{listen: \"127.0.0.1:0\", protocol: http1, app: \"{}\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\ndrain: {{{drain}}}\n",
        app.address
    )
}

/// A connection that had a request, and has none.
async fn used(proxy: &Proxy) -> Line {
    let mut line = Line::to(proxy.inbound()).await;
    line.say(REQUEST).await;
    let head = line.head().await.expect("an answer");
    assert_eq!((head.status(), head.headers.get("connection")), (200, None));
    line
}

/// Drains, and says whether all of it was in time; longer than that no test waits.
async fn drains(proxy: Proxy) -> bool {
    timeout(Duration::from_secs(10), proxy.drain()).await.expect("it ends")
}

const REQUEST: &str = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n";

#[tokio::test]
async fn a_connection_without_a_request_is_told_by_its_next_answer_that_it_ends() {
    // S93
    let (app, proxy) = ending("idle: 60s, limit: 60s").await;
    let (mut used, mut silent) = (used(&proxy).await, Line::to(proxy.inbound()).await);
    let (inbound, admin) = (proxy.inbound(), proxy.admin());
    let drained = tokio::spawn(drains(proxy));
    while get(admin, "/readyz").await.0 == 200 || TcpStream::connect(inbound).await.is_ok() {
        tokio::task::yield_now().await;
    }
    for line in [&mut used, &mut silent] {
        line.say(REQUEST).await;
        let head = line.head().await.expect("an answer");
        assert_eq!((head.status(), &head.headers["connection"]), (200, &"close".parse().unwrap()));
        line.gone().await;
    }
    assert!(drained.await.unwrap(), "nothing was cut off");
    assert_eq!(app.seen().len(), 3);
}

#[tokio::test]
async fn a_connection_that_stays_without_a_request_ends_after_a_while() {
    let (_app, proxy) = ending("idle: 50ms, limit: 60s").await;
    let (mut used, mut silent) = (used(&proxy).await, Line::to(proxy.inbound()).await);
    // Nor is a head that has begun cut off with those.
    let mut begun = Line::to(proxy.inbound()).await;
    begun.say(&REQUEST[..20]).await;
    let drained = tokio::spawn(drains(proxy));
    used.gone().await;
    silent.gone().await;
    begun.say(&REQUEST[20..]).await;
    let head = begun.head().await.expect("an answer");
    assert_eq!((head.status(), &head.headers["connection"]), (200, &"close".parse().unwrap()));
    assert!(drained.await.unwrap(), "nothing was cut off");
}

/// A client of HTTP/2 that says what is written here.
struct Http2(TcpStream);

/// A frame: its kind, the stream and what is in it.
type Frame = (u8, u32, Vec<u8>);

impl Http2 {
    async fn to(proxy: &Proxy) -> Self {
        let stream = TcpStream::connect(proxy.inbound()).await.expect("somebody listens");
        stream.set_nodelay(true).expect("it is a TCP stream");
        let mut client = Self(stream);
        client.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("it is there");
        client.send(SETTINGS, 0, 0, &[]).await;
        client
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let [_, length @ ..] = u32::try_from(payload.len()).expect("short").to_be_bytes();
        let head = [&length[..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.0.write_all(&[&head, payload].concat()).await.expect("it is there");
    }

    /// Sends a request and waits for its answer.
    async fn ask(&mut self, stream: u32) {
        self.send(HEADERS, END_STREAM | END_HEADERS, stream, GET).await;
        let (_, of, answer) = self.next(HEADERS).await.expect("an answer");
        assert_eq!((of, answer[0]), (stream, STATUS_200));
    }

    /// The next frame of this kind; `None` where the connection ends first.
    async fn next(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).await.ok()?;
            let [a, b, c, of, _, stream @ ..] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            self.0.read_exact(&mut payload).await.ok()?;
            if of == kind {
                return Some((of, u32::from_be_bytes(stream), payload));
            }
        }
    }

    /// The last stream that a GOAWAY names.
    async fn goaway(&mut self) -> u32 {
        let (_, _, payload) = self.next(GOAWAY).await.expect("it says that it ends");
        u32::from_be_bytes(payload[..4].try_into().expect("four bytes"))
    }
}

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// `GET http://a/` and `:status: 200` in HPACK.
const GET: &[u8] = b"\x82\x84\x86\x41\x01a";
const STATUS_200: u8 = 0x88;

#[tokio::test]
async fn a_client_of_http2_is_told_before_its_last_stream_is_named() {
    // S93, RFC 9113 6.8
    let (_app, proxy) = ending("idle: 60s, limit: 60s").await;
    let mut client = Http2::to(&proxy).await;
    client.ask(1).await;
    let drained = tokio::spawn(drains(proxy));
    assert_eq!(client.goaway().await, u32::MAX >> 1);
    let (_, _, ping) = client.next(PING).await.expect("it asks whether that was heard");
    // It was on its way.
    client.ask(3).await;
    client.send(PING, ACK, 0, &ping).await;
    assert_eq!(client.goaway().await, 3);
    assert!(client.next(HEADERS).await.is_none());
    assert!(drained.await.unwrap(), "nothing was cut off");
}

const DRAIN: &str = "POST /api/v1/drain HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n";

#[tokio::test]
async fn a_hook_begins_the_drain_and_the_application_goes_on_until_the_signal() {
    // S93 S94
    let (app, proxy) = ending("idle: 60s, limit: 60s").await;
    let (inbound, outbound, admin) = (proxy.inbound(), proxy.outbound(), proxy.admin());
    let mut used = used(&proxy).await;
    // A hook may be run again.
    for _ in 0..2 {
        assert_eq!(ask(admin, DRAIN).await.0, 202);
    }
    assert_eq!(get(admin, "/readyz").await.0, 503);
    assert!(get(admin, "/metrics").await.2.contains("onus_proxy_ready 0.0\n"));
    let closes = async {
        while TcpStream::connect(inbound).await.is_ok() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), closes).await.expect("nobody is accepted any more");
    used.say(REQUEST).await;
    let head = used.head().await.expect("an answer");
    assert_eq!((head.status(), &head.headers["connection"]), (200, &"close".parse().unwrap()));
    used.gone().await;
    // However long it calls nobody meanwhile, the application may still call.
    let mut call = Line::to(outbound).await;
    call.say("GET / HTTP/1.1\r\nhost: nobody\r\n\r\n").await;
    let head = call.head().await.expect("an answer");
    assert_eq!((head.status(), head.headers.get("connection")), (404, None));
    drop((app, call));
    assert!(drains(proxy).await, "nothing was cut off");
}

#[tokio::test]
async fn a_delay_that_a_hook_began_is_not_begun_again_by_the_signal() {
    let (app, proxy) = ending("delay: 50ms, idle: 1ms, limit: 60s").await;
    assert_eq!(ask(proxy.admin(), DRAIN).await.0, 202);
    // Callers are still on their way.
    assert_eq!(get(proxy.admin(), "/readyz").await.0, 503);
    let mut late = used(&proxy).await;
    late.gone().await;
    let longer = ConfigFile::parse(&yaml(&app, "delay: 1h, limit: 60s")).unwrap();
    proxy.reload(&ProxyConfig::new(longer).unwrap()).unwrap();
    assert!(drains(proxy).await, "nothing was cut off");
}

#[tokio::test]
async fn strangers_begin_no_drain() {
    let (_app, proxy) = ending("").await;
    let admin = proxy.admin();
    let page = DRAIN.replace("host: a", "host: a\r\norigin: http://page.example");
    for (request, status, says) in [
        (page, 403, "page"),
        (DRAIN.replace("POST", "GET"), 405, "allowed is POST"),
        (DRAIN.replace("POST", "PUT"), 405, "allowed is POST"),
    ] {
        let (got, _, text) = ask(admin, &request).await;
        assert_eq!(got, status, "{request} {text}");
        assert!(text.contains(says), "{request} {text}");
    }
    assert_eq!(get(admin, "/readyz").await.0, 200);
    let Some(other) = other_address() else {
        println!("skipped: strangers_begin_no_drain needs a network for its second half");
        return;
    };
    let proxy = crate::cast::proxy(
        "service: a\ninbound: {listen: \"127.0.0.1:0\", app: \"127.0.0.1:1\"}\n\
         outbound: {listen: \"127.0.0.1:0\"}\nadmin: {listen: \"0.0.0.0:0\"}\n",
    )
    .await;
    let there = std::net::SocketAddr::new(other, proxy.admin().port());
    assert_eq!(ask(there, DRAIN).await.0, 403);
    assert_eq!(get(there, "/readyz").await.0, 200);
}
