//! From the calls of a request to the claim on its error.

use onus_agent::{CallError, Mode, Stop, Verdict};

use crate::host::{Reply, Service, headers, line, retries};

const CLAIMED: Reply = Reply::Error("claimed");
const SILENT: Reply = Reply::Error("claimed;kind=silent");
const UNCLAIMED: Reply = Reply::Error("unclaimed");
const SHIELDED: Reply = Reply::Error("unclaimed;kind=shield");
const MISSING: Reply = Reply::Error("");

/// The claim on the error of a request that made these calls: `b` may be tried twice, `c` once,
/// `open` is known to be fail-open.
fn claim_after(calls: &[(&str, &[Reply])]) -> String {
    let service = Service::enforcing(|config| {
        config.retry("b", retries(2));
        config.override_class("open", onus_agent::EdgeClass::FailOpen);
    });
    let request = service.request();
    for (callee, replies) in calls {
        request.call(callee).play(replies);
    }
    request.claim()
}

#[test]
fn an_error_is_claimed_by_what_its_calls_came_to() {
    // [claim-3] [claim-4] [claim-5] [claim-6] [claim-8] [claim-10] [criteria-1] [criteria-2]
    // [criteria-3] [wire-1] [wire-3] [wire-4]
    let own = "claimed;reason=own;attempt=1;origin=\"a\";hops=0";
    let handoff = "claimed;reason=handoff;attempt=1;origin=\"c\";hops=1";
    let silent = "claimed;kind=silent;reason=handoff;attempt=1;origin=\"c\";hops=1";
    let unclaimed = |reason: &str, origin: &str| {
        format!("unclaimed;reason={reason};attempt=1;origin=\"{origin}\";hops=1")
    };
    for (calls, claim) in [
        (&[][..], own.to_owned()),
        (&[("b", &[Reply::Ok][..])], own.to_owned()),
        (&[("b", &[CLAIMED, Reply::Ok])], own.to_owned()),
        (&[("open", &[CLAIMED])], own.to_owned()),
        (&[("open", &[UNCLAIMED])], own.to_owned()),
        (&[("c", &[CLAIMED])], handoff.to_owned()),
        (&[("c", &[SILENT])], silent.to_owned()),
        (&[("c", &[MISSING])], silent.to_owned()),
        (&[("c", &[Reply::Silence])], silent.to_owned()),
        (&[("c", &[UNCLAIMED])], unclaimed("suppressed", "c")),
        (&[("c", &[SHIELDED])], unclaimed("suppressed", "c")),
        (&[("b", &[CLAIMED, CLAIMED])], unclaimed("exhausted", "b")),
        (&[("b", &[MISSING, Reply::Silence])], unclaimed("exhausted", "b")),
        (&[("b", &[CLAIMED, UNCLAIMED])], unclaimed("suppressed", "b")),
        (&[("c", &[CLAIMED]), ("b", &[CLAIMED, CLAIMED])], unclaimed("exhausted", "b")),
        (&[("c", &[CLAIMED]), ("d", &[Reply::Silence])], silent.to_owned()),
        (&[("c", &[UNCLAIMED]), ("b", &[CLAIMED, CLAIMED])], unclaimed("suppressed", "c")),
        (&[("open", &[Reply::Silence]), ("c", &[CLAIMED])], handoff.to_owned()),
    ] {
        assert_eq!(claim_after(calls), claim, "{calls:?}");
    }
}

#[test]
fn a_success_carries_no_claim() {
    // [claim-9] [wire-8]
    for mode in [Mode::Observe, Mode::ENFORCE] {
        let service = Service::new(mode, |_| {});
        let request = service.request();
        request.call("b").play(&[UNCLAIMED]);
        let copied = [("onus-claim", "unclaimed"), ("x-other", "kept")];
        assert_eq!(request.answer(false, &copied), headers(&[("x-other", "kept")]), "{mode:?}");
    }
}

#[test]
fn a_copied_claim_is_replaced() {
    // [wire-1] [wire-8]
    let service = Service::enforcing(|_| {});
    let answer = service.request().answer(
        true,
        &[("onus-claim", "unclaimed;reason=exhausted;origin=\"z\""), ("onus-claim", "claimed")],
    );
    assert_eq!(line(&answer, "onus-claim"), "claimed;reason=own;attempt=1;origin=\"a\";hops=0");
}

