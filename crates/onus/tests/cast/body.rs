//! A body that comes in the pieces it is made of.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::Sleep;

/// A body that comes in the pieces it is made of.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pieces: VecDeque<Piece>,
    sleep: Option<Pin<Box<Sleep>>>,
    /// Whether the size is told beforehand, as by `content-length`.
    sized: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Data(Bytes),
    Trailers(Vec<(&'static str, &'static str)>),
    /// The body ends here with an error.
    Break,
    /// Nothing comes for this long.
    Wait(Duration),
    /// Nothing comes any more.
    Hang,
}

impl Pieces {
    /// A body whose size nobody is told.
    pub(crate) fn new(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self { pieces: pieces.into_iter().collect(), sleep: None, sized: false }
    }

    pub(crate) fn empty() -> Self {
        Self::default()
    }

    /// One piece, of known size.
    pub(crate) fn sized(data: impl Into<Bytes>) -> Self {
        Self::of_size([Piece::data(data)])
    }

    /// Pieces of known size together.
    pub(crate) fn of_size(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self { sized: true, ..Self::new(pieces) }
    }

    /// Pieces of `size` bytes, `count` of them, of unknown size.
    pub(crate) fn chunked(count: usize, size: usize) -> Self {
        Self::new((0..count).map(|n| Piece::data(vec![b'a' + (n % 26) as u8; size])))
    }
}

impl Piece {
    pub(crate) fn data(data: impl Into<Bytes>) -> Self {
        Self::Data(data.into())
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(cx));
                self.sleep = None;
            }
            let Some(piece) = self.pieces.pop_front() else { return Poll::Ready(None) };
            return Poll::Ready(Some(match piece {
                Piece::Data(data) => Ok(Frame::data(data)),
                Piece::Trailers(lines) => Ok(Frame::trailers(block(&lines))),
                Piece::Break => Err(Broken("the body broke")),
                Piece::Wait(time) => {
                    self.sleep = Some(Box::pin(tokio::time::sleep(time)));
                    continue;
                }
                Piece::Hang => {
                    self.pieces.push_front(Piece::Hang);
                    return Poll::Pending;
                }
            }));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let size = |piece: &Piece| match piece {
            Piece::Data(data) => data.len() as u64,
            Piece::Trailers(_) | Piece::Break | Piece::Wait(_) | Piece::Hang => 0,
        };
        match self.sized {
            true => SizeHint::with_exact(self.pieces.iter().map(size).sum()),
            false => SizeHint::default(),
        }
    }
}

/// The data of a body to its end.
pub(crate) async fn read<B>(body: B) -> Result<Bytes, B::Error>
where
    B: Body,
{
    Ok(body.collect().await?.to_bytes())
}

pub(crate) fn block(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let line = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    lines.iter().map(line).collect()
}

/// What a transport says when there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub(crate) &'static str);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Broken {}
