//! tonic on both sides: a service that is healthy as long as the ledger is.
//!
//! ```sh
//! RUST_LOG=info cargo run -p onus --example tonic --features tonic
//! ```
//!
//! Nobody answers at `ledger`, so a health check of this service fails, and its claim says whose
//! error it is. With `RUST_LOG=onus=debug` the log shows each decision.

use onus::{Onus, RetryPolicy};
use tokio_stream::{Once, once};
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status, async_trait};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

struct Shop {
    // As it was, but for the type of the channel.
    ledger: HealthClient<onus::tonic::Channel>,
}

#[async_trait]
impl Health for Shop {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let request = request.into_inner();
        tracing::info!(service = request.service, "checked");
        self.ledger.clone().check(request).await
    }

    type WatchStream = Once<Result<HealthCheckResponse, Status>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        Ok(self.check(request).await?.map(|now| once(Ok(now))))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt::init();

    let onus = Onus::builder("shop").retry("ledger", RetryPolicy::attempts(2)).build()?;
    let channel = Endpoint::from_static("http://127.0.0.1:3001").connect_lazy();
    let ledger = HealthClient::new(onus.outbound("ledger").tonic(channel));

    let mut server = Server::builder().layer(onus.inbound()); // outermost
    server.add_service(HealthServer::new(Shop { ledger })).serve("127.0.0.1:3000".parse()?).await?;
    Ok(())
}
