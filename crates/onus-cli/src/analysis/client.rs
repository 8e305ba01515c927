//! Asks an analysis, with a limit of time and size.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use onus_api::Problem;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cli::{Server, TlsOptions};

const ANSWER_MAX: usize = 256 * 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a download may stand still; the copy that is sent has to be made first.
const STALLED: Duration = Duration::from_secs(60);

/// A client of one analysis, or of one agent's admin interface.
pub(crate) struct Client {
    http: HttpClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: String,
    token: Option<String>,
}

impl Client {
    /// A client of the analysis.
    pub(crate) fn new(server: &Server) -> anyhow::Result<Self> {
        Self::to(server, &server.analysis)
    }

    /// A client of another address, as whoever talks to the analysis.
    pub(crate) fn to(server: &Server, address: &str) -> anyhow::Result<Self> {
        Self::with(address, server.token.clone(), &server.tls)
    }

    /// A client of an address of plain HTTP.
    pub(crate) fn at(address: &str, token: Option<String>) -> anyhow::Result<Self> {
        Self::with(address, token, &TlsOptions::default())
    }

    fn with(address: &str, token: Option<String>, tls: &TlsOptions) -> anyhow::Result<Self> {
        let with_scheme = match address.contains("://") {
            true => address.to_owned(),
            false => format!("http://{address}"),
        };
        let uri: Uri =
            with_scheme.parse().with_context(|| format!("read the address {address:?}"))?;
        if uri.scheme_str() == Some("https") && tls.authorities.is_none() {
            bail!(
                "talk to {address:?} by TLS: name the authorities that sign its certificate with --authorities"
            );
        }
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            bail!(
                "read the address {address:?}: allowed is a host and a port such as http://onus-analysis:7480"
            );
        }
        let base = uri.to_string().trim_end_matches('/').to_owned();
        let http = HttpClient::builder(TokioExecutor::new()).build(connector(tls)?);
        Ok(Self { http, base, token })
    }

    /// Reads a document.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> anyhow::Result<T> {
        let body = self.send(Method::GET, path, query, Bytes::new()).await?;
        serde_json::from_slice(&body)
            .with_context(|| format!("understand the answer of {}{path}", self.base))
    }

    /// Sends a document, and reads the answer.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        document: &impl Serialize,
    ) -> anyhow::Result<T> {
        let body = Bytes::from(serde_json::to_vec(document).context("write the request")?);
        let body = self.send(Method::POST, path, &[], body).await?;
        serde_json::from_slice(&body)
            .with_context(|| format!("understand the answer of {}{path}", self.base))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Bytes,
    ) -> anyhow::Result<Bytes> {
        let uri = self.uri(path, query);
        let exchange = async {
            let answer = self.send_once(&method, &uri, body.clone()).await?;
            // Another analysis may have the service.
            match answer.elsewhere {
                Some(there) => self.send_once(&method, &there, body).await,
                None => Ok(answer),
            }
        };
        let answer = tokio::time::timeout(TIMEOUT, exchange)
            .await
            .map_err(|_| anyhow!("no answer within {} s", TIMEOUT.as_secs()))
            .and_then(|answer| answer)
            .with_context(|| format!("ask {}", self.base))?;
        let Answer { status, body, .. } = answer;
        if status.is_success() {
            return Ok(body);
        }
        Err(self.refusal(path, status, &body))
    }

    /// Begins to read a document that has no end.
    pub(crate) async fn open(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> anyhow::Result<Incoming> {
        let request = self.request(&Method::GET, &self.uri(path, query), Bytes::new())?;
        let answer = tokio::time::timeout(TIMEOUT, self.http.request(request))
            .await
            .map_err(|_| anyhow!("no answer within {} s", TIMEOUT.as_secs()))
            .and_then(|answer| Ok(answer?))
            .with_context(|| format!("ask {}", self.base))?;
        let (head, body) = answer.into_parts();
        if head.status.is_success() {
            return Ok(body);
        }
        let body =
            Limited::new(body, ANSWER_MAX).collect().await.map_err(|error| anyhow!(error))?;
        Err(self.refusal(path, head.status, &body.to_bytes()))
    }

    /// Writes an answer of any size to a file as it comes; how many bytes it has.
    pub(crate) async fn download(&self, path: &str, file: &mut File) -> anyhow::Result<u64> {
        let mut body = self.open(path, &[]).await?;
        let ask = || format!("ask {}", self.base);
        let late = || anyhow!("nothing came for {} s", STALLED.as_secs());
        let mut length = 0;
        loop {
            let frame = tokio::time::timeout(STALLED, body.frame()).await;
            let Some(frame) = frame.map_err(|_| late()).with_context(ask)? else {
                return Ok(length);
            };
            if let Ok(data) = frame.with_context(ask)?.into_data() {
                file.write_all(&data).context("write the file")?;
                length += data.len() as u64;
            }
        }
    }

    fn refusal(&self, path: &str, status: StatusCode, body: &[u8]) -> anyhow::Error {
        let base = self.base.clone();
        match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => Refusal { base, problem }.into(),
            Err(_) => anyhow!("ask {base}: {status} for {path}"),
        }
    }

    fn uri(&self, path: &str, query: &[(&str, &str)]) -> String {
        let query: Vec<_> = query
            .iter()
            .map(|(name, value)| format!("{name}={}", percent_encoded(value)))
            .collect();
        let question = if query.is_empty() { "" } else { "?" };
        format!("{}{path}{question}{}", self.base, query.join("&"))
    }

    fn request(
        &self,
        method: &Method,
        uri: &str,
        body: Bytes,
    ) -> anyhow::Result<Request<Full<Bytes>>> {
        let mut request = Request::builder().method(method).uri(uri);
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        request.body(Full::new(body)).context("make the request")
    }

    async fn send_once(&self, method: &Method, uri: &str, body: Bytes) -> anyhow::Result<Answer> {
        let request = self.request(method, uri, body)?;
        let (head, body) = self.http.request(request).await?.into_parts();
        let body =
            Limited::new(body, ANSWER_MAX).collect().await.map_err(|error| anyhow!(error))?;
        let location = head.headers.get("location").and_then(|it| it.to_str().ok());
        let elsewhere = location
            .filter(|it| head.status == StatusCode::TEMPORARY_REDIRECT && it.starts_with("http"));
        Ok(Answer {
            status: head.status,
            elsewhere: elsewhere.map(str::to_owned),
            body: body.to_bytes(),
        })
    }
}

