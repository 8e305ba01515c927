//! TLS: certificates from files, read anew when the files change.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

/// Files in PEM that somebody shows, and whom they trust.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// A certificate with those that vouch for it, and its key.
    pub(crate) identity: Option<(PathBuf, PathBuf)>,
    /// Certificates of those who vouch for peers.
    pub(crate) trusted: Option<PathBuf>,
}

/// Why TLS cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A file has nothing of what it should.
    #[error("find a {what} in PEM in {}", path.display())]
    NoPem {
        /// The file.
        path: PathBuf,
        /// What it should have.
        what: &'static str,
    },
    /// What the files say does not fit together.
    #[error("use the certificates")]
    Unusable(#[from] rustls::Error),
    /// Whom to trust cannot be told.
    #[error("trust the certificates of {}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
    },
    /// A name that no certificate can have.
    #[error("ask for a certificate of {0:?}, which is no name")]
    Name(String),
}

/// A configuration that follows its files.
pub(crate) struct Followed<C> {
    files: TlsFiles,
    make: fn(&TlsFiles) -> Result<C, TlsError>,
    config: ArcSwap<C>,
    /// What the files said last.
    seen: Mutex<Vec<Option<Vec<u8>>>>,
}

/// The serving side.
pub(crate) type ServerTls = Followed<ServerConfig>;

/// The calling side: for each version of HTTP its own, as each asks for its own.
pub(crate) struct ClientTls {
    pub(crate) name: ServerName<'static>,
    pub(crate) http1: Followed<ClientConfig>,
    pub(crate) http2: Followed<ClientConfig>,
}

impl<C> Followed<C> {
    fn new(files: TlsFiles, make: fn(&TlsFiles) -> Result<C, TlsError>) -> Result<Self, TlsError> {
        let seen = Mutex::new(files.contents());
        let config = ArcSwap::from_pointee(make(&files)?);
        Ok(Self { files, make, config, seen })
    }

    pub(crate) fn config(&self) -> Arc<C> {
        self.config.load_full()
    }

    /// Reads the files anew if they say something else. What cannot be used changes nothing.
    pub(crate) fn follow(&self) {
        let contents = self.files.contents();
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if *seen == contents {
                return;
            }
            *seen = contents;
        }
        match (self.make)(&self.files) {
            Ok(config) => {
                self.config.store(Arc::new(config));
                tracing::info!("onus: certificates were read anew");
            }
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                tracing::warn!(
                    %error, cause = cause.unwrap_or_default(),
                    "onus: new certificates refused; those in force stay in force"
                );
            }
        }
    }
}

impl ServerTls {
    pub(crate) fn of(files: TlsFiles) -> Result<Self, TlsError> {
        Self::new(files, server)
    }
}

impl ClientTls {
    /// Calls to `name`, which its certificate must have.
    pub(crate) fn of(files: &TlsFiles, name: &str) -> Result<Self, TlsError> {
        let ip = name.parse::<IpAddr>().map(ServerName::from).ok();
        let known = ip.or_else(|| ServerName::try_from(name.to_owned()).ok());
        Ok(Self {
            name: known.ok_or_else(|| TlsError::Name(name.to_owned()))?,
            http1: Followed::new(files.clone(), |files| client(files, b"http/1.1"))?,
            http2: Followed::new(files.clone(), |files| client(files, b"h2"))?,
        })
    }

    pub(crate) fn follow(&self) {
        self.http1.follow();
        self.http2.follow();
    }
}

impl TlsFiles {
    fn contents(&self) -> Vec<Option<Vec<u8>>> {
        let identity = self.identity.iter().flat_map(|(certificate, key)| [certificate, key]);
        identity.chain(&self.trusted).map(|path| fs::read(path).ok()).collect()
    }

    fn roots(path: &Path) -> Result<Arc<RootCertStore>, TlsError> {
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(certificates(path)?);
        if added == 0 {
            return Err(TlsError::Untrusted { path: path.to_owned() });
        }
        Ok(Arc::new(roots))
    }
}

fn server(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let builder =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = match &files.trusted {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let verifier =
                WebPkiClientVerifier::builder_with_provider(TlsFiles::roots(path)?, provider);
            let verifier = verifier.build();
            builder.with_client_cert_verifier(
                verifier.map_err(|_| TlsError::Untrusted { path: path.clone() })?,
            )
        }
    };
    let Some((certificate, key)) = &files.identity else {
        return Err(TlsError::Unusable(rustls::Error::NoCertificatesPresented));
    };
    let mut config = builder.with_single_cert(certificates(certificate)?, private_key(key)?)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn client(files: &TlsFiles, speaks: &[u8]) -> Result<ClientConfig, TlsError> {
    let builder =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let roots = match &files.trusted {
        Some(path) => TlsFiles::roots(path)?,
        None => Arc::new(RootCertStore::empty()),
    };
    let builder = builder.with_root_certificates(roots);
    let mut config = match &files.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            builder.with_client_auth_cert(certificates(certificate)?, private_key(key)?)?
        }
    };
    config.alpn_protocols = vec![speaks.to_vec()];
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    found
        .ok()
        .filter(|found| !found.is_empty())
        .ok_or_else(|| TlsError::NoPem { path: path.to_owned(), what: "certificate" })
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read(path)?;
    PrivateKeyDer::from_pem_slice(&text)
        .map_err(|_| TlsError::NoPem { path: path.to_owned(), what: "private key" })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Unreadable { path: path.to_owned(), source })
}
