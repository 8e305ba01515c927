use http::HeaderValue;

use super::*;

/// Takes as many bytes as it has room for.
struct Socket {
    room: usize,
    taken: Vec<u8>,
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let taken = buf.len().min(self.room);
        if taken == 0 {
            return Poll::Pending;
        }
        self.room -= taken;
        self.taken.extend(&buf[..taken]);
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// What happens on a connection.
enum Step {
    /// A request arrives, whose number is the count of them.
    Request,
    /// A callee sends an interim answer to this request, which is written as these bytes.
    Interim(u64, &'static str),
    /// The answer to the last request is ready, and the server has this to write.
    Answer(&'static str),
    /// The server has more to write.
    Bytes(&'static str),
    /// The socket takes so many bytes, and the task of the connection runs.
    Room(usize),
}
use Step::{Answer, Bytes, Interim, Request, Room};

/// Runs the steps as hyper does: it writes what it has as far as it can, and flushes after that.
/// What is on the wire then, and how many interim answers were passed on and dropped.
fn check(steps: &[Step], wire: &str, [passed, dropped]: [u64; 2]) {
    let counts = Arc::new(InterimCounts::default());
    let interims = Interims::new(12, counts.clone());
    let socket = Socket { room: 0, taken: Vec::new() };
    let mut stream = Interjecting::new(socket, interims.clone());
    let mut unwritten = String::new();
    for step in steps {
        match *step {
            Request => drop(interims.next()),
            Interim(request, head) => {
                interims.lock().add_and_count(request, head, &interims);
                continue;
            }
            Answer(bytes) => {
                interims.end();
                unwritten.push_str(bytes);
            }
            Bytes(bytes) => unwritten.push_str(bytes),
            Room(room) => stream.stream.room = room,
        }
        let mut cx = Context::from_waker(Waker::noop());
        while !unwritten.is_empty() {
            let write = Pin::new(&mut stream).poll_write(&mut cx, unwritten.as_bytes());
            let Poll::Ready(written) = write else { break };
            unwritten.drain(..written.unwrap());
        }
        if unwritten.is_empty() {
            let _ = Pin::new(&mut stream).poll_flush(&mut cx);
        }
    }
    assert_eq!(String::from_utf8_lossy(&stream.stream.taken), wire);
    drop(stream);
    drop(interims);
    let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
    assert_eq!([read(&counts.passed), read(&counts.dropped)], [passed, dropped], "{wire}");
}

impl Waiting {
    fn add_and_count(&mut self, request: u64, head: &str, interims: &Interims) {
        let lost = self.add(request, head.as_bytes(), interims.max);
        interims.wait.store(true, Ordering::Relaxed);
        interims.counts.dropped.fetch_add(lost, Ordering::Relaxed);
    }
}

const ALL: usize = 1_000;

#[test]
fn interim_answers_are_written_before_the_answer_and_between_whole_messages() {
    // As soon as they come, and in their order.
    check(&[Room(ALL), Request, Interim(1, "a"), Room(ALL)], "a", [1, 0]);
    check(
        &[Room(ALL), Request, Interim(1, "a"), Interim(1, "b"), Room(ALL), Answer("200")],
        "ab200",
        [2, 0],
    );
    // Together with the answer.
    check(&[Room(ALL), Request, Interim(1, "a"), Answer("200")], "a200", [1, 0]);
    // Before the server has told the client to go on, and after it.
    check(
        &[Room(ALL), Request, Interim(1, "a"), Bytes("100"), Interim(1, "b"), Answer("200")],
        "a100b200",
        [2, 0],
    );
}

#[test]
fn no_message_is_torn_by_another() {
    // An interim answer is finished before anything else.
    check(
        &[Room(2), Request, Interim(1, "abcd"), Room(2), Answer("200"), Room(1), Room(ALL)],
        "abcd200",
        [1, 0],
    );
    // What the server has begun is finished first, and what waits comes then.
    check(
        &[Room(2), Request, Bytes("100"), Interim(1, "a"), Room(ALL), Answer("200")],
        "100a200",
        [1, 0],
    );
    // Not so where the answer follows at once: hyper writes both as one.
    check(
        &[Room(2), Request, Bytes("100"), Interim(1, "a"), Answer("200"), Room(ALL)],
        "100200",
        [0, 1],
    );
}

#[test]
fn nothing_follows_the_head_of_the_answer() {
    check(
        &[Room(ALL), Request, Answer("200"), Interim(1, "a"), Room(ALL), Bytes("body")],
        "200body",
        [0, 1],
    );
    // Also where it is written in parts, and where it becomes a tunnel.
    check(
        &[Room(2), Request, Answer("101"), Interim(1, "a"), Room(ALL), Bytes("x"), Bytes("y")],
        "101xy",
        [0, 1],
    );
    // No request has come yet, or it cannot have any.
    check(&[Room(ALL), Interim(1, "a"), Bytes("400"), Room(ALL)], "400", [0, 1]);
}

#[test]
fn an_interim_answer_is_of_one_request_only() {
    // The second has arrived while the answer to the first is being written.
    let written = [
        Room(2),
        Request,
        Answer("200"),
        Request,
        Interim(2, "b"),
        Room(ALL),
        Interim(2, "c"),
        Answer("404"),
    ];
    check(&written, "200bc404", [2, 0]);
    // An attempt for the first that was given up is heard of late.
    let late = [
        Room(ALL),
        Request,
        Answer("200"),
        Request,
        Interim(1, "a"),
        Room(ALL),
        Interim(2, "b"),
        Interim(1, "a"),
        Answer("404"),
    ];
    check(&late, "200b404", [1, 2]);
    let unread = [Room(0), Request, Interim(1, "a"), Interim(2, "b"), Interim(2, "c")];
    check(&unread, "", [0, 3]);
}

#[test]
fn what_a_client_does_not_read_waits_up_to_a_limit() {
    check(
        &[Request, Interim(1, "12345"), Interim(1, "67890"), Interim(1, "abc"), Room(ALL)],
        "1234567890",
        [2, 1],
    );
    // What is being written has left the queue.
    check(
        &[
            Request,
            Interim(1, "1234567890ab"),
            Room(1),
            Interim(1, "1234567890ab"),
            Interim(1, "x"),
            Room(ALL),
        ],
        "1234567890ab1234567890ab",
        [2, 1],
    );
}

#[test]
fn an_interim_answer_is_written_without_what_was_for_the_last_connection() {
    fn check(status: u16, lines: &[(&'static str, &'static str)], wire: &str) {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let written = head(status.try_into().unwrap(), &headers);
        assert_eq!(String::from_utf8(written).unwrap(), wire);
    }
    check(102, &[], "HTTP/1.1 102 Processing\r\n\r\n");
    check(199, &[], "HTTP/1.1 199 \r\n\r\n");
    check(
        103,
        &[
            ("link", "</a>"),
            ("content-length", "5"),
            ("transfer-encoding", "chunked"),
            ("connection", "x-hop, close"),
            ("x-hop", "1"),
            ("upgrade", "h2c"),
            ("onus-claim", "claimed"),
            ("link", "</b>"),
        ],
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nlink: </b>\r\n\r\n",
    );
}

#[test]
fn whoever_hears_something_wakes_the_connection() {
    use std::task::Wake;
    struct Bell(AtomicU64);
    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let bells = [Arc::new(Bell(AtomicU64::new(0))), Arc::new(Bell(AtomicU64::new(0)))];
    let interims = Interims::new(ALL, Arc::default());
    let socket = Socket { room: ALL, taken: Vec::new() };
    let mut stream = Interjecting::new(socket, interims.clone());
    let number = interims.next();
    for bell in &bells {
        let waker = Waker::from(bell.clone());
        let flushed = Pin::new(&mut stream).poll_flush(&mut Context::from_waker(&waker));
        assert!(flushed.is_ready());
        interims.hear(number, StatusCode::CONTINUE, &HeaderMap::new());
        assert_eq!(bell.0.load(Ordering::Relaxed), 0, "the server says that one itself");
        interims.hear(number, StatusCode::EARLY_HINTS, &HeaderMap::new());
        assert_eq!(bell.0.load(Ordering::Relaxed), 1);
    }
}