#[test]
fn origin_and_hops_lead_to_the_service_that_failed_first() {
    // [wire-3] [wire-4] [wire-5] [wire-6]
    let far = "z".repeat(128);
    let farther = "z".repeat(129);
    let own = |origin: &str, hops: u32| {
        format!("unclaimed;reason=suppressed;attempt=1;origin=\"{origin}\";hops={hops}")
    };
    for (read, claim) in [
        ("unclaimed;origin=\"d\";hops=0".to_owned(), own("d", 1)),
        ("unclaimed;origin=\"d\";hops=3".to_owned(), own("d", 4)),
        ("unclaimed;origin=\"d\"".to_owned(), own("d", 1)),
        ("unclaimed;origin=\"d\";hops=254".to_owned(), own("d", 255)),
        ("unclaimed;origin=\"d\";hops=255".to_owned(), own("d", 255)),
        ("unclaimed;origin=\"d\";hops=999999999999999".to_owned(), own("d", 255)),
        ("unclaimed".to_owned(), own("c", 1)),
        ("unclaimed;hops=3".to_owned(), own("c", 1)),
        ("unclaimed;origin=d;hops=3".to_owned(), own("c", 1)),
        ("unclaimed;kind=shield;origin=\"d\";hops=0".to_owned(), own("d", 1)),
        (format!("unclaimed;origin=\"{far}\";hops=1"), own(&far, 2)),
        (format!("unclaimed;origin=\"{farther}\";hops=1"), own("c", 1)),
    ] {
        let service = Service::enforcing(|_| {});
        let request = service.request();
        let mut call = request.call("c");
        call.send();
        let verdict = call.fail(CallError::Http(503), Some(&[("onus-claim", &read)]));
        let outcome = call.outbound.outcome(&verdict).unwrap();
        drop(call);
        let sent = request.claim();
        assert_eq!(sent, claim, "{read}");
        // The application reads the same.
        let origin = outcome.origin.map(|origin| (origin.service.to_string(), origin.hops));
        let (_, rest) = sent.split_once("origin=\"").unwrap();
        let (name, hops) = rest.split_once("\";hops=").unwrap();
        let told = (name.to_owned(), hops.parse().unwrap());
        assert_eq!(origin.unwrap_or_else(|| ("c".to_owned(), 1)), told, "{read}");
    }
}

#[test]
fn of_several_calls_the_first_that_decides_gives_the_origin() {
    // [claim-10] [wire-3]
    let of = |origin: &'static str| match origin {
        "x" => Reply::Error("unclaimed;origin=\"x\";hops=1"),
        _ => Reply::Error("claimed;origin=\"y\";hops=0"),
    };
    for (calls, tail) in [
        ([("c", "x"), ("d", "x")], "unclaimed;reason=suppressed;attempt=1;origin=\"x\";hops=2"),
        ([("c", "y"), ("d", "x")], "unclaimed;reason=suppressed;attempt=1;origin=\"x\";hops=2"),
        ([("open", "x"), ("d", "y")], "claimed;reason=handoff;attempt=1;origin=\"y\";hops=1"),
        ([("c", "y"), ("open", "x")], "claimed;reason=handoff;attempt=1;origin=\"y\";hops=1"),
    ] {
        let replies = calls.map(|(callee, origin)| (callee, [of(origin)]));
        let played: Vec<_> = replies.iter().map(|(callee, reply)| (*callee, &reply[..])).collect();
        assert_eq!(claim_after(&played), tail, "{calls:?}");
    }
}

#[test]
fn diagnostics_decide_nothing() {
    // [claim-11] [wire-6]
    let diagnostics = [
        "",
        ";reason=own",
        ";reason=operator",
        ";reason=later;kindness=1",
        ";origin=\"a\";hops=255",
        ";origin=\"\";hops=0",
        ";x=1;y=?1;z=:AA==:",
    ];
    for token in ["claimed", "claimed;kind=silent", "unclaimed", "unclaimed;kind=shield"] {
        let decisions = diagnostics.map(|more| {
            let service = Service::enforcing(|config| config.retry("b", retries(2)));
            let request = service.request();
            let mut call = request.call("b");
            call.send();
            let claim = format!("{token}{more}");
            let verdict = call.fail(CallError::Http(503), Some(&[("onus-claim", &claim)]));
            let next = line(&call.send(), "onus-mark");
            drop(call);
            let own = request.claim();
            (verdict, next, own.split_once(";origin").unwrap().0.to_owned())
        });
        assert!(
            decisions.iter().all(|decision| *decision == decisions[0]),
            "{token}: {decisions:?}"
        );
    }
}

