//! The first minute of an incident, with processes of their own: how soon the culprit is named with
//! the analysis killed, and how soon a lever takes effect.

use std::fs;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::process::{Process, Setup, TOKEN};
use super::server::{Folder, Server, until};

fn onus(analysis: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
    command.env_remove("RUST_LOG").env("COLUMNS", "200").env("ONUS_ANALYSIS", analysis);
    command.args(arguments).output().expect("it runs")
}

fn done(analysis: &str, arguments: &[&str]) -> String {
    let output = onus(analysis, arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// How long until the answers of a service are so.
async fn until_it_answers(
    process: &Process,
    since: Instant,
    is: impl Fn(&str) -> bool,
) -> Duration {
    until("the answers change", async || is(&process.request())).await;
    since.elapsed()
}

fn shielded(answer: &str) -> bool {
    answer.contains("onus-claim: unclaimed;kind=shield")
}

/// Neither shielded nor off.
fn claims(answer: &str) -> bool {
    answer.contains("onus-claim: claimed;reason=own")
}

fn is_off(answer: &str) -> bool {
    answer.contains("500") && !answer.contains("onus-claim")
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_analysis_killed_the_culprit_is_named_within_20_seconds() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    let analysis = server.url.clone();
    let setup = Setup { analysis: Some(&analysis), ..Setup::default() };
    let payments = Process::start("payments", setup);
    let callee = Some(("payments", &*payments.url));
    let checkout = Process::start("checkout", Setup { callee, ..setup });
    let callee = Some(("checkout", &*checkout.url));
    let front = Process::start("front", Setup { callee, ..setup });
    let agents = [&front, &checkout, &payments].map(|process| &*process.admin).join(",");
    assert!(front.request().contains("200"), "{}", front.request());
    let arguments = ["now", "-o", "json", "--agents", &*agents];
    let now: Value = serde_json::from_str(&done(&analysis, &arguments)).expect("it is JSON");
    assert!(now["source"].as_str().expect("a source").contains("the analysis at"), "{now}");
    server.kill();

    payments.fail();
    let since = Instant::now();
    let watch = {
        let (analysis, agents) = (analysis.clone(), agents.clone());
        std::thread::spawn(move || {
            loop {
                let output = onus(&analysis, &["now", "-o", "json", "--agents", &agents]);
                let now: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
                if now["culprits"][0].is_object() || since.elapsed() > Duration::from_secs(20) {
                    return now;
                }
            }
        })
    };
    while !watch.is_finished() {
        let answer = front.request();
        assert!(answer.contains("500"), "{answer}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let named = since.elapsed();
    let now = watch.join().expect("it has ended");
    println!("the culprit is named {named:?} after its first failure");
    assert!(named < Duration::from_secs(20), "{named:?}");
    assert_eq!(now["culprits"][0]["service"], "payments", "{now}");
    assert_eq!(now["source"], "3 agents");
    let age = now["culprits"][0]["age_seconds"].as_f64().expect("a number");
    assert!(age < 3.0, "what agents tell is new: {now}");
    // Each of the two hops tries twice: observing, the claim of checkout stops nobody.
    let hops: Vec<_> = now["path"].as_array().expect("a list").iter().collect();
    assert_eq!(hops.len(), 2, "{now}");
    assert_eq!((&hops[0]["caller"], &hops[1]["callee"]), (&"front".into(), &"payments".into()));
    assert_eq!(now["multiplying"].as_array().map(Vec::len), Some(2), "{now}");
}

#[tokio::test(flavor = "multi_thread")]
async fn levers_take_effect_within_2_seconds_locally_and_15_through_the_analysis() {
    let folder = Folder::new();
    let server = Server::start(&folder, "127.0.0.1:0", "");
    let analysis = server.url.clone();
    let file = folder.path().join("switch");
    let setup = Setup { analysis: Some(&analysis), switch_file: Some(&file), ..Setup::default() };
    let [payments, cart] = ["payments", "cart"].map(|name| Process::start(name, setup));
    let agents = format!("{},{}", payments.admin, cart.admin);
    payments.fail();
    cart.fail();
    assert!(claims(&payments.request()), "{}", payments.request());
    until("they follow the analysis", async || {
        let (_, text) = server.get("/api/v1/now");
        text.contains("payments") && text.contains("cart")
    })
    .await;

    // Through the analysis.
    let since = Instant::now();
    let why = ["--reason", "db", "--who", "alice"];
    done(&analysis, &[&["shield", "payments", "--for", "10m"], &why[..]].concat());
    let took = until_it_answers(&payments, since, shielded).await;
    println!("a shield through the analysis: {took:?}");
    assert!(took < Duration::from_secs(15), "{took:?}");
    done(&analysis, &[&["shield", "cart", "--for", "20m"], &why[..]].concat());
    until_it_answers(&cart, since, shielded).await;
    assert!(shielded(&payments.request()), "one order does not replace the other");
    let listed = done(&analysis, &["shield", "--list"]);
    assert!(listed.contains("payments") && listed.contains("cart"), "{listed}");
    assert!(listed.contains("10m") && listed.contains("20m"), "{listed}");
    let since = Instant::now();
    done(&analysis, &[&["shield", "payments", "--end"], &why[..]].concat());
    let took = until_it_answers(&payments, since, claims).await;
    assert!(took < Duration::from_secs(15), "{took:?}");
    assert!(shielded(&cart.request()), "{}", cart.request());
    done(&analysis, &[&["shield", "cart", "--end"], &why[..]].concat());
    until_it_answers(&cart, since, claims).await;
    assert!(done(&analysis, &["shield", "--list"]).contains("no shield is up"));
    server.kill();

    // At the processes, with the analysis down.
    let local = |arguments: &[&str]| {
        let all = [arguments, &why[..], &["--agents", &*agents, "--token", TOKEN]].concat();
        done(&analysis, &all)
    };
    let since = Instant::now();
    let told = local(&["shield", "payments", "--for", "10m"]);
    let took = until_it_answers(&payments, since, shielded).await;
    println!("a shield at the processes: {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(told.contains("in 1 of 1 processes (1 of other services were left alone)"), "{told}");
    assert!(claims(&cart.request()), "{}", cart.request());
    let since = Instant::now();
    local(&["off", "cart", "--for", "3s"]);
    let took = until_it_answers(&cart, since, is_off).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    let listed = done(&analysis, &["off", "--list", "--agents", &agents]);
    assert!(listed.contains("mode off") && listed.contains("shield up"), "{listed}");
    let took = until_it_answers(&cart, since, claims).await;
    assert!(took > Duration::from_secs(2), "it ends by itself: {took:?}");
    let since = Instant::now();
    local(&["off", "--all"]);
    let took = until_it_answers(&cart, since, is_off).await;
    println!("off at the processes: {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(shielded(&payments.request()), "a shield answers in mode off, and was not replaced");
    local(&["off", "--all", "--back"]);
    local(&["shield", "payments", "--end"]);
    until_it_answers(&cart, since, claims).await;
    until_it_answers(&payments, since, claims).await;
    let nobody = onus(
        &analysis,
        &[&["shield", "ledger"], &why[..], &["--agents", &*agents, "--token", TOKEN]].concat(),
    );
    assert_eq!(nobody.status.code(), Some(1));
    let text = String::from_utf8_lossy(&nobody.stderr).into_owned();
    assert!(text.contains("all 2 are of other services"), "{text}");

    // By the watched file.
    let since = Instant::now();
    let written = folder.path().join("switch.new");
    fs::write(&written, "shield: 10m\nwho: alice\nwhy: db\n").expect("it is written");
    fs::rename(&written, &file).expect("it is renamed");
    let took = until_it_answers(&payments, since, shielded).await;
    println!("a shield by the file: {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
}
