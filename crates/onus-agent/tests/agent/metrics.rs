//! The families of docs/metrics.md.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use onus_agent::{
    AgentConfig, CallError, Claim, ClaimReason, Mode, RetryCause, RetryPolicy, Share, Source, Stop,
    SwitchFile, Switches,
};

use crate::exposition::Exposition;
use crate::host::{Call, Reply, Request, Service, Target, retries};

/// Every mode, in an order in which each follows another.
fn modes() -> [Mode; 4] {
    [Mode::Off, Mode::Observe, Mode::Enforce(Share::percent(0).unwrap()), Mode::ENFORCE]
}

fn switch(service: &Service, mode: Mode) {
    let switches = Switches { mode: Some(mode), ..Switches::default() };
    service.agent.switch(Source::Admin, &switches, service.now());
}

/// A service with edges of every kind: a full policy, none, a boundary.
fn everything(config: &mut AgentConfig) {
    let policy = RetryPolicy::attempts(3)
        .budget_percent(100)
        .gate()
        .deadline(Duration::from_millis(500))
        .per_try_timeout(Duration::from_millis(200));
    config.retry("b", policy);
    config.untrusted("s");
    config.silent_claims = true;
}

/// Lets happen what can happen, on each edge and in each mode.
fn happen(service: &Service) {
    let replies = [
        Reply::Error("claimed"),
        Reply::Error("claimed;kind=silent"),
        Reply::Error("unclaimed"),
        Reply::Error("unclaimed;kind=shield"),
        Reply::Error("nonsense"),
        Reply::Error(""),
        Reply::Silence,
        Reply::Hang,
        Reply::Ok,
    ];
    for mode in modes() {
        switch(service, mode);
        for lines in [&[][..], &[("onus-mark", "1")]] {
            for callee in ["b", "c", "s"] {
                for first in replies {
                    for second in replies {
                        let request = service.request_with(lines);
                        request.call(callee).play_while_retried(&[first, second, Reply::Ok]);
                        finish(request, matches!(second, Reply::Ok));
                    }
                }
                let request = service.request_with(lines);
                let mut call = request.call(callee);
                call.send();
                call.fail(CallError::Http(503), Some(&[("retry-after", "60")]));
                call_by(&request, callee, |call| {
                    call.fail_by(CallError::Http(503), Some(&[]), false);
                });
                call_by(&request, callee, |call| call.outbound.refused(Stop::NoTime));
                let post = Target { method: onus_agent::MethodKind::Unsafe, ..Target::GET };
                request.call_to(callee, &post).play(&[Reply::Silence]);
                finish(request, false);
                service.untied_call(callee).play(&[Reply::Silence]);
                service.pass(Duration::from_secs(11));
            }
        }
    }
}

fn call_by(request: &Request<'_>, callee: &str, act: impl FnOnce(&mut Call<'_>)) {
    let mut call = request.call(callee);
    call.send();
    act(&mut call);
}

fn finish(request: Request<'_>, ok: bool) {
    if ok {
        request.ok();
    } else {
        request.error();
    }
}

#[test]
fn all_series_exist_from_the_first_use_on() {
    let service = Service::enforcing(everything);
    // One use of each edge and of the procedure, with nothing to count but a success.
    let request = service.request();
    for callee in ["b", "c", "s"] {
        request.call(callee).play(&[Reply::Ok]);
    }
    request.ok();
    for callee in ["b", "c", "s"] {
        service.untied_call(callee).play(&[Reply::Ok]);
    }
    let names = |page: &Exposition| -> BTreeSet<String> {
        page.samples().map(|(name, labels, _)| format!("{name}{labels}")).collect()
    };
    switch(&service, Mode::Off);
    let born = names(&service.metrics());
    happen(&service);
    switch(&service, Mode::Off);
    let grown = names(&service.metrics());
    let late: Vec<_> = grown.difference(&born).collect();
    assert_eq!(late, [""; 0]);
}

#[test]
fn each_family_stands_once_with_its_type() {
    let service = Service::enforcing(everything);
    happen(&service);
    let page = service.metrics();
    let mut types = BTreeMap::new();
    let mut families = Vec::new();
    for line in page.0.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert_eq!(types.insert(name, kind), None, "{name} stands twice");
            families.push(name);
        } else if !line.starts_with('#') {
            // Samples follow the line with their type.
            let name = line.split(['{', ' ']).next().unwrap();
            let family = *families.last().unwrap();
            let suffix = match types[family] {
                "counter" => "_total",
                "info" => "_info",
                _ => "",
            };
            assert_eq!(name, format!("{family}{suffix}"));
        }
    }
    let series: Vec<_> = page.samples().map(|(name, labels, _)| (name, labels)).collect();
    let distinct: BTreeSet<_> = series.iter().collect();
    assert_eq!(distinct.len(), series.len(), "a series stands twice");
}

