//! One question, one connection, one answer.

use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION, USER_AGENT};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::answer::Answer;
use crate::endpoint::Endpoint;
use crate::tls::handshake;

/// A server that is asked.
#[derive(Clone, Debug)]
pub struct Client {
    endpoint: Endpoint,
    limits: Limits,
    authorization: Option<HeaderValue>,
    authorities: Option<PathBuf>,
}

/// What a question may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a connection may take.
    pub connect: Duration,
    /// How long the whole answer may take, the connection included.
    pub answer: Duration,
    /// The largest answer, in bytes.
    pub bytes: usize,
}

/// A token with characters that no header has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token has characters that a header cannot carry")]
pub struct InvalidToken;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// There was no connection.
    #[error("connect to {authority}")]
    Connect {
        /// Host and port.
        authority: String,
        /// What went wrong.
        source: io::Error,
    },
    /// There was a connection, and no TLS on it.
    #[error("agree with {authority} on TLS")]
    Tls {
        /// Host and port.
        authority: String,
        /// What went wrong.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the connection broke before the answer was there")]
    Broken(#[source] hyper::Error),
    /// It took too long.
    #[error("no answer within {} s", .0.as_secs_f64())]
    TooSlow(Duration),
    /// The answer is larger than is read.
    #[error("the answer is larger than {} MiB; ask for less, as for fewer labels", .0 >> 20)]
    TooLarge(usize),
    /// The server sends elsewhere.
    #[error("the server sends to {0}; give that address")]
    Elsewhere(String),
    /// A status without an answer.
    #[error("the server answers {0}")]
    Status(StatusCode),
    /// The server says what is wrong with the question.
    #[error("the server refuses the query: {message} ({kind})")]
    Refused {
        /// Which kind of error, in the server's words.
        kind: String,
        /// What it says.
        message: String,
    },
    /// The answer is of something else.
    #[error("the answer is not Prometheus's: {why}")]
    NotPrometheus {
        /// What is wrong with it.
        why: String,
    },
}

impl Default for Limits {
    /// Prometheus gives up after two minutes by default, long after people do.
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), answer: Duration::from_secs(60), bytes: 256 << 20 }
    }
}

impl Client {
    /// A client of the server at `endpoint`.
    #[must_use]
    pub const fn new(endpoint: Endpoint, limits: Limits) -> Self {
        Self { endpoint, limits, authorization: None, authorities: None }
    }

    /// Sends this token with each question (`Authorization: Bearer …`).
    ///
    /// # Errors
    ///
    /// A token that cannot be sent.
    pub fn token(mut self, token: &str) -> Result<Self, InvalidToken> {
        let mut value =
            HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| InvalidToken)?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    /// Believes these authorities, PEM, and no other; those of this machine unless this is called.
    #[must_use]
    pub fn authorities(mut self, path: PathBuf) -> Self {
        self.authorities = Some(path);
        self
    }

    /// Asks for the series of `promql` at a moment, in seconds since 1970 or as RFC 3339 writes it;
    /// now, if none is given.
    ///
    /// # Errors
    ///
    /// No answer, or one that is none.
    pub async fn ask(&self, promql: &str, at: Option<&str>) -> Result<Answer, AskError> {
        let Limits { answer, .. } = self.limits;
        match timeout(answer, self.exchange(promql, at)).await {
            Ok(answered) => answered,
            Err(_) => Err(AskError::TooSlow(answer)),
        }
    }

    async fn exchange(&self, promql: &str, at: Option<&str>) -> Result<Answer, AskError> {
        let connection = self.connect().await?;
        if !self.endpoint.tls {
            return self.exchange_over(connection, promql, at).await;
        }
        let Endpoint { host, authority, .. } = &self.endpoint;
        let handshake = handshake(connection, host, self.authorities.as_deref());
        let failed = |source| AskError::Tls { authority: authority.clone(), source };
        match timeout(self.limits.connect, handshake).await {
            Ok(connection) => self.exchange_over(connection.map_err(failed)?, promql, at).await,
            Err(_) => Err(AskError::TooSlow(self.limits.connect)),
        }
    }

    async fn exchange_over(
        &self,
        connection: impl AsyncRead + AsyncWrite + Unpin,
        promql: &str,
        at: Option<&str>,
    ) -> Result<Answer, AskError> {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(connection)).await.map_err(AskError::Broken)?;
        let mut exchange = pin!(async {
            let response = sender.send_request(self.request(promql, at)).await;
            self.read(response.map_err(AskError::Broken)?).await
        });
        // The connection moves bytes only while it is polled, and lives as long as the exchange.
        let drive = async {
            match connection.await {
                // What was sent is read to its end by the other side.
                Ok(()) => std::future::pending().await,
                Err(error) => error,
            }
        };
        let error = tokio::select! {
            biased;
            answer = &mut exchange => return answer,
            error = drive => error,
        };
        // A server may hang up without ceremony once it has said all.
        match poll_fn(|context| Poll::Ready(exchange.as_mut().poll(context))).await {
            Poll::Ready(answer) => answer,
            Poll::Pending => Err(AskError::Broken(error)),
        }
    }

    async fn connect(&self) -> Result<TcpStream, AskError> {
        let Endpoint { host, port, authority, .. } = &self.endpoint;
        let failed = |source| AskError::Connect { authority: authority.clone(), source };
        match timeout(self.limits.connect, TcpStream::connect((host.as_str(), *port))).await {
            Ok(connected) => connected.map_err(failed),
            Err(_) => Err(AskError::TooSlow(self.limits.connect)),
        }
    }

    /// Long expressions do not fit into every URL, so they are sent as a form.
    fn request(&self, promql: &str, at: Option<&str>) -> Request<Full<Bytes>> {
        let mut form = format!("query={}", escaped(promql));
        if let Some(at) = at {
            form.push_str("&time=");
            form.push_str(&escaped(at));
        }
        let mut request = Request::new(Full::new(Bytes::from(form)));
        *request.method_mut() = http::Method::POST;
        // Both were parsed as parts of a URL.
        *request.uri_mut() = self.endpoint.path.parse().unwrap_or_default();
        let headers = request.headers_mut();
        if let Ok(host) = self.endpoint.authority.parse() {
            headers.insert(HOST, host);
        }
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let constant = HeaderValue::from_static;
        headers.insert(CONTENT_TYPE, constant("application/x-www-form-urlencoded"));
        headers.insert(ACCEPT, constant("application/json"));
        headers.insert(USER_AGENT, constant(concat!("onus/", env!("CARGO_PKG_VERSION"))));
        request
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Answer, AskError> {
        let status = response.status();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            return Err(AskError::Elsewhere(
                to.unwrap_or("an address it does not name").to_owned(),
            ));
        }
        // Some say it in the form of Prometheus; it is no word on the question all the same.
        if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status) {
            return Err(AskError::Status(status));
        }
        let mut body = response.into_body();
        let mut bytes = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(AskError::Broken)?.into_data() else { continue };
            if bytes.len() + data.len() > self.limits.bytes {
                return Err(AskError::TooLarge(self.limits.bytes));
            }
            bytes.extend_from_slice(&data);
        }
        match Answer::read(&bytes) {
            // Whatever stands before the server has no answer of its own.
            Err(AskError::NotPrometheus { .. }) if !status.is_success() => {
                Err(AskError::Status(status))
            }
            answer => answer,
        }
    }
}

/// Everything but letters, digits and a few signs, as forms have it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() * 2);
    for &byte in text.as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            _ => {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                escaped.push('%');
                escaped.push(char::from(HEX[usize::from(byte >> 4)]));
                escaped.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
    escaped
}
