//! TLS to the analysis: whom to believe, and who this service is. Without the feature `report-tls`
//! there is none.

use hyper_util::client::legacy::connect::HttpConnector;

use super::ReportError;

/// What is said of TLS.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tls {
    #[cfg(feature = "report-tls")]
    pub(crate) authorities: Option<std::path::PathBuf>,
    #[cfg(feature = "report-tls")]
    pub(crate) identity: Option<(std::path::PathBuf, std::path::PathBuf)>,
}

#[cfg(not(feature = "report-tls"))]
pub(crate) type Connector = HttpConnector;
#[cfg(feature = "report-tls")]
pub(crate) type Connector = hyper_rustls::HttpsConnector<HttpConnector>;

impl Tls {
    /// Whether an address of this scheme can be reached.
    pub(crate) fn reaches(&self, scheme: Option<&str>) -> bool {
        match scheme {
            Some("http") => true,
            #[cfg(feature = "report-tls")]
            Some("https") => self.authorities.is_some(),
            _ => false,
        }
    }

    /// Whether the files may say something else by now.
    pub(crate) fn may_change(&self) -> bool {
        #[cfg(feature = "report-tls")]
        return self.authorities.is_some();
        #[cfg(not(feature = "report-tls"))]
        false
    }

    #[cfg(not(feature = "report-tls"))]
    pub(crate) fn connector(&self) -> Result<Connector, ReportError> {
        Ok(HttpConnector::new())
    }

    /// A connector by what the files say.
    #[cfg(feature = "report-tls")]
    pub(crate) fn connector(&self) -> Result<Connector, ReportError> {
        use std::sync::Arc;

        use rustls::{ClientConfig, RootCertStore};
        use rustls_pki_types::pem::PemObject;
        use rustls_pki_types::{CertificateDer, PrivateKeyDer};

        fn wrong(
            path: &std::path::Path,
        ) -> impl FnOnce(rustls_pki_types::pem::Error) -> ReportError + '_ {
            |why| ReportError::Tls { path: path.to_owned(), why: why.to_string() }
        }
        let certificates = |path: &std::path::Path| {
            let found = CertificateDer::pem_file_iter(path).map_err(wrong(path))?;
            found.collect::<Result<Vec<_>, _>>().map_err(wrong(path))
        };
        let mut roots = RootCertStore::empty();
        if let Some(path) = &self.authorities {
            for authority in certificates(path)? {
                let added = roots.add(authority);
                added
                    .map_err(|why| ReportError::Tls { path: path.clone(), why: why.to_string() })?;
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|why| ReportError::Tls { path: "TLS".into(), why: why.to_string() })?
            .with_root_certificates(roots);
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let secret = PrivateKeyDer::from_pem_file(key).map_err(wrong(key))?;
                builder.with_client_auth_cert(chain, secret).map_err(|why| ReportError::Tls {
                    path: certificate.clone(),
                    why: why.to_string(),
                })?
            }
        };
        let builder = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config);
        Ok(builder.https_or_http().enable_http1().build())
    }
}
