//! Certificates: of a proxy, of its callers, and new ones while it runs.

use std::path::PathBuf;
use std::time::Duration;

use onus_proxy::Proxy;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::time::{sleep, timeout};

use super::admin::get;
use crate::cast::{Client, Line, Stub, proxy, streams};

/// Somebody who vouches for others, and a directory for what they are given.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    directory: PathBuf,
}

impl Authority {
    fn new(name: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("onus-tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        std::fs::write(directory.join("ca.pem"), certificate.pem()).expect("a file");
        Self { issuer: Issuer::new(params, key), directory }
    }

    fn file(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    /// Writes a certificate and its key.
    fn gives(&self, name: &str) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        std::fs::write(self.file(&format!("{name}.key")), key.serialize_pem()).expect("a file");
        std::fs::write(self.file(&format!("{name}.pem")), certificate.pem()).expect("a file");
    }

    /// The setting of somebody who shows the certificate of `name`.
    fn shows(&self, name: &str) -> String {
        let (certificate, key) =
            (self.file(&format!("{name}.pem")), self.file(&format!("{name}.key")));
        format!("certificate: \"{certificate}\", key: \"{key}\"")
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A service whose sidecar shows a certificate, and asks callers for one of `trusted`.
async fn callee(app: &Stub, own: &Authority, trusted: &Authority) -> Proxy {
    proxy(&format!(
        "service: b\ninbound: {{listen: \"127.0.0.1:0\", app: \"{}\", tls: {{{}, client-ca: \"{}\"}}}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n",
        app.address,
        own.shows("b.test"),
        trusted.file("ca.pem"),
    ))
    .await
}

/// A sidecar that calls it, and shows this certificate.
async fn caller(callee: &Proxy, trusts: &Authority, shows: &str) -> Proxy {
    let address = callee.inbound();
    let ca = trusts.file("ca.pem");
    proxy(&format!(
        "service: a\ninbound: {{listen: \"127.0.0.1:0\", app: \"127.0.0.1:1\"}}\n\
         outbound: {{listen: \"127.0.0.1:0\"}}\nadmin: {{listen: \"127.0.0.1:0\"}}\n\
         callees: {{peer: {{address: \"{address}\", tls: {{ca: \"{ca}\", server-name: b.test{shows}}}}}}}\n"
    ))
    .await
}

async fn app() -> Stub {
    crate::cast::lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await
}

async fn status(proxy: &Proxy) -> u16 {
    answer(proxy).await.0
}

/// The status of an answer, and what the proxy says of it.
async fn answer(proxy: &Proxy) -> (u16, String) {
    let mut line = Line::to(proxy.outbound()).await;
    line.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
    let head = line.head().await.expect("an answer");
    let says = head.headers.get("proxy-status").map(|says| says.to_str().expect("it is text"));
    (head.status(), says.unwrap_or_default().to_owned())
}

#[tokio::test]
async fn sidecars_show_each_other_certificates_in_both_versions() {
    let (one, other) = (Authority::new("one"), Authority::new("other"));
    for (authority, name) in [(&one, "b.test"), (&one, "a.test"), (&other, "a.test")] {
        authority.gives(name);
    }
    let app = app().await;
    let callee = callee(&app, &one, &one).await;
    let right = format!(", {}", one.shows("a.test"));
    let wrong = format!(", {}", other.shows("a.test"));
    assert_eq!(status(&caller(&callee, &one, &right).await).await, 200);
    for (trusts, shows) in [(&one, ""), (&one, &*wrong), (&other, &*right)] {
        let refused = status(&caller(&callee, trusts, shows).await).await;
        assert!(matches!(refused, 502 | 503), "{refused}");
    }
    assert_eq!(app.seen().len(), 1);
    let (refused, says) = answer(&caller(&callee, &other, &right).await).await;
    assert_eq!(refused, 503);
    assert!(says.starts_with("onus; error=tls_certificate_error; "), "{says}");
    let (_, _, metrics) = get(callee.admin(), "/metrics").await;
    // One of them finds out for itself that it does not trust the callee, and tells.
    let failed = "onus_proxy_handshakes_failed_total{listener=\"inbound\"} 4";
    assert!(metrics.contains(failed), "{metrics}");

    let http2 = streams(|mut stream| async move {
        stream.request().await;
        stream.ends(200, &[]);
    })
    .await;
    let callee = self::callee(&http2, &one, &one).await;
    let caller = caller(&callee, &one, &right).await;
    let client = Client::to(caller.outbound()).await;
    assert_eq!(client.send("POST", "/", "x", &[]).await.unwrap().status(), 200);
}

#[tokio::test]
async fn interim_answers_pass_to_a_client_by_tls() {
    let authority = Authority::new("interim");
    authority.gives("b.test");
    authority.gives("a.test");
    let app = crate::cast::lines(|mut line| async move {
        while line.request().await.is_some() {
            line.say("HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n").await;
            line.say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    })
    .await;
    let callee = callee(&app, &authority, &authority).await;
    let caller = caller(&callee, &authority, &format!(", {}", authority.shows("a.test"))).await;
    let mut line = Line::to(caller.outbound()).await;
    for _ in 0..2 {
        line.say("GET / HTTP/1.1\r\nhost: peer\r\n\r\n").await;
        for status in [103, 200] {
            assert_eq!(line.head().await.expect("an answer").status(), status);
        }
    }
}

#[tokio::test]
async fn certificates_are_read_anew_when_their_files_change() {
    let (before, after) = (Authority::new("before"), Authority::new("after"));
    before.gives("b.test");
    before.gives("a.test");
    after.gives("b.test");
    let app = app().await;
    let callee = callee(&app, &before, &before).await;
    let shows = format!(", {}", before.shows("a.test"));
    let trusts_after = caller(&callee, &after, &shows).await;
    assert_eq!(status(&trusts_after).await, 503);
    for file in ["b.test.pem", "b.test.key"] {
        std::fs::copy(after.file(file), before.file(file)).unwrap();
    }
    let comes = async {
        while status(&trusts_after).await != 200 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(20), comes).await.expect("the new certificate is shown");
    // Half a file changes nothing.
    std::fs::write(before.file("b.test.pem"), "-----BEGIN").unwrap();
    let again = caller(&callee, &after, &shows).await;
    assert_eq!(status(&again).await, 200);
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_is_named() {
    let authority = Authority::new("named");
    authority.gives("b.test");
    let yaml = |certificate: &str, key: &str| {
        let (certificate, key) = (authority.file(certificate), authority.file(key));
        format!(
            "service: b\ninbound: {{tls: {{certificate: \"{certificate}\", key: \"{key}\"}}}}\n"
        )
    };
    for (certificate, key, says) in [
        ("none.pem", "b.test.key", "inbound.tls (line 2): read "),
        ("b.test.key", "b.test.key", "inbound.tls (line 2): find a certificate in PEM in "),
        ("b.test.pem", "b.test.pem", "inbound.tls (line 2): find a private key in PEM in "),
    ] {
        let file = onus_proxy::ConfigFile::parse(&yaml(certificate, key)).unwrap();
        let error = onus_proxy::ProxyConfig::new(file).unwrap_err();
        let said = format!("{error}: {}", std::error::Error::source(&error).unwrap());
        assert!(said.contains(says), "{said}");
    }
}
