//! Requests at a rate, whatever becomes of them, and what became of each.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::super::cast::Line;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A `GET` that can be answered; it may be tried again.
    Read,
    /// A `POST` that can be answered; it may not.
    Write,
    /// A `GET` whose error somebody else has been tried for.
    Closed,
    /// A `GET` whose answer is no failure.
    Missing,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Status(u16),
    /// An instance's answer to another request.
    Mistaken,
    /// The connection broke.
    Broken,
    /// There was no answer in time.
    Late,
}

/// A request, and what became of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) number: u64,
    pub(super) kind: Kind,
    pub(super) outcome: Outcome,
}

/// How much of it.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// Requests a second.
    pub(super) rate: u32,
    pub(super) time: Duration,
    /// How many of them have left.
    left: watch::Sender<u64>,
}

impl Load {
    /// As the environment says; without a word of it, what a busy machine bears.
    pub(super) fn of_environment() -> Self {
        let read = |name: &str| std::env::var(name).ok()?.parse().ok();
        let rate = read("ONUS_FAULTS_RATE").unwrap_or(100);
        let seconds = read("ONUS_FAULTS_SECONDS").unwrap_or(5);
        Self { rate, time: Duration::from_secs(seconds.into()), left: watch::Sender::default() }
    }

    /// The same rate for another time.
    pub(super) fn lasting(&self, time: Duration) -> Self {
        Self { time, ..self.clone() }
    }

    fn count(&self) -> u64 {
        u64::from(self.rate) * self.time.as_secs()
    }

    /// Waits until another part of it has left. Faults that begin and end by that, and not by time,
    /// meet as many requests of one load as of another.
    pub(super) async fn part(&self, of: u64) {
        let mut left = self.left.subscribe();
        let then = (*left.borrow() + self.count() / of).min(self.count());
        left.wait_for(|&left| left >= then).await.expect("this is a sender");
    }

    /// Sends it to the callees `peer` and `ledger` through the sidecar, or to whoever listens there.
    pub(super) async fn send(&self, to: SocketAddr, has_closed: bool) -> Vec<Ended> {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let mut pace = interval(Duration::from_secs(1) / self.rate);
        // What was due is sent, however late.
        pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let (mut requests, mut all) = (JoinSet::new(), Vec::new());
        for number in 0..self.count() {
            pace.tick().await;
            self.left.send_replace(number);
            let kind = match number % 10 {
                0..6 => Kind::Read,
                6..8 => Kind::Write,
                8 if has_closed => Kind::Closed,
                8 => Kind::Read,
                _ => Kind::Missing,
            };
            let lines = lines.clone();
            requests.spawn(async move {
                let outcome = timeout(ANSWER_MAX, ask(to, &lines, kind, number)).await;
                Ended { number, kind, outcome: outcome.unwrap_or(Outcome::Late) }
            });
            while let Some(ended) = requests.try_join_next() {
                all.push(ended.expect("nobody panics here"));
            }
        }
        self.left.send_replace(self.count());
        all.extend(requests.join_all().await);
        all
    }
}

async fn ask(to: SocketAddr, lines: &Mutex<Vec<Line>>, kind: Kind, number: u64) -> Outcome {
    let free = lines.lock().expect("nobody panics here").pop();
    let mut line = match free {
        Some(line) => line,
        None => Line::to(to).await,
    };
    // Writes have connections of their own, so that retries of others move none of them to another
    // instance: each instance has its turn at the third part of them.
    let (method, path, host, more) = match kind {
        Kind::Read => ("GET", "/read", "peer", "\r\n"),
        Kind::Write => ("POST", "/write", "ledger", "content-length: 6\r\n\r\n17 EUR"),
        Kind::Closed => ("GET", "/closed", "peer", "\r\n"),
        Kind::Missing => ("GET", "/missing", "peer", "\r\n"),
    };
    line.say(format!("{method} {path}?n={number} HTTP/1.1\r\nhost: {host}\r\n{more}")).await;
    let Some(head) = line.head().await else { return Outcome::Broken };
    let Some((body, _)) = line.body(&head).await else { return Outcome::Broken };
    if body.starts_with(b"request ") && body != answer_to(number) {
        return Outcome::Mistaken;
    }
    if head.headers.get("connection").is_none_or(|value| value != "close") {
        lines.lock().expect("nobody panics here").push(line);
    }
    Outcome::Status(head.status())
}

/// What an instance says to a request.
pub(super) fn answer_to(number: u64) -> String {
    format!("request {number:010} was read\n")
}

/// The longest that an answer may take: longer than all attempts.
const ANSWER_MAX: Duration = Duration::from_secs(20);
