//! How far ownership reaches: modes, shares, the shield, and who switches them.

use std::time::Duration;

use http::HeaderMap;
use onus_agent::{Mode, Share, Source, Stop, SwitchFile, Switches, Verdict};

use crate::host::{Call, Reply, Service, Target, headers, line, retries, stopped};

fn share(percent: u8) -> Mode {
    Mode::Enforce(Share::percent(percent).unwrap())
}

fn is_retry(verdict: Option<Verdict>) -> bool {
    matches!(verdict, Some(Verdict::Retry(_)))
}

fn vetoes(answer: &HeaderMap) -> (String, String) {
    (line(answer, "x-envoy-ratelimited"), line(answer, "grpc-retry-pushback-ms"))
}

#[test]
fn a_service_observes_unless_told_otherwise() {
    // [mode-1]
    let config = onus_agent::AgentConfig::new("a");
    let agent = onus_agent::Agent::new(&config, 0, onus_agent::Timestamp::ZERO).unwrap();
    assert_eq!(agent.mode(), Mode::Observe);
}

#[test]
fn in_mode_off_no_header_is_touched() {
    // [mode-2]
    let service = Service::new(Mode::Off, |config| {
        config.retry("b", retries(3));
        config.untrusted("s");
        config.untrusted_callers = true;
    });
    let own = [
        ("onus-mark", "1"),
        ("onus-attempt", "7"),
        ("onus-claim", "unclaimed"),
        ("x-envoy-ratelimited", "true"),
        ("grpc-retry-pushback-ms", "-1"),
    ];
    let request = service.request_with(&own);
    assert_eq!(request.headers, headers(&own), "of a request");
    for callee in ["b", "c", "s"] {
        let mut call = request.call_to(callee, &Target { carries: &own, ..Target::GET });
        assert_eq!(call.send(), headers(&own), "to {callee}");
        call.reply(Reply::Silence);
        assert_eq!(call.send(), headers(&own), "to {callee}, after silence");
        let mut reply = headers(&own);
        call.outbound.hide_from_application(&mut reply);
        assert_eq!(reply, headers(&own), "of a reply of {callee}");
    }
    assert_eq!(request.answer(true, &own), headers(&own), "of an error");
    assert_eq!(service.request().answer(false, &own), headers(&own), "of a success");
}

#[test]
fn in_mode_off_configured_retries_go_on_and_claims_are_not_read() {
    // [mode-3]
    let policy = retries(2).gate();
    let service = Service::new(Mode::Off, |config| config.retry("b", policy));
    for claim in ["unclaimed", "unclaimed;kind=shield", "claimed;kind=silent", ""] {
        let request = service.request_with(&[("onus-mark", "1")]);
        let verdict = request.call("b").play(&[Reply::Error(claim), Reply::Error(claim)]);
        assert_eq!(verdict, stopped(Stop::Exhausted), "{claim}");
        assert_eq!(request.error(), headers(&[]), "{claim}");
    }
    let page = service.metrics();
    let made = page.sum("onus_retries_total", &[("arm", "off"), ("cause", "missing")]);
    assert_eq!((made, page.sum("onus_claims_total", &[])), (4.0, 0.0));
}

#[test]
fn observing_claims_by_the_shadow_stop_and_stops_nothing() {
    // [mode-4] [mode-5] [mode-6] [wire-12]
    let claim = |mode, lines, replies: &[Reply]| {
        let service = Service::new(mode, |config| config.retry("b", retries(3)));
        let request = service.request_with(lines);
        let verdict = request.call("b").play(replies);
        let answer = request.error();
        assert_eq!(vetoes(&answer), (String::new(), String::new()), "{mode:?} {replies:?}");
        (verdict, line(&answer, "onus-claim"))
    };
    let unclaimed =
        |reason: &str| format!("unclaimed;reason={reason};attempt=1;origin=\"b\";hops=1");
    const UNCLAIMED: Reply = Reply::Error("unclaimed");
    const SHIELD: Reply = Reply::Error("unclaimed;kind=shield");
    const CLAIMED: Reply = Reply::Error("claimed");
    let exhausted = stopped(Stop::Exhausted);
    for mode in [Mode::Observe, share(0)] {
        for (replies, stop, reason) in [
            (&[CLAIMED, CLAIMED, CLAIMED][..], exhausted, "exhausted"),
            (&[UNCLAIMED, CLAIMED, CLAIMED], exhausted, "suppressed"),
            (&[CLAIMED, UNCLAIMED, CLAIMED], exhausted, "suppressed"),
            (&[CLAIMED, CLAIMED, UNCLAIMED], exhausted, "suppressed"),
            (&[SHIELD], stopped(Stop::Suppressed), "suppressed"),
            (&[UNCLAIMED, SHIELD], stopped(Stop::Suppressed), "suppressed"),
        ] {
            assert_eq!(claim(mode, &[], replies), (stop, unclaimed(reason)), "{replies:?}");
        }
        let marked = &[("onus-mark", "1")][..];
        let replies = [Reply::Silence, UNCLAIMED, CLAIMED];
        assert_eq!(claim(mode, marked, &replies), (exhausted, unclaimed("marked")));
        // Given up in backoff, the call still ends by what enforcing would have done.
        let (verdict, claim) = claim(mode, &[], &[UNCLAIMED]);
        assert!(is_retry(verdict), "{verdict:?}");
        assert_eq!(claim, unclaimed("suppressed"));
    }
}

