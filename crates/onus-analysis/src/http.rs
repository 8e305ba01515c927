//! The HTTP API: what agents send and ask, and what people and tools read.

mod backup;
mod body;
mod classes;
mod edges;
mod health;
mod metrics;
mod now;
mod orders;
mod overrides;
mod problem;
mod query;
mod reports;
mod storms;
mod who;

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use tokio::net::TcpListener;

use crate::engine::Analysis;
use crate::tls::{Peer, TlsError, TlsListener};

/// The listener of an analysis.
#[derive(Debug)]
pub struct Server {
    analysis: Analysis,
    listener: TcpListener,
}

/// Why the analysis does not listen.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be had.
    #[error("listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Strangers could report and order.
    #[error(
        "listen on {address}: there are no `grants`, and this is no address of loopback; add grants, or say `open: true`"
    )]
    Unguarded {
        /// The address.
        address: SocketAddr,
    },
    /// The certificate cannot be used.
    #[error("read the certificate")]
    Tls(#[source] TlsError),
    /// The listener broke.
    #[error("serve")]
    Serve(#[source] io::Error),
}

impl Server {
    /// Listens where the configuration says.
    ///
    /// # Errors
    ///
    /// If the address cannot be had.
    pub async fn bind(analysis: Analysis) -> Result<Self, ServeError> {
        let address = analysis.config().listen;
        if analysis.access().is_open() && !analysis.config().open && !address.ip().is_loopback() {
            return Err(ServeError::Unguarded { address });
        }
        let listener = TcpListener::bind(address)
            .await
            .map_err(|source| ServeError::Listen { address, source })?;
        Ok(Self { analysis, listener })
    }

    /// Where it listens.
    ///
    /// # Errors
    ///
    /// If the socket is gone.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.analysis.config().tls.is_some() { "https" } else { "http" }
    }

    /// Serves until `end`, and then what is under way.
    ///
    /// # Errors
    ///
    /// If the listener breaks.
    pub async fn serve(
        self,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let tls = self.analysis.config().tls.clone();
        let router = router(self.analysis);
        let served = match tls {
            None => axum::serve(self.listener, router).with_graceful_shutdown(end).await,
            Some(files) => {
                let listener = TlsListener::start(self.listener, files).map_err(ServeError::Tls)?;
                let service = router.into_make_service_with_connect_info::<Peer>();
                axum::serve(listener, service).with_graceful_shutdown(end).await
            }
        };
        served.map_err(ServeError::Serve)
    }
}

fn router(analysis: Analysis) -> Router {
    let limit = analysis.config().limits.report_bytes;
    Router::new()
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::scrape))
        .route("/openapi.json", get(health::openapi))
        .route("/api/v1/reports", post(reports::take))
        .route("/api/v1/classes", get(classes::page))
        .route("/api/v1/edges", get(edges::page))
        .route("/api/v1/graph", get(storms::graph))
        .route("/api/v1/incident", get(storms::incident))
        .route("/api/v1/radius", get(storms::radius))
        .route("/api/v1/window", get(storms::window))
        .route("/api/v1/now", get(now::snapshot))
        .route("/api/v1/orders", get(orders::all).post(orders::order))
        .route("/api/v1/overrides", post(overrides::set))
        .route("/api/v1/overrides/apply", post(overrides::apply))
        .route("/api/v1/overrides/drop", post(overrides::drop_one))
        .route("/api/v1/audit", get(orders::audit))
        .route("/api/v1/backup", get(backup::copy))
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .layer(DefaultBodyLimit::max(limit))
        .with_state(analysis)
}
