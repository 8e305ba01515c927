//! What a channel of tonic says where there is no answer.

use std::net::SocketAddr;
use std::time::Duration;

use onus::{CallError, Onus};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tonic::transport::Endpoint;

use super::two;
use super::wire::Client;
use crate::cast::counted;
use crate::sockets::peer::Peer;

/// A peer that reads what comes first, and closes after these bytes.
async fn by_hand(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(bytes).await;
        }
    });
    address
}

#[tokio::test]
async fn errors_are_told_apart_for_policies() {
    let check = async |address: SocketAddr, retried: CallError, made: u64| {
        let policy = two().errors([retried].into_iter().collect());
        let shop = Onus::builder("shop").retry("ledger", policy).build().unwrap();
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let channel = endpoint.timeout(Duration::from_millis(50)).connect_lazy();
        let mut client = Client::over(shop.outbound("ledger").tonic(channel));
        client.unary("ask".to_owned()).await.unwrap_err();
        let counted = counted(&shop, "onus_retries_total", &[("verdict", "made")]);
        assert_eq!(counted, made, "{address} {retried:?}");
    };
    let nobody = "127.0.0.1:1".parse().unwrap();
    let closes = by_hand(b"").await;
    let babbles = by_hand(b"this is not HTTP/2\r\n\r\n").await;
    let silent = Peer::start(|_, _| None).await;
    for (address, kind) in [
        (nobody, CallError::Connect),
        (closes, CallError::Reset),
        (babbles, CallError::Reset),
        // The channel's own limit.
        (silent.address, CallError::Timeout),
    ] {
        for retried in [CallError::Connect, CallError::Reset, CallError::Timeout] {
            check(address, retried, u64::from(retried == kind)).await;
        }
    }
}
