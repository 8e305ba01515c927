//! Questions over real sockets, to servers that do what servers do.

mod tls;

use std::error::Error;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use onus_promql::{Answer, AskError, Client, Endpoint, InvalidToken, Limits};

/// What the server does with the one request that it gets.
enum Script {
    /// Answers so.
    Answer(String),
    /// Reads, and says nothing until the client has gone.
    Silence,
    /// Answers so, and closes.
    Cut(&'static str),
}

/// A server for one request, which it hands back when it is joined.
fn server(script: Script) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("it has one");
    let thread = thread::spawn(move || {
        let (mut client, _) = listener.accept().expect("a client");
        let request = request(&mut client);
        match script {
            Script::Answer(answer) => {
                // The client may have heard enough before the end.
                let _ = client.write_all(answer.as_bytes());
            }
            Script::Silence => while client.read(&mut [0; 64]).is_ok_and(|read| read > 0) {},
            Script::Cut(bytes) => client.write_all(bytes.as_bytes()).expect("it listens"),
        }
        request
    });
    (address, thread)
}

/// Head and body.
fn request(client: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    loop {
        let mut more = [0; 4096];
        let read = client.read(&mut more).expect("the client writes");
        assert!(read > 0, "the client has gone after {bytes:?}");
        bytes.extend_from_slice(&more[..read]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if length.is_some_and(|length| length.parse() == Ok(body.len())) {
            return text;
        }
    }
}

fn answer(status: &str, body: &str) -> Script {
    let length = body.len();
    Script::Answer(format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}"))
}

fn ask(url: &str, limits: Limits) -> Result<Answer, AskError> {
    ask_with(&Client::new(Endpoint::new(url).expect("it is a URL"), limits))
}

fn ask_with(client: &Client) -> Result<Answer, AskError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(client.ask("sum(up{job=\"a b\"}) > 1", Some("1.5")))
}

const SHORT: Limits =
    Limits { connect: Duration::from_secs(5), answer: Duration::from_millis(200), bytes: 1 << 20 };
const LONG: Limits = Limits { answer: Duration::from_secs(60), ..SHORT };

const ONE: &str = r#"{"status":"success","data":{"resultType":"vector","result":[
    {"metric":{"a":"b"},"value":[1.5,"2"]}]}}"#;

#[test]
fn a_question_is_a_form_and_its_answer_is_read() {
    let (address, server) = server(answer("200 OK", ONE));
    let answer = ask(&format!("http://{address}/prom"), LONG).unwrap();
    assert_eq!((answer.samples[0].label("a"), answer.samples[0].value), ("b", 2.0));
    let request = server.join().unwrap();
    assert!(request.starts_with("POST /prom/api/v1/query HTTP/1.1\r\n"), "{request}");
    assert!(request.contains(&format!("host: {address}\r\n")), "{request}");
    let form = "query=sum%28up%7Bjob%3D%22a%20b%22%7D%29%20%3E%201&time=1.5";
    assert!(request.ends_with(form), "{request}");
}

#[test]
fn a_token_is_sent_and_shown_to_nobody() {
    let (address, server) = server(answer("200 OK", ONE));
    let endpoint = Endpoint::new(&format!("http://{address}")).unwrap();
    let client = Client::new(endpoint, LONG);
    assert_eq!(client.clone().token("line\nbreak").unwrap_err(), InvalidToken);
    let client = client.token("top-secret").unwrap();
    assert!(!format!("{client:?}").contains("top-secret"), "{client:?}");
    ask_with(&client).unwrap();
    let request = server.join().unwrap();
    assert!(request.contains("authorization: Bearer top-secret\r\n"), "{request}");
}

#[test]
fn an_answer_in_chunks_is_one_answer() {
    let (head, tail) = ONE.split_at(20);
    let script = Script::Answer(format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{head}\r\n{:x}\r\n{tail}\r\n0\r\n\r\n",
        head.len(),
        tail.len()
    ));
    let (address, server) = server(script);
    assert_eq!(ask(&format!("http://{address}"), LONG).unwrap().samples.len(), 1);
    server.join().unwrap();
}

#[test]
fn what_goes_wrong_is_told() {
    let refused = r#"{"status":"error","errorType":"execution","error":"too many samples"}"#;
    let large = format!("{{\"status\": \"{}\"}}", "a".repeat(2 << 20));
    for (script, expected) in [
        (
            answer("422 Unprocessable Entity", refused),
            "the server refuses the query: too many samples (execution)",
        ),
        (
            answer("200 OK", "<html>"),
            "the answer is not Prometheus's: expected value at line 1 column 1",
        ),
        (answer("401 Unauthorized", "who are you"), "the server answers 401 Unauthorized"),
        (answer("502 Bad Gateway", ""), "the server answers 502 Bad Gateway"),
        (
            answer("200 OK", &large),
            "the answer is larger than 1 MiB; ask for less, as for fewer labels",
        ),
        (
            Script::Answer(
                "HTTP/1.1 302 Found\r\nlocation: http://login/\r\ncontent-length: 0\r\n\r\n".into(),
            ),
            "the server sends to http://login/; give that address",
        ),
        (Script::Silence, "no answer within 0.2 s"),
        (
            Script::Cut("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"),
            "the connection broke before the answer was there",
        ),
        (Script::Cut(""), "the connection broke before the answer was there"),
        (
            Script::Cut("SSH-2.0-OpenSSH_9.2\r\n"),
            "the connection broke before the answer was there",
        ),
    ] {
        let limits = if matches!(script, Script::Silence) { SHORT } else { LONG };
        let (address, server) = server(script);
        let error = ask(&format!("http://{address}"), limits).unwrap_err();
        assert_eq!(error.to_string(), expected);
        server.join().unwrap();
    }
}

#[test]
fn nobody_there_is_told_with_the_address() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("it has one");
    drop(listener);
    let error = ask(&format!("http://{address}"), LONG).unwrap_err();
    assert_eq!(error.to_string(), format!("connect to {address}"));
    assert!(
        error.source().is_some_and(|source| source.to_string().contains("refused")),
        "{error:?}"
    );
}