#[test]
fn labels_are_spelt_as_on_the_wire() {
    // [wire-2] [decide-18]
    let service = Service::enforcing(everything);
    happen(&service);
    let page = service.metrics();
    let values = |name: &str, label: &str| -> BTreeSet<String> {
        let key = format!("{label}=\"");
        let labels = page.samples().filter(|(own, ..)| *own == name).map(|(_, labels, _)| labels);
        labels
            .map(|labels| labels.split_once(&key).unwrap().1.split_once('"').unwrap().0.to_owned())
            .collect()
    };
    let set = |values: &[&str]| -> BTreeSet<String> {
        values.iter().map(|&value| value.to_owned()).collect()
    };
    let stops: Vec<_> = Stop::ALL.into_iter().map(Stop::as_str).collect();
    assert_eq!(values("onus_retries_not_made_total", "reason"), set(&stops));
    let reasons: Vec<_> = ClaimReason::ALL.into_iter().map(ClaimReason::as_str).collect();
    assert_eq!(values("onus_claims_total", "reason"), set(&reasons));
    let claims = ["claimed", "claimed-silent", "unclaimed", "unclaimed-shield"];
    assert_eq!(values("onus_claims_total", "claim"), set(&claims));
    let causes = ["claimed", "claimed-silent", "unclaimed", "missing", "silent", "probe"];
    assert_eq!(values("onus_retries_total", "cause"), set(&causes));
    assert!(causes.iter().all(|cause| RetryCause::ALL.iter().any(|own| own.as_str() == *cause)));
    let arms = ["off", "observe", "control", "enforce"];
    for name in ["onus_calls_total", "onus_requests_total", "onus_claims_total"] {
        // [mode-9]
        assert_eq!(values(name, "arm"), set(&arms), "{name}");
    }
}

#[test]
fn a_request_is_counted_where_it_belongs() {
    // [mode-9] [decide-18] [fault-3]
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    let request = service.request();
    request.call("b").play(&[Reply::Error("claimed"), Reply::Ok]);
    request.call("b").play(&[Reply::Silence, Reply::Error("claimed;x")]);
    request.call("c").play(&[Reply::Error("unclaimed;;")]);
    request.call("d").play(&[Reply::Hang]);
    request.error();
    service.request().ok();
    let page = service.metrics();
    for (series, expected) in [
        ("onus_calls_total callee=b outcome=ok arm=enforce", 1),
        ("onus_calls_total callee=b outcome=error arm=enforce", 1),
        ("onus_calls_total callee=c outcome=error arm=enforce", 1),
        ("onus_calls_total callee=d outcome=abandoned arm=enforce", 1),
        ("onus_calls_total", 4),
        ("onus_retries_total verdict=made cause=claimed arm=enforce", 1),
        ("onus_retries_total verdict=made cause=silent arm=enforce", 1),
        ("onus_retries_total verdict=made", 2),
        ("onus_retries_total verdict=succeeded cause=claimed arm=enforce", 1),
        ("onus_retries_total verdict=succeeded", 1),
        ("onus_retries_not_made_total callee=b reason=exhausted arm=enforce", 1),
        ("onus_retries_not_made_total callee=c reason=not-configured arm=enforce", 1),
        ("onus_retries_not_made_total", 2),
        ("onus_shadow_suppressed_total", 0),
        ("onus_invalid_claims_total callee=c reason=unparsable", 1),
        ("onus_invalid_claims_total", 1),
        ("onus_claims_total claim=unclaimed reason=exhausted arm=enforce", 1),
        ("onus_claims_total", 1),
        ("onus_requests_total service=a outcome=error arm=enforce", 1),
        ("onus_requests_total service=a outcome=ok arm=enforce", 1),
        ("onus_requests_total", 2),
        ("onus_clean_requests_total caller=a outcome=ok", 1),
        ("onus_clean_requests_total", 1),
        (
            "onus_edge_requests_total callee=b callee_outcome=error caller_outcome=error \
             isolated=false",
            1,
        ),
        (
            "onus_edge_requests_total callee=c callee_outcome=error caller_outcome=error \
             isolated=false",
            1,
        ),
        ("onus_edge_requests_total", 2),
        ("onus_untied_calls_total", 0),
        ("onus_repeats_total", 0),
        ("onus_overflows_total", 0),
        ("onus_faults_total", 0),
    ] {
        check(&page, series, f64::from(expected));
    }
    let labels = page.series("onus_calls_total", &[("callee", "b"), ("caller", "a")]);
    let both = |text: &str| text.contains("caller_method=\"GET /in\",callee=\"b\"");
    assert!(labels.iter().all(|(text, _)| both(text)), "{labels:?}");
}

