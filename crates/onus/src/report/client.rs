//! One connection to the analysis: requests with a limit of time and size.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH, LOCATION, RETRY_AFTER,
};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::TokioExecutor;
use onus_api::{Accepted, ClassPage, Problem};

use super::ReportError;
use super::tls::{Connector, Tls};
use super::token::Token;

/// The longest answer that is read; a page of 10,000 classes has about 2 MB.
const ANSWER_MAX: usize = 16 * 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the analysis may wait with its answer until there is something new.
const WAIT: Duration = Duration::from_secs(30);
const PREFER_WAIT: &str = "wait=30";

#[derive(Clone)]
pub(crate) struct Client {
    http: Arc<Mutex<HttpClient<Connector, Full<Bytes>>>>,
    tls: Tls,
    base: String,
    token: Option<Token>,
    authorization: Arc<Mutex<Option<HeaderValue>>>,
}

/// What became of a report.
pub(crate) enum Reported {
    Stored(Accepted),
    /// The analysis will never take it.
    Refused(String),
    /// It may take it later.
    Later {
        why: String,
        after: Option<Duration>,
    },
}

/// What the analysis hands back.
pub(crate) enum Handed {
    Page(Box<ClassPage>, Option<HeaderValue>),
    /// What it said before still holds.
    Unchanged,
    Failed(String),
}

/// An answer, read to its end.
struct Answer {
    status: StatusCode,
    headers: http::HeaderMap,
    body: Bytes,
}

impl Client {
    pub(crate) fn new(base: &Uri, token: Option<Token>, tls: Tls) -> Result<Self, ReportError> {
        let authorization = token.as_ref().map(Token::authorization).transpose()?;
        let authorization = Arc::new(Mutex::new(authorization));
        let http = HttpClient::builder(TokioExecutor::new()).build(tls.connector()?);
        let base = base.to_string().trim_end_matches('/').to_owned();
        Ok(Self { http: Arc::new(Mutex::new(http)), tls, base, token, authorization })
    }

    /// Reads certificates again, which may have been renewed.
    fn renew(&self) {
        if self.tls.may_change()
            && let Ok(connector) = self.tls.connector()
        {
            let http = HttpClient::builder(TokioExecutor::new()).build(connector);
            *self.http.lock().unwrap_or_else(PoisonError::into_inner) = http;
        }
    }

    /// Reads the token again, which may have been renewed.
    fn renew_token(&self) {
        if let Some(token) = self.token.as_ref().filter(|token| token.may_change())
            && let Ok(renewed) = token.authorization()
        {
            *self.authorization.lock().unwrap_or_else(PoisonError::into_inner) = Some(renewed);
        }
    }

    pub(crate) async fn report(&self, body: Bytes) -> Reported {
        let later = |why| Reported::Later { why, after: None };
        let uri = format!("{}/api/v1/reports", self.base);
        let answer = match self.send(&Method::POST, uri, &[], body, TIMEOUT).await {
            Ok(answer) => answer,
            Err(why) => return later(why),
        };
        if answer.status.is_success() {
            return match serde_json::from_slice(&answer.body) {
                Ok(accepted) => Reported::Stored(accepted),
                // Whoever answers there, it is not the analysis.
                Err(error) => later(format!("an answer that is none of the analysis: {error}")),
            };
        }
        let why = answer.why();
        // A token may be mended, and a server may recover; what is wrong with the report itself
        // stays wrong.
        match answer.status {
            StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNPROCESSABLE_ENTITY => Reported::Refused(why),
            _ => Reported::Later { why, after: answer.retry_after() },
        }
    }

    pub(crate) async fn classes(&self, service: &str, known: Option<&HeaderValue>) -> Handed {
        let service = percent_encoded(service);
        let uri = format!("{}/api/v1/classes?service={service}", self.base);
        let wait = HeaderValue::from_static(PREFER_WAIT);
        let mut headers = Vec::from([(HeaderName::from_static("prefer"), wait)]);
        headers.extend(known.map(|etag| (IF_NONE_MATCH, etag.clone())));
        let sent = self.send(&Method::GET, uri, &headers, Bytes::new(), WAIT + TIMEOUT);
        let answer = match sent.await {
            Ok(answer) => answer,
            Err(why) => return Handed::Failed(why),
        };
        match answer.status {
            StatusCode::NOT_MODIFIED => Handed::Unchanged,
            StatusCode::OK => match serde_json::from_slice(&answer.body) {
                Ok(page) => Handed::Page(Box::new(page), answer.headers.get(ETAG).cloned()),
                Err(error) => Handed::Failed(error.to_string()),
            },
            _ => Handed::Failed(answer.why()),
        }
    }

    /// Sends a request, and once more to where the answer says: another analysis may have the
    /// service.
    async fn send(
        &self,
        method: &Method,
        uri: String,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
        limit: Duration,
    ) -> Result<Answer, String> {
        let exchange = async {
            let answer = self.send_once(method, &uri, headers, body.clone()).await?;
            match answer.elsewhere() {
                Some(there) => self.send_once(method, there, headers, body).await,
                None => Ok(answer),
            }
        };
        match tokio::time::timeout(limit, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {} s", limit.as_secs())),
        }
    }

    async fn send_once(
        &self,
        method: &Method,
        uri: &str,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<Answer, String> {
        let mut request = Request::builder().method(method).uri(uri);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let authorization =
            self.authorization.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Full::new(body)).map_err(|error| error.to_string())?;
        let http = self.http.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let answer = http.request(request).await.map_err(|error| {
            self.renew();
            causes(&error)
        })?;
        let (head, body) = answer.into_parts();
        if head.status == StatusCode::UNAUTHORIZED {
            self.renew_token();
        }
        let body = Limited::new(body, ANSWER_MAX).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        Ok(Answer { status: head.status, headers: head.headers, body })
    }
}

impl Answer {
    fn elsewhere(&self) -> Option<&str> {
        let redirects = self.status == StatusCode::TEMPORARY_REDIRECT;
        let location = redirects.then(|| self.headers.get(LOCATION))??.to_str().ok()?;
        location.starts_with("http").then_some(location)
    }

    fn why(&self) -> String {
        match serde_json::from_slice::<Problem>(&self.body) {
            Ok(problem) => format!("{}: {}", self.status, problem.detail),
            Err(_) => self.status.to_string(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        let seconds = self.headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
        Some(Duration::from_secs(seconds))
    }
}

/// An error with what caused it: the client's own text is "client error (Connect)".
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// The name as a value in a query.
fn percent_encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(byte.into());
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}
