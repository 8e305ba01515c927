//! What a message says of the way it came: `Via` (RFC 9110), `Forwarded` (RFC 7239), and the
//! `X-Forwarded-…` that came before it. And requests that come back to where they have been.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::{HOST, HeaderMap, HeaderName, HeaderValue, VIA};
use http::uri::Authority;
use http::{Request, Response, Version};

/// What one side of the proxy writes, and whom it believes.
#[derive(Debug)]
pub(crate) struct Forwarding {
    /// The name of this side in `Via`, which no other has.
    via: Option<String>,
    forwarded: bool,
    x_forwarded: bool,
    /// Clients whose own words stay.
    trusted: Vec<Network>,
}

/// What is written about the requests of one client.
#[derive(Clone, Debug)]
pub(crate) struct Forwarder {
    rules: Arc<Forwarding>,
    client: IpAddr,
    proto: &'static str,
    is_trusted: bool,
}

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    address: IpAddr,
    bits: u8,
}

/// Mark of a request that has been here before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looped;

impl Forwarding {
    /// The rules of a side; `None` where it writes nothing.
    pub(crate) fn new(
        side: &str,
        service: &str,
        via: bool,
        forwarded: bool,
        x_forwarded: bool,
        trusted: Vec<Network>,
    ) -> Option<Arc<Self>> {
        // A token of HTTP; the number tells the instances of a service apart.
        let is_sign = |sign: char| sign.is_ascii_alphanumeric() || "-._".contains(sign);
        let name: String =
            service.chars().map(|sign| if is_sign(sign) { sign } else { '-' }).collect();
        let via = via.then(|| format!("onus-{name}-{:08x}-{side}", fastrand::u32(..)));
        (via.is_some() || forwarded || x_forwarded)
            .then(|| Arc::new(Self { via, forwarded, x_forwarded, trusted }))
    }

    /// What is written about a client.
    pub(crate) fn of(self: &Arc<Self>, client: SocketAddr, is_tls: bool) -> Forwarder {
        let client = client.ip().to_canonical();
        Forwarder {
            rules: self.clone(),
            client,
            proto: if is_tls { "https" } else { "http" },
            is_trusted: self.trusted.iter().any(|network| network.has(client)),
        }
    }
}

impl Forwarder {
    /// Writes into a request, unless it was here before.
    pub(crate) fn pass<B>(&self, request: &mut Request<B>) -> Result<(), Looped> {
        let rules = &self.rules;
        let (version, authority) = (request.version(), request.uri().authority().cloned());
        let headers = request.headers_mut();
        if let Some(via) = &rules.via {
            if headers.get_all(VIA).iter().any(|line| names(line, via)) {
                return Err(Looped);
            }
            self.sign(version, headers);
        }
        if !(rules.forwarded || rules.x_forwarded) {
            return Ok(());
        }
        // Only what this proxy or somebody it believes has written reaches the next one.
        if !self.is_trusted {
            for name in [FORWARDED, X_FORWARDED_FOR, X_FORWARDED_PROTO, X_FORWARDED_HOST] {
                headers.remove(name);
            }
        }
        let host =
            authority.as_ref().map(Authority::as_str).map(str::to_owned).or_else(|| {
                headers.get(HOST).and_then(|host| host.to_str().ok()).map(str::to_owned)
            });
        if rules.forwarded {
            append(headers, &FORWARDED, &self.forwarded(host.as_deref()));
        }
        if rules.x_forwarded {
            append(headers, &X_FORWARDED_FOR, &self.client.to_string());
            if !headers.contains_key(X_FORWARDED_PROTO) {
                headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(self.proto));
            }
            if let Some(host) = host.and_then(|host| HeaderValue::try_from(host).ok())
                && !headers.contains_key(X_FORWARDED_HOST)
            {
                headers.insert(X_FORWARDED_HOST, host);
            }
        }
        Ok(())
    }

    /// Writes into the answer of a callee.
    pub(crate) fn back<B>(&self, response: &mut Response<B>) {
        self.sign(response.version(), response.headers_mut());
    }

    fn sign(&self, version: Version, headers: &mut HeaderMap) {
        let Some(name) = &self.rules.via else { return };
        let version = match version {
            Version::HTTP_2 => "2",
            Version::HTTP_10 => "1.0",
            _ => "1.1",
        };
        append(headers, &VIA, &format!("{version} {name}"));
    }

    /// One element of RFC 7239, section 4.
    fn forwarded(&self, host: Option<&str>) -> String {
        let client = match self.client {
            IpAddr::V4(client) => client.to_string(),
            IpAddr::V6(client) => format!("\"[{client}]\""),
        };
        let is_token = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
        };
        let host = host.filter(|host| !host.contains(['"', '\\']));
        let host = host.map_or_else(String::new, |host| match is_token(host) {
            true => format!(";host={host}"),
            false => format!(";host=\"{host}\""),
        });
        format!("for={client}{host};proto={}", self.proto)
    }
}