struct Answer {
    status: StatusCode,
    /// Where it would have been answered.
    elsewhere: Option<String>,
    body: Bytes,
}

/// Whoever was asked says why not.
#[derive(Debug, thiserror::Error)]
#[error("ask {base}: {}: {}", problem.status, problem.detail)]
pub(crate) struct Refusal {
    base: String,
    pub(crate) problem: Problem,
}

/// A connector that believes these authorities, and no other, and says who it is.
fn connector(tls: &TlsOptions) -> anyhow::Result<HttpsConnector<HttpConnector>> {
    let certificates = |path: &Path| {
        let read = || format!("read the certificates in {}", path.display());
        let found = CertificateDer::pem_file_iter(path).with_context(read)?;
        found.collect::<Result<Vec<_>, _>>().with_context(read)
    };
    let mut roots = RootCertStore::empty();
    if let Some(path) = &tls.authorities {
        for authority in certificates(path)? {
            let read = || format!("believe the authorities in {}", path.display());
            roots.add(authority).with_context(read)?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("start TLS")?
        .with_root_certificates(roots);
    let config = match (&tls.certificate, &tls.key) {
        (Some(certificate), Some(key)) => {
            let read = || format!("read the key in {}", key.display());
            let secret = PrivateKeyDer::from_pem_file(key).with_context(read)?;
            builder
                .with_client_auth_cert(certificates(certificate)?, secret)
                .with_context(|| format!("use the certificate in {}", certificate.display()))?
        }
        (None, _) | (_, None) => builder.with_no_client_auth(),
    };
    let builder = HttpsConnectorBuilder::new().with_tls_config(config);
    Ok(builder.https_or_http().enable_http1().build())
}

/// The text as a value in a query.
fn percent_encoded(text: &str) -> String {
    let keep = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes()
        .map(|byte| if keep(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