#[test]
fn enforcing_suppresses_and_vetoes() {
    // [decide-1] [wire-11] [wire-14]
    let service = Service::enforcing(|config| config.retry("b", retries(3)));
    for (grpc, own, expected) in [
        (false, &[][..], ("true", "")),
        (true, &[], ("true", "-1")),
        (true, &[("grpc-retry-pushback-ms", "250")], ("true", "250")),
    ] {
        let request = service.request();
        let verdict = request.call("b").play(&[Reply::Error("unclaimed")]);
        assert_eq!(verdict, stopped(Stop::Suppressed));
        let mut answer = headers(own);
        request.inbound.answer(true, grpc, &mut answer, service.now());
        assert_eq!(vetoes(&answer), (expected.0.to_owned(), expected.1.to_owned()));
    }
    // Claimed errors are the callers' to retry.
    assert_eq!(vetoes(&service.request().error()), (String::new(), String::new()));
}

#[test]
fn a_probe_withholds_the_vetoes() {
    // [wire-13] [probe-3]
    let policy = onus_agent::RetryPolicy::attempts(2).no_budget();
    let service = Service::enforcing(|config| config.retry("b", policy));
    for (probed, veto) in [(true, ""), (false, "true")] {
        let request = service.request();
        let mut call = request.call("b");
        call.send();
        let verdict = call.reply(Reply::Error("unclaimed"));
        assert_eq!(is_retry(verdict), probed, "one is due in ten seconds");
        if probed {
            call.send();
            assert_eq!(call.reply(Reply::Error("claimed")), stopped(Stop::Suppressed));
        }
        drop(call);
        let answer = request.error();
        assert_eq!(line(&answer, "x-envoy-ratelimited"), veto, "probed: {probed}");
        let claim = line(&answer, "onus-claim");
        assert!(claim.starts_with("unclaimed;reason=suppressed;"), "{claim}");
    }
    let page = service.metrics();
    let probes = [("cause", "probe"), ("verdict", "made"), ("arm", "enforce")];
    assert_eq!(page.sum("onus_retries_total", &probes), 1.0);
}

/// The trees of docs/protocol.md with their lots.
const TREES: [(&str, u16); 6] = [
    ("0000000000000000000000000000023c", 3),
    ("0af7651916cd43dd8448eb211c80319c", 548),
    ("4bf92f3577b34da6a3ce929d0e0e4736", 1581),
    ("00000000000000000000000000000001", 3010),
    ("80f198ee56343ba864fe8b2a57d3eff7", 5470),
    ("ffffffffffffffffffffffffffffffff", 8133),
];

#[test]
fn whole_trees_are_in_the_share_or_out() {
    // [mode-7] [mode-9]
    for percent in [0, 1, 5, 6, 15, 16, 30, 31, 54, 55, 81, 82, 100] {
        let service = Service::new(share(percent), |config| config.retry("b", retries(2)));
        let mut enforced = 0.0;
        for (trace, lot) in TREES {
            let traceparent = format!("00-{trace}-00f067aa0ba902b7-01");
            let lines = [("traceparent", traceparent.as_str())];
            let request = service.request_with(&lines);
            let verdict = request.call("b").play(&[Reply::Error("unclaimed")]);
            let inside = lot < u16::from(percent) * 100;
            assert_eq!(verdict == stopped(Stop::Suppressed), inside, "{trace} at {percent} %");
            let veto = line(&request.error(), "x-envoy-ratelimited");
            assert_eq!(veto == "true", inside, "{trace} at {percent} %");
            // A call that belongs to no request is in the share of its own trace.
            let target = Target { carries: &lines, ..Target::GET };
            let mut untied = service.untied_call_to("c", &target);
            untied.send();
            untied.reply(Reply::Silence);
            enforced += f64::from(u8::from(inside));
        }
        let page = service.metrics();
        for (arm, count) in [("enforce", enforced), ("control", 6.0 - enforced)] {
            for family in ["onus_requests_total", "onus_claims_total"] {
                assert_eq!(page.sum(family, &[("arm", arm)]), count, "{family} at {percent} %");
            }
            let untied = [("arm", arm), ("callee", "c")];
            assert_eq!(page.sum("onus_calls_total", &untied), count, "at {percent} %");
        }
    }
}

