//! `GET /api/v1/backup`: a copy of the store while it runs.

use std::io::Read;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::State;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::problem::Refusal;
use crate::access::{Role, Who};
use crate::engine::Analysis;

/// Pieces that wait for the client, and their size.
const WAITING: usize = 4;
const PIECE: usize = 256 * 1024;
/// How long a client may take for a piece.
const STALLED: Duration = Duration::from_secs(30);

pub(crate) async fn copy(State(analysis): State<Analysis>, who: Who) -> Result<Response, Refusal> {
    who.must_be(Role::Admin)?;
    tracing::info!(by = who.name, "onus analysis: a backup is taken");
    let (mut copied, permit) = analysis.backup().await?;
    let length = copied.length;
    let (sender, pieces) = mpsc::channel(WAITING);
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let mut piece = vec![0; PIECE];
        loop {
            let read = copied.file.read(&mut piece);
            let last = read.as_ref().map_or(true, |&length| length == 0);
            let read = read.map(|length| Bytes::copy_from_slice(&piece[..length]));
            if last && read.is_ok() {
                break;
            }
            // A client that has gone, or takes nothing, keeps nobody else from a copy.
            let sent = runtime.block_on(tokio::time::timeout(STALLED, sender.send(read)));
            if last || !matches!(sent, Ok(Ok(()))) {
                break;
            }
        }
        drop((copied, permit));
    });
    let headers = [
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_LENGTH, length.to_string()),
    ];
    Ok((headers, axum::body::Body::new(Pieces(pieces))).into_response())
}

/// A file as a body.
struct Pieces(mpsc::Receiver<std::io::Result<Bytes>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let piece = self.0.poll_recv(context);
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
