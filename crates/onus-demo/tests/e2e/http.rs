//! A client without Onus and without the demo's own: bytes on a socket.

use std::net::SocketAddr;

use onus_demo::Cluster;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An answer as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} twice in {self:?}");
        value
    }
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.to_ascii_lowercase(), value.to_owned())
    });
    Answer { status, headers: headers.collect(), body: body.to_owned() }
}

/// What each service says it has handled.
pub(crate) async fn counts(cluster: &Cluster) -> Vec<u64> {
    let mut counts = Vec::new();
    for (_, address) in cluster.addresses() {
        let answer = get(*address, "/count").await;
        assert_eq!(answer.status, 200);
        counts.push(answer.body.parse().unwrap());
    }
    counts
}