#[test]
fn a_request_without_a_trace_id_is_drawn_at_random() {
    // [mode-8]
    let service = Service::new(share(30), |_| {});
    let arm = |lines: &[(&str, &str)], bits| service.request_drawn(lines, bits).inbound.arm();
    let spelt = |bits| arm(&[], bits).as_str();
    assert_eq!([0, 2_999, 3_000, 9_999].map(spelt), ["enforce", "enforce", "control", "control"]);
    let inside = (0..10_000_u64).filter(|bits| spelt(bits * 0x9e37_79b9) == "enforce").count();
    assert!((2_800..3_200).contains(&inside), "{inside} of 10,000");
    // The trace id is drawn before the dice.
    let traced = ("traceparent", "00-0000000000000000000000000000023c-00f067aa0ba902b7-01");
    assert_eq!(arm(&[traced], 9_999).as_str(), "enforce");
}

#[test]
fn a_shield_answers_in_every_mode() {
    // [shield-1] [claim-1] [mode-2] [wire-12]
    let claim = "unclaimed;kind=shield;reason=operator;attempt=1;origin=\"a\";hops=0";
    for mode in [Mode::Off, Mode::Observe, share(0), Mode::ENFORCE] {
        let service = Service::new(mode, |_| {});
        service.shield(Duration::from_secs(60));
        let request = service.request();
        request.call("b").play(&[Reply::Error("claimed")]);
        let mut answer = headers(&[("onus-claim", "claimed")]);
        request.inbound.answer(true, true, &mut answer, service.now());
        assert_eq!(line(&answer, "onus-claim"), claim, "{mode:?}");
        assert_eq!(vetoes(&answer), ("true".into(), "-1".into()), "{mode:?}");
        assert_eq!(service.request().ok(), headers(&[]), "{mode:?}");
        service.pass(Duration::from_secs(60));
        let after = line(&service.request().error(), "onus-claim");
        assert_ne!(after, claim, "{mode:?}: it has ended");
        assert_eq!(after.is_empty(), mode == Mode::Off, "{mode:?}");
    }
}

#[test]
fn a_shield_ends_after_fifteen_minutes_unless_told_otherwise() {
    // [shield-2] [shield-4] [fault-4]
    let service = Service::new(Mode::Observe, |_| {});
    service.agent.switch_file(SwitchFile::new("shield: on\nwho: alice\n"), service.now()).unwrap();
    assert_eq!(service.agent.shield_left(service.now()), Duration::from_secs(900));
    let is_up = || service.request().claim().starts_with("unclaimed;kind=shield");
    assert!(is_up(), "with the next answer, without anybody else");
    service.pass(Duration::from_secs(899));
    assert!(is_up());
    service.pass(Duration::from_secs(1));
    assert!(!is_up());
    assert_eq!(service.agent.shield_left(service.now()), Duration::ZERO);
}

#[test]
fn a_switch_takes_effect_with_the_next_request() {
    // [shield-3] [shield-4] [fault-4]
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    let suppresses = || {
        let request = service.request();
        let verdict = request.call("b").play(&[Reply::Error("unclaimed")]);
        verdict == stopped(Stop::Suppressed)
    };
    let switch = |source, mode| {
        let switches = Switches { mode, ..Switches::default() };
        service.agent.switch(source, &switches, service.now());
    };
    assert!(suppresses());
    let begun = service.request();
    switch(Source::Analysis, Some(Mode::Off));
    assert!(!suppresses());
    let verdict = begun.call("b").play(&[Reply::Error("unclaimed")]);
    assert_eq!(verdict, stopped(Stop::Suppressed), "a request keeps the mode it began in");
    switch(Source::Admin, Some(Mode::ENFORCE));
    assert!(suppresses(), "an administrator wins over the analysis");
    service.agent.switch_file(SwitchFile::new("mode: observe"), service.now()).unwrap();
    assert!(!suppresses(), "the file wins over an administrator");
    let error =
        service.agent.switch_file(SwitchFile::new("mode: loud"), service.now()).unwrap_err();
    assert_eq!(error.line, 1);
    assert_eq!(service.agent.mode(), Mode::Observe, "what was in force stays in force");
    service.agent.switch_file(SwitchFile::Missing, service.now()).unwrap();
    assert!(suppresses(), "the file is gone");
}

#[test]
fn only_untied_calls_follow_a_switch_at_once() {
    // [mode-9]
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    let verdict = |mut call: Call<'_>| {
        call.send();
        call.reply(Reply::Error("unclaimed"))
    };
    assert_eq!(verdict(service.untied_call("b")), stopped(Stop::Suppressed));
    service.agent.switch_file(SwitchFile::new("mode: observe"), service.now()).unwrap();
    assert!(is_retry(verdict(service.untied_call("b"))));
}
