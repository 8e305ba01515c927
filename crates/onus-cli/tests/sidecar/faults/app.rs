//! An application whose every byte can go wrong, and what it has been asked.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

use super::load::answer_to;

/// What an instance does to its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Answer,
    /// It reads a request and resets the connection.
    Reset,
    /// It reads requests and says nothing.
    Nothing,
    /// The head of an answer comes in pieces.
    SlowHead,
    /// So does its body.
    SlowBody,
    /// It reads a request, sends nothing more, and leaves the connection open.
    HalfClose,
    /// It answers, and closes the connection without having said so.
    AnswerAndClose,
}

/// What all instances have been asked, by the numbers of requests.
#[derive(Clone, Default)]
pub(super) struct Asked(Arc<Mutex<HashMap<u64, Times>>>);

/// How often something happened to a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// It was read to its end.
    pub(super) read: u32,
    /// It was answered, to the end.
    pub(super) answered: u32,
    /// Its connection was ended instead.
    pub(super) torn: u32,
    /// Nothing was said to it.
    pub(super) ignored: u32,
}

impl Asked {
    pub(super) fn of(&self, number: u64) -> Times {
        let all = self.0.lock().expect("nobody panics here");
        all.get(&number).copied().unwrap_or_default()
    }

    /// How many requests were read, and left without an answer, each as often as it was.
    pub(super) fn read_and_left(&self) -> [u64; 2] {
        let all = self.0.lock().expect("nobody panics here");
        let sum = |of: fn(&Times) -> u32| all.values().map(|times| u64::from(of(times))).sum();
        [sum(|times| times.read), sum(|times| times.torn + times.ignored)]
    }

    fn note(&self, number: u64, note: impl FnOnce(&mut Times)) {
        note(self.0.lock().expect("nobody panics here").entry(number).or_default());
    }
}

/// An instance of the application.
pub(super) struct App {
    pub(super) address: SocketAddr,
    does: watch::Sender<Does>,
    asked: Asked,
    accepting: Option<JoinHandle<()>>,
}

impl App {
    pub(super) async fn start(asked: &Asked) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let does = watch::Sender::new(Does::Answer);
        let mut app = Self { address, does, asked: asked.clone(), accepting: None };
        app.revive().await;
        app
    }

    /// What it does from here on.
    pub(super) fn does(&self, does: Does) {
        self.does.send_replace(does);
    }

    /// As `kill -9`: its sockets are gone.
    pub(super) async fn kill(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            // Its sockets are closed when it has ended.
            let _ = accepting.await;
        }
    }

    /// Listens, where it did before.
    pub(super) async fn revive(&mut self) {
        let listener = TcpListener::bind(self.address).await.expect("the port is free");
        self.address = listener.local_addr().expect("it is bound");
        let (does, asked) = (self.does.subscribe(), self.asked.clone());
        self.accepting = Some(tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                // As real servers do; the last small packet would otherwise wait for an ack.
                stream.set_nodelay(true).expect("it is a TCP stream");
                connections.spawn(serve(stream, does.clone(), asked.clone()));
                while connections.try_join_next().is_some() {}
            }
        }));
    }
}

impl Drop for App {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
    }
}

async fn serve(stream: TcpStream, does: watch::Receiver<Does>, asked: Asked) {
    let mut stream = BufStream::new(stream);
    while let Some((path, number)) = request(&mut stream).await {
        asked.note(number, |times| times.read += 1);
        let does = *does.borrow();
        match does {
            Does::Reset => {
                asked.note(number, |times| times.torn += 1);
                let _ = stream.into_inner().set_zero_linger();
                return;
            }
            Does::Nothing => {
                asked.note(number, |times| times.ignored += 1);
                // Until the other end gives up.
                while stream.read_u8().await.is_ok() {}
                return;
            }
            Does::HalfClose => {
                asked.note(number, |times| times.torn += 1);
                let _ = stream.get_mut().shutdown().await;
                while stream.read_u8().await.is_ok() {}
                return;
            }
            Does::Answer | Does::SlowHead | Does::SlowBody | Does::AnswerAndClose => {}
        }
        let (head, body) = answer(&path, number);
        let head_pause = (does == Does::SlowHead).then_some(PAUSE);
        let body_pause = (does == Does::SlowBody).then_some(PAUSE);
        if say(&mut stream, head.as_bytes(), head_pause).await.is_err() {
            return;
        }
        // Before its last byte: whoever has that may look here.
        asked.note(number, |times| times.answered += 1);
        if say(&mut stream, body.as_bytes(), body_pause).await.is_err() {
            return;
        }
        if does == Does::AnswerAndClose {
            return;
        }
    }
}

/// Reads a request; its path and its number.
async fn request(stream: &mut BufStream<TcpStream>) -> Option<(String, u64)> {
    let (mut target, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        match &target {
            None => target = line.split(' ').nth(1).map(str::to_owned),
            Some(_) => {
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.parse().expect("a length is a number");
                }
            }
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let target = target.expect("a request has a first line");
    let (path, number) = target.split_once("?n=").expect("each request has its number");
    Some((path.to_owned(), number.parse().expect("it is one")))
}

/// What is answered to a request, by paths as [`super::load::Kind`] has them.
fn answer(path: &str, number: u64) -> (String, String) {
    let (status, more) = match path {
        "/closed" => ("503 Service Unavailable", "onus-claim: unclaimed\r\n"),
        "/missing" => ("404 Not Found", ""),
        _ => ("200 OK", ""),
    };
    let body = answer_to(number);
    (format!("HTTP/1.1 {status}\r\n{more}content-length: {}\r\n\r\n", body.len()), body)
}

/// Says this, where there is a pause in four pieces.
async fn say(
    stream: &mut BufStream<TcpStream>,
    bytes: &[u8],
    pause: Option<Duration>,
) -> std::io::Result<()> {
    let Some(pause) = pause else {
        stream.write_all(bytes).await?;
        return stream.flush().await;
    };
    for piece in bytes.chunks(bytes.len().div_ceil(4)) {
        stream.write_all(piece).await?;
        stream.flush().await?;
        sleep(pause).await;
    }
    Ok(())
}

/// Between two pieces; all of them together are less than an attempt may take.
const PAUSE: Duration = Duration::from_millis(40);
