//! Callees by name, in a network with a name server of its own.

mod dns;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use axum::Router;
use rustix::process::Signal;
use tokio::net::TcpListener;
use tokio::time::Instant;

use self::dns::{Dns, Says};
use super::cast::process::until;
use super::cast::{Line, Page, Sidecar};

/// Whether `test` runs in a network of its own, with this process as its name server, which the
/// system asks twice for so many seconds. If not, it is run there, or skipped where the system lets
/// nobody make one.
fn is_in_own_network(test: &str, seconds: u32) -> bool {
    const INSIDE: &str = "ONUS_TEST_IN_OWN_NETWORK";
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let file = |name: &str, text: &str| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{name}"));
        std::fs::write(&path, text).expect("the folder is there");
        path
    };
    let options = format!("nameserver 127.0.0.1\noptions timeout:{seconds} attempts:2\n");
    let resolver = file("resolv.conf", &options);
    let order = file("nsswitch.conf", "hosts: dns\n");
    let inside = |command: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--mount", "--net", "sh", "-ec"]).arg(
            "ip link set lo up; mount --bind \"$1\" /etc/resolv.conf; \
             mount --bind \"$2\" /etc/nsswitch.conf; shift 2; exec \"$@\"",
        );
        unshare.arg("sh").args([&resolver, &order]).args(command).env(INSIDE, "1");
        unshare
    };
    if !inside(&["true"]).output().is_ok_and(|output| output.status.success()) {
        // What nobody may do here is no fault of the setup.
        let is_there = |program| Command::new(program).arg("-V").output().is_ok();
        let set_up = is_there("unshare") && is_there("ip");
        let required = std::env::var("ONUS_PEERS").is_ok_and(|peers| peers == "required");
        assert!(set_up || !required, "{test} needs `unshare` and `ip`: run `cargo xtask setup`");
        // Not by `println!`, which is shown of failed tests only.
        let _ = writeln!(io::stderr(), "skipped: {test} needs a network of its own");
        return false;
    }
    let itself = std::env::current_exe().expect("it runs");
    let name = format!("{}::{test}", module_path!().split_once("::").expect("it is in a crate").1);
    let output =
        inside(&[itself.to_str().expect("text"), "--exact", &name, "--nocapture"]).output();
    let output = output.expect("it can be run");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "inside:\n{said}");
    false
}

/// An instance that answers with its own address.
async fn instance(address: IpAddr, port: u16) -> SocketAddr {
    let listener = TcpListener::bind((address, port)).await.expect("the port is free");
    let bound = listener.local_addr().expect("it is bound");
    let says = move || async move { address.to_string() };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(says)).await });
    bound
}

/// Asks a callee: the status, and what it or the sidecar says.
async fn ask(sidecar: &Sidecar, callee: &str) -> (u16, String) {
    let mut line = Line::to(sidecar.outbound).await;
    line.say(format!("GET / HTTP/1.1\r\nhost: {callee}\r\n\r\n")).await;
    let head = line.head().await.expect("it is answered");
    let (body, _) = line.body(&head).await.expect("it is whole");
    let proxy =
        head.headers.get("proxy-status").map_or("", |status| status.to_str().expect("text"));
    (head.status(), format!("{proxy}{}", String::from_utf8_lossy(&body)))
}

async fn sidecar(names: &[&str], port: u16) -> Sidecar {
    let callees =
        names.iter().map(|name| format!("  {name}: {{address: \"{name}.test:{port}\"}}\n"));
    Sidecar::start(&format!(
        "service: shop\ninbound: {{listen: \"127.0.0.1:0\", app: \"127.0.0.1:1\"}}\n\
         limits: {{connect-timeout: 500ms}}\ncallees:\n{}",
        callees.collect::<String>()
    ))
    .await
}

fn failed(page: &Page, callee: &str) -> u64 {
    page.sum("onus_proxy_lookups_failed_total", &[&format!("callee=\"{callee}\"")])
}

fn v4(last: u8) -> IpAddr {
    Ipv4Addr::new(127, 0, 0, last).into()
}