#[test]
fn errors_whose_calls_met_only_silence_stay_claimed_where_it_is_set() {
    // [claim-7] [claim-8]
    const SILENCE: [Reply; 2] = [Reply::Silence; 2];
    let silent = "claimed;kind=silent;reason=silent";
    let exhausted = "unclaimed;reason=exhausted";
    let marked = &[("onus-mark", "1")][..];
    for (set, request, calls, claim) in [
        (true, &[][..], &[("b", &SILENCE[..])][..], silent),
        (false, &[], &[("b", &SILENCE)], exhausted),
        (true, &[], &[("b", &[MISSING, Reply::Silence])], exhausted),
        (true, &[], &[("b", &[Reply::Silence, CLAIMED])], exhausted),
        (true, &[], &[("b", &SILENCE), ("c", &[Reply::Silence])], silent),
        (true, &[], &[("b", &SILENCE), ("c", &[CLAIMED])], exhausted),
        (true, &[], &[("b", &SILENCE), ("open", &[CLAIMED])], silent),
        (true, &[], &[("c", &[Reply::Silence])], "claimed;kind=silent;reason=handoff"),
        (true, marked, &[("b", &[Reply::Silence])], "unclaimed;reason=marked"),
        (true, &[], &[("b", &[Reply::Silence, Reply::Hang])], silent),
    ] {
        let service = Service::enforcing(|config| {
            config.silent_claims = set;
            config.retry("b", retries(2));
            config.override_class("open", onus_agent::EdgeClass::FailOpen);
        });
        let request = service.request_with(request);
        for (callee, replies) in calls {
            request.call(callee).play(replies);
        }
        let sent = request.claim();
        assert_eq!(sent.split_once(";attempt").unwrap().0, claim, "{set} {calls:?}");
    }
}

#[test]
fn calls_that_nothing_ties_to_a_request_may_be_any_requests_own() {
    // [claim-2] [correlate-5]
    let lost = "claimed;reason=context-lost;attempt=1;origin=\"a\";hops=0";
    let own = "claimed;reason=own;attempt=1;origin=\"a\";hops=0";
    let service = Service::enforcing(|_| {});
    service.untied_call("b").play(&[UNCLAIMED]);
    let after = service.request();
    let during = service.request();
    assert_eq!(after.claim(), own, "made before it arrived");
    service.untied_call("b").play(&[UNCLAIMED]);
    assert_eq!(during.claim(), lost);
    // A tied call that failed decides.
    let request = service.request();
    service.untied_call("b").play(&[UNCLAIMED]);
    request.call("c").play(&[CLAIMED]);
    assert_eq!(request.claim(), "claimed;reason=handoff;attempt=1;origin=\"c\";hops=1");
    // One that is blamed on nobody has failed as well.
    let service = Service::enforcing(|config| {
        config.override_class("open", onus_agent::EdgeClass::FailOpen);
    });
    let request = service.request();
    service.untied_call("b").play(&[UNCLAIMED]);
    request.call("open").play(&[CLAIMED]);
    assert_eq!(request.claim(), own);
}

#[test]
fn the_operators_class_wins_over_the_codes() {
    // [class-9]
    use onus_agent::{Annotation, EdgeClass};
    for (operator, annotation, claim) in [
        (None, None, "unclaimed;reason=suppressed"),
        (None, Some(Annotation::Required), "unclaimed;reason=suppressed"),
        (None, Some(Annotation::Optional), "claimed;reason=own"),
        (Some(EdgeClass::FailOpen), Some(Annotation::Required), "claimed;reason=own"),
        (Some(EdgeClass::FailClose), Some(Annotation::Optional), "unclaimed;reason=suppressed"),
        (Some(EdgeClass::Unknown), Some(Annotation::Optional), "unclaimed;reason=suppressed"),
    ] {
        let service = Service::enforcing(|config| {
            annotation.into_iter().for_each(|said| config.annotate("b", said));
            operator.into_iter().for_each(|said| config.override_class("b", said));
        });
        let request = service.request();
        request.call("b").play(&[UNCLAIMED]);
        let sent = request.claim();
        assert_eq!(sent.split_once(";attempt").unwrap().0, claim, "{operator:?} {annotation:?}");
    }
}

