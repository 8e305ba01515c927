//! TLS: who is who by certificates, and certificates that are renewed.

use std::fs;
use std::path::PathBuf;

use onus::report::Analysis;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType};

use super::server::{Folder, Server, until};
use super::service::{Broken, Service};

/// An authority that signs certificates for this test.
struct Authority {
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new(folder: &Folder, name: &str) -> Self {
        let mut params = CertificateParams::new([]).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("it signs itself");
        let folder = folder.path().to_owned();
        fs::write(folder.join(format!("{name}.pem")), issuer.pem()).expect("it is written");
        Self { folder, issuer }
    }

    /// Signs a certificate for these names, into `NAME.crt` and `NAME.key`.
    fn sign(&self, name: &str, dns: &[&str], uri: Option<&str>) -> (PathBuf, PathBuf) {
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
