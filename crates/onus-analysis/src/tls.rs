//! TLS: a certificate that is read again when it changes, and clients that are known by theirs.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The files of a server's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain, PEM.
    pub certificate: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
    /// The authorities that sign certificates of clients, PEM; without it no client is known by
    /// one.
    pub client_authorities: Option<PathBuf>,
}

/// What cannot be used of the files.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {why}")]
pub struct TlsError {
    path: PathBuf,
    why: String,
}

/// How long a client may take for its handshake, and how many may be at it.
const HANDSHAKE: Duration = Duration::from_secs(10);
const HANDSHAKES_MAX: usize = 512;
/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(5);

impl TlsFiles {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        [Some(&self.certificate), Some(&self.key), self.client_authorities.as_ref()]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
    }

    fn written(&self) -> Vec<Option<SystemTime>> {
        self.paths().map(|path| std::fs::metadata(path).and_then(|it| it.modified()).ok()).collect()
    }

    fn load(&self) -> Result<ServerConfig, TlsError> {
        let wrong = |path: &Path, why: String| TlsError { path: path.to_owned(), why };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&self.certificate, error.to_string()))?;
        let builder = match &self.client_authorities {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(path)? {
                    roots.add(authority).map_err(|error| wrong(path, error.to_string()))?;
                }
                // Whoever has none may still have a token.
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .allow_unauthenticated()
                        .build()
                        .map_err(|error| wrong(path, error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| wrong(&self.key, error.to_string()))?;
        let mut config = builder
            .with_single_cert(certificates(&self.certificate)?, key)
            .map_err(|error| wrong(&self.certificate, error.to_string()))?;
        config.alpn_protocols = Vec::from([b"h2".to_vec(), b"http/1.1".to_vec()]);
        Ok(config)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |why: String| TlsError { path: path.to_owned(), why };
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?.collect();
    let found = found.map_err(|error| wrong(error.to_string()))?;
    if found.is_empty() {
        return Err(wrong("no certificate is in it".to_owned()));
    }
    Ok(found)
}

/// A listener whose clients have made their handshake.
pub(crate) struct TlsListener {
    ready: mpsc::Receiver<(TlsStream<TcpStream>, Peer)>,
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// The names in its certificate, DNS names and URIs.
    pub(crate) names: Arc<[String]>,
}

impl TlsListener {
    /// Starts to accept: a client that is slow with its handshake keeps nobody waiting.
    pub(crate) fn start(listener: TcpListener, files: TlsFiles) -> Result<Self, TlsError> {
        let config = files.load()?;
        let (sender, ready) = mpsc::channel(64);
        tokio::spawn(accept(listener, files, config, sender));
        Ok(Self { ready })
    }
}

async fn accept(
    listener: TcpListener,
    files: TlsFiles,
    config: ServerConfig,
    ready: mpsc::Sender<(TlsStream<TcpStream>, Peer)>,
) {
    let mut acceptor = TlsAcceptor::from(Arc::new(config));
    let mut written = files.written();
    let mut looks = tokio::time::interval(LOOK);
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = looks.tick() => {
                let now = files.written();
                if now != written {
                    match files.load() {
                        Ok(config) => {
                            tracing::info!("onus analysis: the certificate is read again");
                            acceptor = TlsAcceptor::from(Arc::new(config));
                            written = now;
                        }
                        // Perhaps one of the files is still being written.
                        Err(error) => tracing::warn!(%error, "onus analysis: the changed certificate cannot be used; the old one is"),
                    }
                }
                continue;
            }
            () = ready.closed() => return,
        };
        let Ok((stream, _)) = accepted else {
            // Too many open files, most often: others must end first.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(permit) = handshakes.clone().acquire_owned().await else { return };
        let (acceptor, ready) = (acceptor.clone(), ready.clone());
        tokio::spawn(async move {
            if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                let names = names(&stream).into();
                let _ = ready.send((stream, Peer { names })).await;
            }
            drop(permit);
        });
    }
}

/// The names in the certificate of the client.
fn names(stream: &TlsStream<TcpStream>) -> Vec<String> {
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let Some(certificate) = certificate.and_then(|der| webpki::EndEntityCert::try_from(der).ok())
    else {
        return Vec::new();
    };
    let uris = certificate.valid_uri_names().map(str::to_owned);
    certificate.valid_dns_names().map(str::to_owned).chain(uris).collect()
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = Peer;

    async fn accept(&mut self) -> (Self::Io, Peer) {
        match self.ready.recv().await {
            Some(ready) => ready,
            // The accepting task ends after this only.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer { names: Arc::new([]) })
    }
}

impl Connected<IncomingStream<'_, TlsListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, TlsListener>) -> Self {
        stream.remote_addr().clone()
    }
}