#[tokio::test]
async fn instances_follow_a_name_server_and_outlast_its_failures() {
    // S96
    if !is_in_own_network("instances_follow_a_name_server_and_outlast_its_failures", 2) {
        return;
    }
    let dns = Dns::start().await;
    let port = instance(v4(1), 0).await.port();
    instance(v4(2), port).await;
    instance(Ipv6Addr::LOCALHOST.into(), port).await;
    let failing = [
        ("broken", Says::SERVER_FAILED),
        ("gone", Says::NO_SUCH_NAME),
        ("empty", Says::EMPTY),
        ("silent", Says::Silence),
    ];
    let names = ["moves", "many", "broken", "gone", "empty", "silent"];
    for name in names {
        dns.says(&format!("{name}.test"), Says::Addresses(vec![v4(1)]));
    }
    let sidecar = sidecar(&names, port).await;
    for name in names {
        assert_eq!(ask(&sidecar, name).await, (200, "127.0.0.1".to_owned()), "{name}");
    }

    let both = [v4(2), Ipv6Addr::LOCALHOST.into()];
    dns.says("moves.test", Says::Addresses(both.to_vec()));
    let many = (0..300_u32).map(|n| Ipv4Addr::from_bits(0x7f01_0000 + n).into());
    dns.says("many.test", Says::Addresses(many.collect()));
    for (name, says) in &failing {
        dns.says(&format!("{name}.test"), says.clone());
    }
    until("all names are looked up again", async || {
        let page = sidecar.metrics().await;
        let left_out = ["callee=\"many\"", "state=\"left-out\""];
        failing.iter().all(|(name, _)| failed(&page, name) > 0)
            && page.sum("onus_proxy_instances", &left_out) > 0
            && page.sum("onus_proxy_instances", &["callee=\"moves\""]) == 2
    })
    .await;
    let mut asked = BTreeSet::new();
    for _ in 0..10 {
        let (status, instance) = ask(&sidecar, "moves").await;
        assert_eq!(status, 200, "{instance}");
        asked.insert(instance);
    }
    assert_eq!(asked, both.map(|address| address.to_string()).into());
    for (name, says) in &failing {
        assert_eq!(ask(&sidecar, name).await, (200, "127.0.0.1".to_owned()), "{says:?}");
    }
    let page = sidecar.metrics().await;
    let of_many = |state| page.sum("onus_proxy_instances", &["callee=\"many\"", state]);
    assert_eq!((of_many("reached"), of_many("left-out")), (256, 44));
    assert_eq!((failed(&page, "moves"), failed(&page, "many")), (0, 0));

    // It knows them again.
    for (name, _) in &failing {
        dns.says(&format!("{name}.test"), Says::Addresses(vec![v4(2)]));
    }
    until("the new instances are asked", async || {
        for (name, _) in &failing {
            if ask(&sidecar, name).await != (200, "127.0.0.2".to_owned()) {
                return false;
            }
        }
        true
    })
    .await;
}

#[tokio::test]
async fn a_callee_without_an_address_is_an_error_that_says_why_and_soon() {
    // S59
    if !is_in_own_network("a_callee_without_an_address_is_an_error_that_says_why_and_soon", 10) {
        return;
    }
    let dns = Dns::start().await;
    dns.says("broken.test", Says::SERVER_FAILED);
    dns.says("empty.test", Says::EMPTY);
    dns.says("silent.test", Says::Silence);
    let mut sidecar = sidecar(&["nobody", "broken", "empty", "silent"], 80).await;
    for (name, kind, why) in [
        ("nobody", "dns_error", "Name or service not known"),
        ("broken", "dns_error", "Temporary failure in name resolution"),
        ("empty", "dns_error", "No address associated with hostname"),
        ("silent", "dns_timeout", "the resolver does not answer"),
    ] {
        // The second one hears the reason of the first.
        for _ in 0..2 {
            let since = Instant::now();
            let (status, says) = ask(&sidecar, name).await;
            assert_eq!(status, 503, "{name}: {says}");
            let begins = format!("onus; error={kind}; details=\"failed to resolve {name}.test: ");
            assert!(says.starts_with(&begins) && says.contains(why), "{says}");
            assert!(since.elapsed() < SOON, "{name}: {:?}", since.elapsed());
        }
        assert!(failed(&sidecar.metrics().await, name) > 0, "{name}");
    }
    // The question that nobody answers holds up no end.
    let since = Instant::now();
    sidecar.signal(Signal::TERM);
    assert_eq!(sidecar.ended().await, Some(0));
    assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
}

/// Less than the system's resolver takes to give up, by far, and more than a busy machine.
const SOON: Duration = Duration::from_secs(8);