#[test]
fn what_observing_would_have_suppressed_is_counted() {
    // [mode-5]
    for (mode, arm) in
        [(Mode::Observe, "observe"), (Mode::Enforce(Share::percent(0).unwrap()), "control")]
    {
        let service = Service::new(mode, |config| config.retry("b", retries(3)));
        let request = service.request_with(&[("onus-mark", "1")]);
        let replies = [Reply::Error("unclaimed"), Reply::Silence, Reply::Ok];
        assert_eq!(request.call("b").play(&replies), None);
        let page = service.metrics();
        for (series, expected) in [
            ("onus_shadow_suppressed_total reason=suppressed", 1.0),
            ("onus_shadow_suppressed_total reason=marked", 1.0),
            ("onus_retries_total verdict=made cause=unclaimed", 1.0),
            ("onus_retries_total verdict=made cause=silent", 1.0),
            ("onus_retries_total verdict=succeeded cause=silent", 1.0),
        ] {
            check(&page, &format!("{series} arm={arm}"), expected);
        }
    }
}

#[test]
fn modes_and_switches_show() {
    // [shield-5]
    let service = Service::new(Mode::Observe, |_| {});
    let state = |service: &Service| {
        let page = service.metrics();
        let on: Vec<_> = page
            .series("onus_mode", &[])
            .into_iter()
            .filter(|(_, value)| *value == 1.0)
            .map(|(labels, _)| labels.split("mode=\"").nth(1).unwrap().replace("\"}", ""))
            .collect();
        let share = page.sum("onus_enforce_share_ratio", &[("service", "a")]);
        let shield = page.sum("onus_shield_seconds_left", &[("service", "a")]);
        let said = page.series("onus_switch_info", &[]);
        let said: Vec<_> = said.iter().map(|(labels, _)| (*labels).to_owned()).collect();
        (on.join(" "), share, shield, said.join(" "))
    };
    assert_eq!(state(&service), ("observe".into(), 0.0, 0.0, String::new()));
    service.pass(Duration::from_secs(5));
    let text = format!("mode: enforce 25%\nshield: 90s\nwho: alice\nwhy: {}\n", "x".repeat(200));
    service.agent.switch_file(SwitchFile::new(&text), service.now()).unwrap();
    let said = |shield: &str, why: &str| {
        format!(
            "{{service=\"a\",source=\"file\",mode=\"enforce\",shield_seconds=\"{shield}\",\
             who=\"alice\",why=\"{why}\"}}"
        )
    };
    let why = "x".repeat(128);
    assert_eq!(state(&service), ("enforce".into(), 0.25, 90.0, said("90", &why)));
    service.pass(Duration::from_secs(60));
    assert_eq!(state(&service), ("enforce".into(), 0.25, 30.0, said("90", &why)));
    let refused = || service.metrics().sum("onus_switch_file_refused", &[("service", "a")]);
    assert_eq!(refused(), 0.0);
    service.agent.switch_file(SwitchFile::new("mode: loud"), service.now()).unwrap_err();
    assert_eq!(refused(), 1.0);
    service.agent.switch_file(SwitchFile::Missing, service.now()).unwrap();
    assert_eq!(refused(), 0.0);
    service.agent.switch_file(SwitchFile::Unreadable, service.now()).unwrap();
    assert_eq!(refused(), 1.0);
    assert_eq!(state(&service), ("observe".into(), 0.0, 0.0, String::new()));
    switch(&service, Mode::Off);
    assert_eq!(state(&service).0, "off");
}

