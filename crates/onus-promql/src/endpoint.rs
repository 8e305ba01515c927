//! Where the server is.

use http::Uri;
use http::uri::Scheme;

/// The address of a server, and what its paths begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Whether the connection is one of TLS.
    pub(crate) tls: bool,
    /// Host and port as the server is told.
    pub(crate) authority: String,
    /// Where the API is.
    pub(crate) path: String,
}

/// An address that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// It is no URL.
    #[error("`{0}` is no URL; one such as http://localhost:9090 is expected")]
    NoUrl(String),
    /// It has a user and a password.
    #[error("the URL has a user and a password, which others can see; leave them out")]
    Password,
}

impl Endpoint {
    /// Reads a URL such as `http://localhost:9090` or `https://mimir/prometheus`.
    ///
    /// # Errors
    ///
    /// What is no URL, or not of a server that can be asked.
    pub fn new(url: &str) -> Result<Self, EndpointError> {
        let no_url = || EndpointError::NoUrl(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| no_url())?;
        let tls = uri.scheme() == Some(&Scheme::HTTPS);
        if !tls && uri.scheme() != Some(&Scheme::HTTP) {
            return Err(no_url());
        }
        let authority = uri.authority().ok_or_else(no_url)?;
        if authority.as_str().contains('@') {
            return Err(EndpointError::Password);
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() || uri.query().is_some() {
            return Err(no_url());
        }
        Ok(Self {
            host,
            port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            tls,
            authority: authority.to_string(),
            path: format!("{}/api/v1/query", uri.path().trim_end_matches('/')),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_servers() {
        for (url, expected) in [
            ("http://localhost:9090", Some(("localhost", 9090, "/api/v1/query"))),
            ("http://localhost:9090/", Some(("localhost", 9090, "/api/v1/query"))),
            ("http://mimir/prometheus/", Some(("mimir", 80, "/prometheus/api/v1/query"))),
            ("http://[::1]:9090", Some(("::1", 9090, "/api/v1/query"))),
            ("localhost:9090", None),
            ("9090", None),
            ("ftp://localhost", None),
            ("https://localhost", Some(("localhost", 443, "/api/v1/query"))),
            ("https://localhost:9090", Some(("localhost", 9090, "/api/v1/query"))),
            ("http://me:secret@localhost", None),
            ("http://localhost/graph?g0.expr=up", None),
            ("", None),
        ] {
            let found = Endpoint::new(url).ok();
            let found = found.as_ref().map(|it| (&*it.host, it.port, &*it.path));
            assert_eq!(found, expected, "{url}");
        }
    }

    #[test]
    fn a_password_is_not_repeated() {
        let error = Endpoint::new("http://me:secret@localhost").unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}