/// Whether an element of `Via` has this name.
fn names(line: &HeaderValue, name: &str) -> bool {
    line.as_bytes().split(|&byte| byte == b',').any(|element| {
        let mut words = element.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        words.nth(1).is_some_and(|received_by| received_by == name.as_bytes())
    })
}

/// Adds an element to a list, in the line that is there.
fn append(headers: &mut HeaderMap, name: &HeaderName, element: &str) {
    let lines: Vec<&[u8]> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
    let mut list = lines.join(&b", "[..]);
    if !list.is_empty() {
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(element.as_bytes());
    // What came in headers and plain text makes a header.
    if let Ok(list) = HeaderValue::from_bytes(&list) {
        headers.insert(name, list);
    }
}

impl Network {
    fn has(&self, address: IpAddr) -> bool {
        fn bits(address: IpAddr) -> (u128, u8) {
            match address {
                IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
                IpAddr::V6(address) => (address.to_bits(), 128),
            }
        }
        let ((own, size), (other, other_size)) = (bits(self.address), bits(address));
        let differ = own ^ other;
        size == other_size && differ.leading_zeros() >= u32::from(self.bits)
    }
}

impl std::str::FromStr for Network {
    type Err = ();

    /// `10.0.0.0/8`, or one address.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().map_err(drop)?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(drop)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits <= most { Ok(Self { address, bits }) } else { Err(()) }
    }
}

const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_what_begins_alike() {
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.4", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "::1", true),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
        ] {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.has(address.parse().unwrap()), expected, "{network:?} {address}");
        }
        for text in ["10.0.0.0/33", "10.0.0/8", "::/129", "net", "10.0.0.0/-1", ""] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_is_found_as_a_whole_word_of_its_place() {
        let is = |line: &str| names(&HeaderValue::from_str(line).unwrap(), "a-in");
        assert!(is("1.1 a-in") && is("2 x, 1.1 a-in (note)") && is("HTTP/1.1  a-in"));
        assert!(!is("1.1 a-in2") && !is("a-in") && !is("1.1 x (a-in)") && !is(""));
    }

    #[test]
    fn what_a_client_says_stays_only_where_it_is_trusted() {
        fn check(trusted: &str, expected: &[(&str, &str)]) {
            let trusted = vec![trusted.parse().unwrap()];
            let rules = Forwarding::new("in", "shop/a", false, true, true, trusted).unwrap();
            let forwarder = rules.of("[2001:db8::7]:1234".parse().unwrap(), true);
            let mut request = Request::get("/")
                .header("host", "pay:80")
                .header("forwarded", "for=1.2.3.4")
                .header("x-forwarded-for", "1.2.3.4")
                .header("x-forwarded-proto", "gopher")
                .body(())
                .unwrap();
            forwarder.pass(&mut request).unwrap();
            for &(name, value) in expected {
                assert_eq!(request.headers()[name], value, "{name}");
            }
        }
        let element = "for=\"[2001:db8::7]\";host=\"pay:80\";proto=https";
        check(
            "10.0.0.0/8",
            &[
                ("forwarded", element),
                ("x-forwarded-for", "2001:db8::7"),
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "pay:80"),
            ],
        );
        check(
            "2001:db8::/32",
            &[
                ("forwarded", &format!("for=1.2.3.4, {element}")),
                ("x-forwarded-for", "1.2.3.4, 2001:db8::7"),
                ("x-forwarded-proto", "gopher"),
                ("x-forwarded-host", "pay:80"),
            ],
        );
    }
}