#[test]
fn an_alias_is_another_line_of_the_claim() {
    // [wire-10] [wire-9] [wire-8] [fault-3]
    const ALIAS: &str = "x-uber-error-claim";
    let service = Service::enforcing(|config| {
        config.claim_alias = Some(http::HeaderName::from_static(ALIAS));
        config.retry("b", retries(2));
    });
    for (lines, verdict) in [
        (&[(ALIAS, "unclaimed")][..], Some(Stop::Suppressed)),
        (&[(ALIAS, "unclaimed"), ("onus-claim", "unclaimed")], Some(Stop::Suppressed)),
        (&[(ALIAS, "claimed")], None),
        // Contradicting lines are none.
        (&[(ALIAS, "unclaimed"), ("onus-claim", "claimed")], None),
    ] {
        let request = service.request();
        let mut call = request.call("b");
        call.send();
        let stop = match call.fail(CallError::Http(503), Some(lines)) {
            Verdict::Stop(stop) => Some(stop),
            Verdict::Retry(_) => None,
        };
        assert_eq!(stop, verdict, "{lines:?}");
        if stop.is_some() {
            let mut reply = headers(lines);
            call.outbound.hide_from_application(&mut reply);
            assert_eq!(reply, headers(&[]), "{lines:?}");
        }
    }
    let invalid = [("reason", "contradiction")];
    assert_eq!(service.metrics().sum("onus_invalid_claims_total", &invalid), 1.0);

    let copied = [(ALIAS, "unclaimed"), ("onus-claim", "unclaimed")];
    let answer = service.request().answer(true, &copied);
    let own = "claimed;reason=own;attempt=1;origin=\"a\";hops=0";
    assert_eq!(answer, headers(&[("onus-claim", own), (ALIAS, own)]));
    assert_eq!(service.request().answer(false, &copied), headers(&[]));
}

#[test]
fn a_claim_on_a_success_is_hidden() {
    // [wire-9] [wire-10]
    const ALIAS: &str = "x-uber-error-claim";
    let service = Service::enforcing(|config| {
        config.claim_alias = Some(http::HeaderName::from_static(ALIAS));
    });
    for lines in [&[("onus-claim", "claimed")][..], &[(ALIAS, "claimed")], &[(ALIAS, "nonsense")]] {
        let request = service.request();
        let mut call = request.call("b");
        call.send();
        call.reply(Reply::Ok);
        let mut reply = headers(&[lines, &[("x-own", "kept")]].concat());
        call.outbound.hide_from_application(&mut reply);
        assert_eq!(reply, headers(&[("x-own", "kept")]), "{lines:?}");
    }
}

#[test]
fn a_broken_claim_is_missing_and_counted() {
    // [fault-3] [wire-7]
    let long = format!("claimed;x={}", "y".repeat(250));
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    for (claim, reason) in [
        ("claimed;;", "unparsable"),
        ("disclaimed", "unknown-token"),
        ("claimed;kind=shield", "contradiction"),
        (&long, "too-long"),
    ] {
        let request = service.request();
        let mut call = request.call("b");
        call.send();
        let verdict = call.fail(CallError::Http(503), Some(&[("onus-claim", claim)]));
        assert!(matches!(verdict, Verdict::Retry(_)), "{claim}: {verdict:?}");
        assert_eq!(line(&call.send(), "onus-mark"), "1", "{claim}: as after a lost answer");
        let page = service.metrics();
        assert_eq!(page.sum("onus_invalid_claims_total", &[("reason", reason)]), 1.0, "{claim}");
    }
    let made = [("cause", "missing"), ("verdict", "made")];
    assert_eq!(service.metrics().sum("onus_retries_total", &made), 4.0);
}
