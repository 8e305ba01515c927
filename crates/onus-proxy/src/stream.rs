//! A connection of a client or to a callee, and what has come over it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::activity::Activity;
use crate::flood::Frames;

/// Sets a connection of either side up.
pub(crate) fn set_up(stream: &TcpStream) {
    // Without it a small message waits for an acknowledgement; slower, not wrong.
    let _ = stream.set_nodelay(true);
    // Without it a peer that vanished without a word holds a connection on which nothing is sent, as
    // a tunnel may be, for as long as the process lives.
    let keepalive =
        TcpKeepalive::new().with_time(SILENCE).with_interval(ASKED_EVERY).with_retries(ASKED_TIMES);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

/// How long nothing has come of a peer before the system asks it whether it is there.
const SILENCE: Duration = Duration::from_secs(60);
/// How often it is asked again that does not answer, and how many times in all.
const ASKED_EVERY: Duration = Duration::from_secs(15);
const ASKED_TIMES: u32 = 4;

/// A connection of a client, whose bytes are noticed.
pub(crate) struct Watched<S> {
    stream: S,
    activity: Arc<Activity>,
    /// Of one in HTTP/2.
    frames: Option<Frames>,
}

impl<S> Watched<S> {
    pub(crate) fn new(stream: S, activity: Arc<Activity>, frames: Option<Frames>) -> Self {
        Self { stream, activity, frames }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        let received = &buf.filled()[before..];
        if !received.is_empty() {
            this.activity.received();
            if let Some(frames) = &mut this.frames {
                frames.pass(received, &this.activity)?;
            }
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        write_pieces(Pin::new(&mut self.stream), cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A connection to a callee.
pub(crate) enum Stream {
    Plain(TcpStream),
    // Boxed: it is large, and most connections are plain.
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => write_pieces(Pin::new(stream), cx, bufs),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// Writes pieces as one where that costs less: to read a list of them takes the kernel a good part
/// of the time that it needs to send a small message.
fn write_pieces<S: AsyncWrite>(
    stream: Pin<&mut S>,
    cx: &mut Context<'_>,
    pieces: &[io::IoSlice<'_>],
) -> Poll<io::Result<usize>> {
    if let [only] = pieces {
        return stream.poll_write(cx, only);
    }
    let mut whole = [0; SMALL];
    let mut rest = &mut whole[..];
    for piece in pieces {
        let Some((room, behind)) = rest.split_at_mut_checked(piece.len()) else {
            return stream.poll_write_vectored(cx, pieces);
        };
        room.copy_from_slice(piece);
        rest = behind;
    }
    let filled = SMALL - rest.len();
    stream.poll_write(cx, &whole[..filled])
}

/// The most bytes that are put together.
const SMALL: usize = 1024;

/// Whether a client begins with HTTP/2; nothing of what it sends is taken.
pub(crate) async fn begins_with_http2(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0; PREFACE.len()];
    let mut pause = PAUSE;
    loop {
        let read = stream.peek(&mut first).await?;
        let begins = PREFACE.starts_with(&first[..read]);
        if read == 0 || !begins || read == PREFACE.len() {
            return Ok(read > 0 && begins);
        }
        // What ends there is no preface.
        if stream.ready(Interest::READABLE).await?.is_read_closed() {
            return Ok(false);
        }
        // A client that sends byte by byte. Few do, and those that do on purpose are not to keep the
        // thread busy.
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}

/// How long a client that sends byte by byte is waited for at first.
const PAUSE: Duration = Duration::from_millis(5);

/// As much of the preface as tells it from every method.
const PREFACE: &[u8; 4] = b"PRI ";

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::task::Waker;

    use super::*;

    /// Takes so many bytes at once.
    struct Socket {
        at_once: usize,
        taken: Vec<u8>,
        lists: u32,
    }

    impl AsyncWrite for Socket {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            let taken = buf.len().min(self.at_once);
            self.taken.extend(&buf[..taken]);
            Poll::Ready(Ok(taken))
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.lists += 1;
            let whole: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
            self.poll_write(cx, &whole)
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn small_pieces_are_written_as_one_and_large_ones_as_a_list() {
        fn check(lens: &[usize], at_once: usize, lists: u32) {
            let text: Vec<u8> = (0..=u8::MAX).cycle().take(lens.iter().sum()).collect();
            let mut rest = &text[..];
            let pieces: Vec<_> = lens
                .iter()
                .map(|&len| {
                    let (piece, behind) = rest.split_at(len);
                    rest = behind;
                    IoSlice::new(piece)
                })
                .collect();
            let mut socket = Socket { at_once, taken: Vec::new(), lists: 0 };
            let mut cx = Context::from_waker(Waker::noop());
            let written = write_pieces(Pin::new(&mut socket), &mut cx, &pieces);
            let Poll::Ready(Ok(written)) = written else { panic!("{lens:?}: {written:?}") };
            assert_eq!(written, text.len().min(at_once), "{lens:?}");
            assert_eq!(socket.taken, text[..written], "{lens:?}");
            assert_eq!(socket.lists, lists, "{lens:?}");
        }
        const ALL: usize = usize::MAX;
        check(&[], ALL, 0);
        check(&[5], ALL, 0);
        check(&[100_000], ALL, 0);
        check(&[88, 12], ALL, 0);
        check(&[88, 0, 12, 7], ALL, 0);
        check(&[88, 12], 90, 0);
        check(&[SMALL - 12, 12], ALL, 0);
        check(&[SMALL - 12, 13], ALL, 1);
        check(&[88, 65_536], ALL, 1);
        check(&[88, 65_536], 1_000, 1);
    }
}
