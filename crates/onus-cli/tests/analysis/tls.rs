//! TLS: who is who by certificates, and certificates that are renewed.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use onus::report::Analysis;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::server::{Folder, Server, until};
use super::service::{Broken, Service};

/// An authority that signs certificates for this test.
pub(crate) struct Authority {
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(folder: &Folder, name: &str) -> Self {
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("it signs itself");
        let folder = folder.path().to_owned();
        fs::write(folder.join(format!("{name}.pem")), issuer.pem()).expect("it is written");
        Self { folder, issuer }
    }

    /// Signs a certificate for these names, into `NAME.crt` and `NAME.key`.
    pub(crate) fn sign(&self, name: &str, dns: &[&str], uri: Option<&str>) -> (PathBuf, PathBuf) {
        let names: Vec<_> = dns.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("the names are names");
        params
            .subject_alt_names
            .extend(uri.map(|uri| SanType::URI(uri.try_into().expect("a URI"))));
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("it is signed");
        let paths = ["crt", "key"].map(|end| self.folder.join(format!("{name}.{end}")));
        fs::write(&paths[0], certificate.pem()).expect("it is written");
        fs::write(&paths[1], key.serialize_pem()).expect("it is written");
        paths.into()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_says_for_whom_it_reports_and_is_read_again() {
    let folder = Folder::new();
    let mesh = Authority::new(&folder, "mesh");
    let strangers = Authority::new(&folder, "strangers");
    mesh.sign("server", &["localhost", "127.0.0.1"], None);
    let checkout = mesh.sign("checkout", &[], Some("spiffe://mesh/ns/shop/sa/checkout"));
    let other = mesh.sign("other", &["other.mesh"], None);
    let stranger = strangers.sign("stranger", &[], Some("spiffe://mesh/ns/shop/sa/checkout"));
    fs::write(folder.path().join("token"), "viewer-0123456789").expect("it is written");
    let at = |name: &str| folder.path().join(name);
    let more = format!(
        "tls: {{certificate: {}, key: {}, client-authorities: {}}}\n\
         grants:\n\
         - {{name: checkout, role: agent, services: [checkout], certificate: \"spiffe://mesh/ns/shop/sa/checkout\"}}\n\
         - {{name: eve, role: viewer, token-file: {}}}\n",
        at("server.crt").display(),
        at("server.key").display(),
        at("mesh.pem").display(),
        at("token").display(),
    );
    let server = Server::start(&folder, "127.0.0.1:0", &more);
    assert!(server.url.starts_with("https://"), "{}", server.url);

    let analysis = |identity: &(PathBuf, PathBuf)| {
        let analysis = Analysis::at(&server.url).authorities(at("mesh.pem"));
        analysis.identity(&identity.0, &identity.1)
    };
    let known = || {
        let authorities = at("mesh.pem").display().to_string();
        let output = server.onus(&[
            "edges",
            "--token",
            "viewer-0123456789",
            "--authorities",
            &authorities,
            "-o",
            "json",
        ]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let reports = async |service: Service| {
        service.serve(Broken::Nothing).await;
        service.reporter.finish().await;
    };
    reports(Service::start("checkout", analysis(&other))).await;
    reports(Service::start("checkout", analysis(&stranger))).await;
    reports(Service::start("payments", analysis(&checkout))).await;
    assert!(known().contains("\"edges\": []"), "nobody reports for somebody else: {}", known());
    reports(Service::start("checkout", analysis(&checkout))).await;
    assert!(known().contains("\"caller\": \"checkout\""), "{}", known());
    assert!(!known().contains("payments\", \"caller"), "{}", known());

    // The server's certificate is renewed by another authority, and so is what agents believe.
    let late = Service::start("checkout", analysis(&checkout));
    strangers.sign("server", &["localhost", "127.0.0.1"], None);
    fs::copy(at("strangers.pem"), at("mesh.pem")).expect("it is copied");
    let (certificate, key) =
        strangers.sign("checkout", &[], Some("spiffe://mesh/ns/shop/sa/checkout"));
    assert_eq!((certificate, key), checkout);
    until("the renewed certificate is served", async || {
        known().contains("\"caller\": \"checkout\"")
    })
    .await;
    reports(late).await;
    until("its calls are counted too", async || known().contains("\"calls_ok\": 2")).await;
}

/// Accepts connections of clients that a certificate of this authority names.
struct Guarded {
    listener: TcpListener,
    tls: TlsAcceptor,
}

impl axum::serve::Listener for Guarded {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let Ok((stream, from)) = self.listener.accept().await else { continue };
            if let Ok(stream) = self.tls.accept(stream).await {
                return (stream, from);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// The admin service of a service, by TLS, for whoever has a certificate of the mesh.
async fn guarded_admin(service: &Service, folder: &Folder) -> SocketAddr {
    let at = |name: &str| folder.path().join(name);
    let chain = CertificateDer::pem_file_iter(at("server.crt")).expect("it is there");
    let chain = chain.collect::<Result<Vec<_>, _>>().expect("they are certificates");
    let key = PrivateKeyDer::from_pem_file(at("server.key")).expect("it is a key");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(at("mesh.pem")).expect("it is there")).expect("one");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("TLS has versions")
        .with_client_cert_verifier(verifier.expect("there is an authority"))
        .with_single_cert(chain, key)
        .expect("they fit");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    let guarded = Guarded { listener, tls: TlsAcceptor::from(Arc::new(config)) };
    let routes =
        axum::Router::new().fallback_service(service.onus.admin().token("a-token-of-the-mesh"));
    tokio::spawn(async move { axum::serve(guarded, routes).await });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn people_say_who_they_are_by_a_certificate_to_the_analysis_and_to_agents() {
    let folder = Folder::new();
    let mesh = Authority::new(&folder, "mesh");
    mesh.sign("server", &["localhost", "127.0.0.1"], None);
    let alice = mesh.sign("alice", &["alice.people"], None);
    let at = |name: &str| folder.path().join(name).display().to_string();
    let more = format!(
        "tls: {{certificate: {}, key: {}, client-authorities: {}}}\n\
         grants:\n- {{name: alice, role: operator, certificate: alice.people}}\n",
        at("server.crt"),
        at("server.key"),
        at("mesh.pem"),
    );
    let server = Server::start(&folder, "127.0.0.1:0", &more);
    let [certificate, key] = [&alice.0, &alice.1].map(|path| path.display().to_string());
    let mesh_file = at("mesh.pem");
    let identity = ["--authorities", &*mesh_file, "--certificate", &*certificate, "--key", &*key];
    let onus = async |arguments: &[&str]| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_onus"));
        command.env_remove("RUST_LOG").env("ONUS_ANALYSIS", &server.url).args(arguments);
        let output = command.output().await.expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let lever = ["shield", "payments", "--reason", "db", "--who", "alice"];
    let (code, text) = onus(&[&lever[..], &identity[..2]].concat()).await;
    assert_eq!(code, Some(1), "{text}");
    let (code, text) = onus(&[&lever[..], &identity[..]].concat()).await;
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = onus(&[&["shield", "--list"], &identity[..]].concat()).await;
    assert!(code == Some(0) && text.contains("payments"), "{text}");
    let (code, text) = onus(&[&lever[..], &identity[..4]].concat()).await;
    assert!(code == Some(2) && text.contains("--key"), "{text}");

    let payments = Service::start("payments", Analysis::at("http://127.0.0.1:1"));
    let agent = format!("https://{}", guarded_admin(&payments, &folder).await);
    let agents = ["--agents", &*agent, "--token", "a-token-of-the-mesh"];
    let (code, text) = onus(&[&lever[..], &agents[..], &identity[..2]].concat()).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(super::levers::shield_left(&payments).is_zero());
    let (code, text) = onus(&[&lever[..], &agents[..], &identity[..]].concat()).await;
    assert!(code == Some(0) && text.contains("in 1 of 1 processes"), "{text}");
    assert!(!super::levers::shield_left(&payments).is_zero());
    let (code, text) = onus(&[&["shield", "--list"], &agents[..], &identity[..]].concat()).await;
    assert!(code == Some(0) && text.contains("shield up"), "{text}");
}
