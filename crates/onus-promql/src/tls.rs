//! Who is believed to be the server: the authorities of this machine, or those in a file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Authorities that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthoritiesError {
    /// This machine has no list where such lists are.
    #[error("this machine has no list of authorities ({}); name a file with the server's", .0)]
    None(String),
    /// The file cannot be read.
    #[error("read the authorities in {}", .path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// There is none in the file.
    #[error("no certificate is in {}", .0.display())]
    Empty(PathBuf),
}

/// Where systems keep the authorities that they believe; one file that everything is in.
const LISTS: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/opt/homebrew/etc/ca-certificates/cert.pem",
];

/// Makes the handshake. The list is read for each connection, so that one that was renewed is seen.
pub(crate) async fn handshake(
    connection: TcpStream,
    host: &str,
    authorities: Option<&Path>,
) -> io::Result<TlsStream<TcpStream>> {
    let roots = match authorities {
        Some(path) => read(path),
        None => of_this_machine(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots.map_err(io::Error::other)?)
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    TlsConnector::from(Arc::new(config)).connect(name, connection).await
}

/// The list that `SSL_CERT_FILE` names, as for OpenSSL, or the first that is there.
fn of_this_machine() -> Result<RootCertStore, AuthoritiesError> {
    if let Some(named) = std::env::var_os("SSL_CERT_FILE") {
        return read(Path::new(&named));
    }
    match LISTS.iter().map(Path::new).find(|path| path.is_file()) {
        Some(list) => read(list),
        None => Err(AuthoritiesError::None(LISTS.join(", "))),
    }
}

/// What is not understood in a list is left out: the lists of machines have old ones.
fn read(path: &Path) -> Result<RootCertStore, AuthoritiesError> {
    let wrong = |source| AuthoritiesError::Unreadable { path: path.to_owned(), source };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(wrong)? {
        roots.add_parsable_certificates([certificate.map_err(wrong)?]);
    }
    if roots.is_empty() {
        return Err(AuthoritiesError::Empty(path.to_owned()));
    }
    Ok(roots)
}
