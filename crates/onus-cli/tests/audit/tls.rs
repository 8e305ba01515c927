//! A server that is behind TLS and wants a token.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::PrivateKeyDer;

use super::{onus, text};

/// A folder with the server's certificate and a token; gone when it is dropped.
struct Files(PathBuf);

impl Files {
    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server that answers whoever has the token; its URL.
fn server(certificate: &Path) -> String {
    let names = Vec::from(["localhost".to_owned()]);
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(names).expect("it is made");
    fs::write(certificate, cert.pem()).expect("it is written");
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(Vec::from([cert.der().clone()]), key)
        .map(Arc::new)
        .expect("they belong together");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("it has one").port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let tls = ServerConnection::new(config.clone()).expect("it starts");
            let mut stream = StreamOwned::new(tls, client.expect("a client"));
            let mut request = [0; 16 << 10];
            // Whoever does not know the server hangs up here.
            let Ok(length) = stream.read(&mut request) else { continue };
            let knows = text(&request[..length]).contains("authorization: Bearer let-me-in\r\n");
            let status = if knows { "200 OK" } else { "401 Unauthorized" };
            let body = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
            let length = body.len();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    format!("https://localhost:{port}")
}

#[test]
fn a_server_behind_tls_is_asked_with_a_token() {
    let files = Files(std::env::temp_dir().join(format!("onus-audit-tls-{}", std::process::id())));
    fs::create_dir_all(&files.0).expect("a folder");
    let [certificate, token, wrong] = ["ca.pem", "token", "wrong"].map(|name| files.path(name));
    let url = server(&certificate);
    fs::write(&token, "let-me-in\n").expect("it is written");
    fs::write(&wrong, "open sesame\n").expect("it is written");
    let (ca, token, wrong) = (certificate.display(), token.display(), wrong.display());
    let missing = files.path("missing");
    for (flags, begin, expected) in [
        (String::new(), "without --prom-ca: agree with localhost:", "invalid peer certificate"),
        (format!(" --prom-ca {ca}"), "without --prom-token-file: ", "401 Unauthorized"),
        (
            format!(" --prom-ca {ca} --prom-token-file {wrong}"),
            "with the token of --prom-token-file: ",
            "401 Unauthorized",
        ),
    ] {
        let output = onus(&format!("audit --prom {url}{flags}"), "");
        let told = text(&output.stderr);
        assert!(told.starts_with(&format!("error: failed to ask {url} {begin}")), "{told}");
        assert!(told.contains(expected) || flags.is_empty(), "{told}");
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""), "{told}");
    }
    let unread = format!("audit --prom {url} --prom-token-file {}", missing.display());
    let told = onus(&unread, "").stderr;
    assert!(text(&told).starts_with("error: failed to read the token in "), "{}", text(&told));

    let asked = format!("audit --prom {url} --prom-ca {ca} --prom-token-file {token}");
    let output = onus(&asked, "");
    assert_eq!(text(&output.stderr), "", "it is believed and answers");
    let shown = text(&output.stdout);
    assert!(!shown.is_empty() && output.status.code() != Some(1), "{shown}");
}