#[test]
fn budgets_and_their_bounds_show() {
    // [budget-10]
    let budget = |percent, floor| {
        RetryPolicy::articles(3).budget_percent(percent).budget_min_per_second(floor)
    };
    for (policy, calls, seconds, balance, bound) in [
        (budget(10, 0), 30, 10, Some(3.0), Some(1.1)),
        (budget(10, 1), 30, 10, Some(4.0), Some(1.0 + 0.1 + 1.0 / 3.0)),
        (budget(10, 1), 4, 10, Some(1.0), Some(3.0)),
        (budget(10, 1), 1, 0, Some(1.0), Some(2.1)),
        (retries(3), 30, 10, None, Some(3.0)),
        (retries(1), 30, 10, None, None),
    ] {
        let service = Service::enforcing(|config| config.retry("b", policy.clone()));
        // The edge is a few seconds old when its calls come.
        service.edge(Some(&service.request().inbound), "b", "/out");
        service.pass(Duration::from_secs(seconds));
        let request = service.request();
        // Without a body that is known, none of them is a repeat of another.
        let target = Target { body: None, ..Target::GET };
        for _ in 0..calls {
            request.call_to("b", &target).play(&[Reply::Hang]);
        }
        let page = service.metrics();
        let read = |name| page.series(name, &[("callee", "b")]).first().map(|(_, value)| *value);
        assert_eq!(read("onus_budget_balance"), balance, "{policy:?}");
        let found = read("onus_budget_bound_ratio");
        let close = match (found, bound) {
            (Some(found), Some(bound)) => (found - bound).abs() < 1e-9,
            (found, bound) => found == bound,
        };
        assert!(close, "{found:?} instead of {bound:?}: {policy:?}");
    }
}

#[test]
fn the_gate_shows_how_well_retries_work() {
    let service = Service::enforcing(|config| {
        config.retry("b", retries(2).gate());
        config.retry("c", retries(2));
    });
    let request = service.request();
    for callee in ["b", "c"] {
        request.call(callee).play(&[Reply::Error("claimed"), Reply::Error("claimed")]);
    }
    let page = service.metrics();
    let gates = page.series("onus_gate_efficacy_ratio", &[]);
    // [gate-1]: 1000 + (0 - 1000) / 50 permille.
    assert_eq!(gates.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [0.98]);
}

#[test]
fn a_claim_has_a_counter_of_its_own() {
    let service = Service::enforcing(|_| {});
    let spelt = |claim: Claim| onus_agent::CalleeClaim::Reply(claim).as_str();
    let shield = Switches { shield: Some(Duration::from_secs(60)), ..Switches::default() };
    service.request().error();
    let request = service.request();
    request.call("b").play(&[Reply::Silence]);
    request.error();
    service.agent.switch(Source::Admin, &shield, service.now());
    service.request().error();
    let page = service.metrics();
    for (claim, reason) in [
        (Claim::Claimed, "own"),
        (Claim::ClaimedSilent, "handoff"),
        (Claim::UnclaimedShield, "operator"),
    ] {
        check(&page, &format!("onus_claims_total claim={} reason={reason}", spelt(claim)), 1.0);
    }
    check(&page, "onus_claims_total", 3.0);
}

/// `series` is a name and labels of which all must be there; their sum is compared.
fn check(page: &Exposition, series: &str, expected: f64) {
    let mut words = series.split(' ').filter(|word| !word.is_empty());
    let name = words.next().unwrap();
    let labels: Vec<_> = words.map(|word| word.split_once('=').unwrap()).collect();
    let found = page.sum(name, &labels);
    assert!(found == expected, "{series} is {found}, not {expected}");
}

#[test]
fn the_page_on_metrics_names_every_family_and_label() {
    let page = include_str!("../../../../docs/metrics.md");
    // What a sidecar adds to them is counted by the sidecar.
    let (own, _) = page.split_once("\n## The sidecar").expect("a section of the sidecar's");
    let rows = own.lines().filter_map(|line| line.strip_prefix("| `onus_"));
    let documented: BTreeMap<_, _> = rows
        .map(|row| {
            let mut cells = row.split('|').map(str::trim);
            let name = format!("onus_{}", cells.next().unwrap().trim_end_matches('`'));
            let labels = cells.next().unwrap();
            let labels = match labels {
                "edge" => "caller caller_method callee callee_method".to_owned(),
                _ => labels.replace("edge, ", "caller caller_method callee callee_method "),
            };
            let labels = labels.replace(['`', ','], "");
            (name, labels.split(' ').map(str::to_owned).collect::<BTreeSet<_>>())
        })
        .collect();
    let service = Service::enforcing(everything);
    happen(&service);
    let scrape = service.metrics();
    let mut exported = BTreeMap::new();
    for (name, labels, _) in scrape.samples() {
        let labels = labels.trim_matches(['{', '}']).split("\",");
        let keys = labels.map(|label| label.split_once("=\"").unwrap().0.to_owned());
        exported.insert(name.to_owned(), keys.collect::<BTreeSet<_>>());
    }
    assert_eq!(documented, exported);
}
