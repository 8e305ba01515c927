//! Questions over TLS, to a server with a certificate of its own authority.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use onus_promql::{Answer, AskError, Client, Endpoint, Limits};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use super::{LONG, ONE, SHORT, Script, answer, ask_with, request};

/// An authority, and a server with a certificate for `localhost`.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    path: PathBuf,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("it signs itself");
        let file = format!("onus-promql-{}-{name}.pem", std::process::id());
        let path = std::env::temp_dir().join(file);
        fs::write(&path, issuer.pem()).expect("it is written");
        Self { issuer, path }
    }

    /// A server for one connection; the request it gets, if it comes to one.
    fn server(&self, status: &'static str) -> (u16, JoinHandle<Option<String>>) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        let signed = params.signed_by(&key, &self.issuer).expect("it is signed");
        let certificate = CertificateDer::from_pem_slice(signed.pem().as_bytes()).expect("PEM");
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).expect("PEM");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(Vec::from([certificate]), key)
            .expect("they belong together");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("it has one").port();
        let thread = thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("a client");
            let mut tls = ServerConnection::new(Arc::new(config)).expect("it starts");
            while tls.is_handshaking() {
                tls.complete_io(&mut client).ok()?;
            }
            let mut stream = StreamOwned::new(tls, client);
            let asked = request(&mut stream);
            let Script::Answer(text) = answer(status, ONE) else { return None };
            stream.write_all(text.as_bytes()).ok()?;
            Some(asked)
        });
        (port, thread)
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn client(host: &str, port: u16) -> Client {
    Client::new(Endpoint::new(&format!("https://{host}:{port}")).expect("it is a URL"), LONG)
}

/// What people read, with all causes.
fn told(answer: Result<Answer, AskError>) -> String {
    let error = answer.expect_err("it fails");
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        told = format!("{told}: {source}");
        cause = source.source();
    }
    told
}

#[test]
fn a_server_that_is_known_is_asked_with_the_token() {
    let authority = Authority::new("known");
    let (port, thread) = authority.server("200 OK");
    let client = client("localhost", port).token("secret").expect("a token");
    let answer = ask_with(&client.authorities(authority.path.clone())).expect("it answers");
    assert_eq!(answer.samples.len(), 1);
    let request = thread.join().expect("it ends").expect("it was asked");
    assert!(request.contains("authorization: Bearer secret\r\n"), "{request}");
    assert!(request.contains(&format!("host: localhost:{port}\r\n")), "{request}");
}

#[test]
fn a_server_that_is_not_known_is_asked_nothing() {
    let authority = Authority::new("own");
    let other = Authority::new("other");
    for (host, path, expected) in [
        ("localhost", Some(&other.path), "invalid peer certificate: UnknownIssuer"),
        ("127.0.0.1", Some(&authority.path), "invalid peer certificate: certificate not valid for"),
        // Those of this machine, which may have none.
        ("localhost", None, ""),
    ] {
        let (port, thread) = authority.server("200 OK");
        let mut client = client(host, port);
        if let Some(path) = path {
            client = client.authorities(path.clone());
        }
        let told = told(ask_with(&client));
        let begin = format!("agree with {host}:{port} on TLS: {expected}");
        assert!(told.starts_with(&begin), "{told}");
        assert_eq!(thread.join().expect("it ends"), None, "{host}");
    }
}

#[test]
fn a_refusal_in_the_form_of_prometheus_is_a_status() {
    let authority = Authority::new("refusing");
    for (status, expected) in [
        ("401 Unauthorized", "the server answers 401 Unauthorized"),
        ("403 Forbidden", "the server answers 403 Forbidden"),
    ] {
        let (port, _) = authority.server(status);
        let client = client("localhost", port).authorities(authority.path.clone());
        assert_eq!(told(ask_with(&client)), expected);
    }
}

#[test]
fn authorities_that_cannot_be_used_are_told_with_the_file() {
    let authority = Authority::new("unused");
    let empty = authority.path.with_extension("empty");
    fs::write(&empty, "no certificate").expect("it is written");
    let missing = authority.path.with_extension("missing");
    for (path, expected) in [
        (&empty, format!("no certificate is in {}", empty.display())),
        (&missing, format!("read the authorities in {}", missing.display())),
    ] {
        let (port, _) = authority.server("200 OK");
        let told = told(ask_with(&client("localhost", port).authorities(path.clone())));
        assert!(told.contains(&expected), "{told}");
    }
    let _ = fs::remove_file(empty);
}

#[test]
fn a_handshake_that_nobody_answers_is_given_up() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("it has one").port();
    let authority = Authority::new("silent");
    let url = format!("https://localhost:{port}");
    let limits = Limits { connect: Duration::from_millis(200), ..SHORT };
    let client = Client::new(Endpoint::new(&url).expect("it is a URL"), limits);
    let answer = ask_with(&client.authorities(authority.path.clone()));
    assert!(matches!(answer, Err(AskError::TooSlow(_))), "{answer:?}");
}
