//! A name server that says what a test tells it to.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;

/// What a name leads to.
#[derive(Clone, Debug)]
pub(super) enum Says {
    Addresses(Vec<IpAddr>),
    /// No answer but this code.
    Code(u8),
    /// Nothing at all.
    Silence,
}

impl Says {
    /// The name is there and has no address.
    pub(super) const EMPTY: Self = Self::Code(0);
    pub(super) const SERVER_FAILED: Self = Self::Code(2);
    pub(super) const NO_SUCH_NAME: Self = Self::Code(3);
}

/// A name server at the port of name servers.
pub(super) struct Dns {
    names: Arc<Mutex<HashMap<String, Says>>>,
}

impl Dns {
    pub(super) async fn start() -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 53)).await.expect("the port is free");
        let names: Arc<Mutex<HashMap<_, _>>> = Arc::default();
        let known = names.clone();
        tokio::spawn(async move {
            let mut question = [0; 512];
            loop {
                let (length, from) = socket.recv_from(&mut question).await.expect("it is bound");
                let question = &question[..length];
                let says = known.lock().expect("nobody panics here").get(&name(question)).cloned();
                if let Some(answer) = answer(question, &says.unwrap_or(Says::NO_SUCH_NAME)) {
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
        Self { names }
    }

    /// From now on `name` leads there.
    pub(super) fn says(&self, name: &str, says: Says) {
        self.names.lock().expect("nobody panics here").insert(name.to_owned(), says);
    }
}

/// The name that a question is about.
fn name(question: &[u8]) -> String {
    let mut labels = Vec::new();
    let mut rest = &question[HEAD..];
    while let [length @ 1..=63, more @ ..] = rest {
        let (label, behind) = more.split_at(usize::from(*length));
        labels.push(String::from_utf8_lossy(label).into_owned());
        rest = behind;
    }
    labels.join(".")
}

/// The answer to a question of one name (RFC 1035, section 4).
fn answer(question: &[u8], says: &Says) -> Option<Vec<u8>> {
    let end = HEAD + question[HEAD..].iter().position(|byte| *byte == 0)? + 1 + 4;
    let kind = question[end - 3];
    let (code, addresses) = match says {
        Says::Addresses(addresses) => (0, &addresses[..]),
        Says::Code(code) => (*code, &[][..]),
        Says::Silence => return None,
    };
    let of_kind = addresses.iter().filter_map(|address| match (address, kind) {
        (IpAddr::V4(ip), A) => Some(ip.octets().to_vec()),
        (IpAddr::V6(ip), AAAA) => Some(ip.octets().to_vec()),
        (IpAddr::V4(_) | IpAddr::V6(_), _) => None,
    });
    let of_kind: Vec<_> = of_kind.collect();
    let [high, low] = u16::try_from(of_kind.len()).expect("a test has few").to_be_bytes();
    let mut answer = question[..2].to_vec();
    // A response, with recursion as asked for; one question, so many answers, nothing more.
    answer.extend([0x81, 0x80 | code, 0, 1, high, low, 0, 0, 0, 0]);
    answer.extend(&question[HEAD..end]);
    for data in of_kind {
        // The name of the question, its kind, the internet, no time to live.
        answer.extend([0xc0, HEAD as u8, 0, kind, 0, 1, 0, 0, 0, 0, 0, data.len() as u8]);
        answer.extend(data);
    }
    Some(answer)
}

/// The length of the head of a message.
const HEAD: usize = 12;
const A: u8 = 1;
const AAAA: u8 = 28;
