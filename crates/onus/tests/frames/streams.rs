//! HTTP/2 frame by frame: what a script sends on a stream is what is on the wire.

use std::future::poll_fn;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tokio::sync::Mutex;

use super::notes::{Notes, Seen, Stub};

/// One stream, at the answering end.
pub(crate) struct Stream {
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    sends: Option<SendStream<Bytes>>,
    notes: Arc<Notes>,
    /// Which stream of the stub this is, from 0.
    pub(crate) number: usize,
}

/// A stub that runs `script` on each stream.
pub(crate) async fn streams<F>(script: impl Fn(Stream) -> F + Clone + Send + 'static) -> Stub
where
    F: Future<Output = ()> + Send + 'static,
{
    streams_with(h2::server::Builder::new(), script).await
}

/// The same with these settings.
pub(crate) async fn streams_with<F>(
    settings: h2::server::Builder,
    script: impl Fn(Stream) -> F + Clone + Send + 'static,
) -> Stub
where
    F: Future<Output = ()> + Send + 'static,
{
    let count = Arc::new(Mutex::new(0));
    Stub::listen(move |stream, _, notes| {
        let (script, count, settings) = (script.clone(), count.clone(), settings.clone());
        async move {
            let Ok(mut connection) = settings.handshake(stream).await else { return };
            while let Some(Ok((request, respond))) = connection.accept().await {
                let mut count = count.lock().await;
                let number = *count;
                *count += 1;
                let notes = notes.clone();
                tokio::spawn(script(Stream { request, respond, sends: None, notes, number }));
            }
        }
    })
    .await
}

impl Stream {
    /// Reads the request to its end and notes it. `None` if it breaks.
    pub(crate) async fn request(&mut self) -> Option<Seen> {
        let body = self.bytes(usize::MAX).await?;
        let trailers = self.request.body_mut().trailers().await.ok()?;
        let seen = Seen {
            method: self.request.method().clone(),
            uri: self.request.uri().clone(),
            headers: self.request.headers().clone(),
            body,
            trailers: trailers.unwrap_or_default(),
        };
        self.notes.note(seen.clone());
        Some(seen)
    }

    /// Reads data until there are this many bytes, or the request ends. `None` if it breaks.
    pub(crate) async fn bytes(&mut self, count: usize) -> Option<Bytes> {
        let mut all = BytesMut::new();
        while all.len() < count {
            let Some(data) = self.request.body_mut().data().await else { break };
            let data = data.ok()?;
            let body = self.request.body_mut();
            body.flow_control().release_capacity(data.len()).expect("it was received");
            all.extend_from_slice(&data);
        }
        Some(all.freeze())
    }

    /// An interim answer.
    pub(crate) fn interim(&mut self, status: u16) {
        let interim = Response::builder().status(status).body(()).expect("a head");
        let _ = self.respond.send_informational(interim);
    }

    /// HEADERS.
    pub(crate) fn head(&mut self, status: u16, headers: &[(&'static str, &'static str)]) {
        self.sends = self.respond.send_response(head(status, headers), false).ok();
    }

    /// HEADERS that end the stream.
    pub(crate) fn ends(&mut self, status: u16, headers: &[(&'static str, &'static str)]) {
        let _ = self.respond.send_response(head(status, headers), true);
    }

    /// DATA.
    pub(crate) fn data(&mut self, data: impl Into<Bytes>) {
        let _ = self.stream().send_data(data.into(), false);
    }

    /// DATA that ends the stream.
    pub(crate) fn last(&mut self, data: impl Into<Bytes>) {
        let _ = self.stream().send_data(data.into(), true);
    }

    /// HEADERS behind the data.
    pub(crate) fn trailers(&mut self, lines: &[(&'static str, &'static str)]) {
        let _ = self.stream().send_trailers(block(lines));
    }

    /// RST_STREAM.
    pub(crate) fn reset(&mut self, reason: Reason) {
        match &mut self.sends {
            Some(sends) => sends.send_reset(reason),
            None => self.respond.send_reset(reason),
        }
    }

    /// Waits until the caller has given the stream up, and says how; `None` with the connection.
    pub(crate) async fn gone(&mut self) -> Option<Reason> {
        let reset = match &mut self.sends {
            Some(sends) => poll_fn(|cx| sends.poll_reset(cx)).await,
            None => poll_fn(|cx| self.respond.poll_reset(cx)).await,
        };
        reset.ok()
    }

    fn stream(&mut self) -> &mut SendStream<Bytes> {
        self.sends.as_mut().expect("the head was sent, and its stream is open")
    }
}

fn head(status: u16, lines: &[(&'static str, &'static str)]) -> Response<()> {
    let mut response = Response::builder().status(status).body(()).expect("a head");
    *response.headers_mut() = block(lines);
    response
}

pub(crate) fn block(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut block = HeaderMap::new();
    for &(name, value) in lines {
        block.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    block
}
