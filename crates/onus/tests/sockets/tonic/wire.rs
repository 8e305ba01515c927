//! Messages that are text, without a schema, and the four kinds of calls that carry them.

use bytes::{Buf, BufMut};
use http::uri::PathAndQuery;
use onus::Onus;
use tokio_stream::{Stream, StreamExt};
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::{Channel, Endpoint};
use tonic::{IntoRequest, IntoStreamingRequest, Response, Status, Streaming};

pub(crate) const UNARY: &str = "/talk.Talk/Unary";
pub(crate) const UPLOAD: &str = "/talk.Talk/Upload";
pub(crate) const WATCH: &str = "/talk.Talk/Watch";
pub(crate) const TALK: &str = "/talk.Talk/Talk";

/// Takes text for a message.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Text;

impl Codec for Text {
    type Encode = String;
    type Decode = String;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Text {
    type Item = String;
    type Error = Status;

    fn encode(&mut self, text: String, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(text.as_bytes());
        Ok(())
    }
}

impl Decoder for Text {
    type Item = String;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<String>, Status> {
        let bytes = from.copy_to_bytes(from.remaining());
        Ok(Some(String::from_utf8(bytes.to_vec()).expect("messages are text")))
    }
}

/// What tonic generates for a client, in four methods.
#[derive(Clone)]
pub(crate) struct Client<S = onus::tonic::Channel>(Grpc<S>);

/// A channel that connects when it is first used.
pub(crate) fn channel(address: std::net::SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).expect("an address").connect_lazy()
}

impl Client {
    pub(crate) fn new(onus: &Onus, callee: &str, address: std::net::SocketAddr) -> Self {
        Self::over(onus.outbound(callee).tonic(channel(address)))
    }

    pub(crate) fn over(channel: onus::tonic::Channel) -> Self {
        Self(Grpc::new(channel))
    }
}

impl Client<Channel> {
    /// A client without Onus.
    pub(crate) fn plain(address: std::net::SocketAddr) -> Self {
        Self::without(channel(address))
    }

    pub(crate) fn without(channel: Channel) -> Self {
        Self(Grpc::new(channel))
    }
}

impl<S> Client<S>
where
    S: tonic::client::GrpcService<tonic::body::Body>,
    S::ResponseBody: http_body::Body + Send + 'static,
    <S::ResponseBody as http_body::Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    S::Error: std::fmt::Debug,
{
    async fn ready(&mut self) -> &mut Grpc<S> {
        self.0.ready().await.expect("a lazy channel takes every call");
        &mut self.0
    }

    pub(crate) async fn unary(
        &mut self,
        request: impl IntoRequest<String>,
    ) -> Result<Response<String>, Status> {
        self.ready().await.unary(request.into_request(), path(UNARY), Text).await
    }

    pub(crate) async fn upload(
        &mut self,
        request: impl IntoStreamingRequest<Message = String>,
    ) -> Result<Response<String>, Status> {
        let request = request.into_streaming_request();
        self.ready().await.client_streaming(request, path(UPLOAD), Text).await
    }

    pub(crate) async fn watch(
        &mut self,
        request: impl IntoRequest<String>,
    ) -> Result<Response<Streaming<String>>, Status> {
        self.ready().await.server_streaming(request.into_request(), path(WATCH), Text).await
    }

    pub(crate) async fn talk(
        &mut self,
        request: impl IntoStreamingRequest<Message = String>,
    ) -> Result<Response<Streaming<String>>, Status> {
        self.ready().await.streaming(request.into_streaming_request(), path(TALK), Text).await
    }

    /// A call of the kind that `method` names: the messages that come, and how it ends.
    pub(crate) async fn call(&mut self, method: &str) -> (String, Result<(), Status>) {
        let both = || tokio_stream::iter(["a", "b"].map(str::to_owned));
        let answer = match method {
            UNARY => return whole(self.unary("ab".to_owned()).await),
            UPLOAD => return whole(self.upload(both()).await),
            WATCH => self.watch("ab".to_owned()).await,
            TALK => self.talk(both()).await,
            other => panic!("{other} is no method"),
        };
        match answer {
            Ok(stream) => all(stream.into_inner()).await,
            Err(status) => (String::new(), Err(status)),
        }
    }
}

fn whole(answer: Result<Response<String>, Status>) -> (String, Result<(), Status>) {
    match answer {
        Ok(answer) => (answer.into_inner(), Ok(())),
        Err(status) => (String::new(), Err(status)),
    }
}

/// All messages of a stream in one, and how it ends.
pub(crate) async fn all(
    mut messages: impl Stream<Item = Result<String, Status>> + Unpin,
) -> (String, Result<(), Status>) {
    let mut text = String::new();
    while let Some(message) = messages.next().await {
        match message {
            Ok(message) => text += &message,
            Err(status) => return (text, Err(status)),
        }
    }
    (text, Ok(()))
}

fn path(method: &str) -> PathAndQuery {
    method.parse().expect("a path")
}
