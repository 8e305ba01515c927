//! The application's own loop: the same call again, after it failed.

use onus_agent::{MethodKind, Stop, Verdict};

use crate::host::{Call, Reply, Service, Target, line, retries, stopped};

const BODY: Target<'static> = Target { body: Some("x"), ..Target::GET };

fn repeats(service: &Service) -> f64 {
    service.metrics().sum("onus_repeats_total", &[])
}

fn fails(mut call: Call<'_>) {
    call.send();
    call.reply(Reply::Error("claimed"));
}

#[test]
fn the_same_call_after_it_failed_is_a_repeat() {
    // [attempt-5] [attempt-6] [attempt-10]
    let abandoned = |mut call: Call<'_>| drop(call.send());
    let unsent = |call: Call<'_>| drop(call);
    let ok = |mut call: Call<'_>| {
        call.send();
        call.reply(Reply::Ok);
    };
    let post = Target { method: MethodKind::Unsafe, route: "/out", ..BODY };
    type Act = fn(Call<'_>);
    for (what, first, act, second, is_repeat) in [
        ("the same", ("b", BODY), fails as Act, ("b", BODY), true),
        ("without a body", ("b", Target::GET), fails, ("b", Target::GET), true),
        ("given up under way", ("b", BODY), abandoned, ("b", BODY), true),
        ("given up unsent", ("b", BODY), unsent, ("b", BODY), true),
        ("ended ok", ("b", BODY), ok, ("b", BODY), false),
        ("another callee", ("b", BODY), fails, ("c", BODY), false),
        ("another path", ("b", BODY), fails, ("b", Target { route: "/o", ..BODY }), false),
        ("another body", ("b", BODY), fails, ("b", Target::GET), false),
        ("a body not known", ("b", BODY), fails, ("b", Target { body: None, ..BODY }), false),
        ("none known", ("b", Target { body: None, ..BODY }), fails, ("b", BODY), false),
        ("a safe twin", ("b", post), fails, ("b", post), true),
    ] {
        let service = Service::enforcing(|_| {});
        let request = service.request();
        act(request.call_to(first.0, &first.1));
        let mut again = request.call_to(second.0, &second.1);
        assert_eq!(repeats(&service), f64::from(u8::from(is_repeat)), "{what}");
        let attempt = line(&again.send(), "onus-attempt");
        let sent_before = is_repeat && what != "given up unsent";
        assert_eq!(attempt, if sent_before { "2" } else { "" }, "{what}");
    }
}

#[test]
fn a_grpc_call_that_says_it_is_a_retry_is_a_repeat() {
    // [attempt-13] [attempt-12]
    const HTTP: MethodKind = MethodKind::Safe;
    const GRPC: MethodKind = MethodKind::Grpc;
    let ok = |mut call: Call<'_>| {
        call.send();
        call.reply(Reply::Ok);
    };
    let abandoned = |mut call: Call<'_>| drop(call.send());
    type Act = fn(Call<'_>);
    let enforce = onus_agent::Mode::ENFORCE;
    for (what, mode, method, first, act, second, sent) in [
        ("a retry", enforce, GRPC, "", fails as Act, "1", ("2", "1")),
        ("one that observes", onus_agent::Mode::Observe, GRPC, "", fails, "1", ("2", "1")),
        ("the retry of a retry", enforce, GRPC, "1", fails, "2", ("2", "2")),
        ("attempts were lost on the way", enforce, GRPC, "", fails, "3", ("2", "3")),
        ("given up", enforce, GRPC, "", abandoned, "1", ("2", "1")),
        ("another call", enforce, GRPC, "", fails, "", ("", "")),
        ("both copied", enforce, GRPC, "1", fails, "1", ("", "1")),
        ("no number", enforce, GRPC, "", fails, "many", ("", "many")),
        ("ended ok", enforce, GRPC, "", ok, "1", ("", "1")),
        ("no gRPC", enforce, HTTP, "", fails, "1", ("", "1")),
        ("switched off", onus_agent::Mode::Off, GRPC, "", fails, "1", ("", "1")),
    ] {
        let service = Service::new(mode, |_| {});
        let request = service.request();
        let made = |number: &str| {
            let carries = [("grpc-previous-rpc-attempts", number)];
            let carries = if number.is_empty() { &[][..] } else { &carries };
            request.call_to("b", &Target { method, body: None, carries, ..Target::GET })
        };
        act(made(first));
        let again = made(second).send();
        let is_repeat = !sent.0.is_empty();
        assert_eq!(repeats(&service), f64::from(u8::from(is_repeat)), "{what}");
        let said = ["onus-attempt", "grpc-previous-rpc-attempts"].map(|name| line(&again, name));
        assert_eq!(said, [sent.0, sent.1], "{what}");
    }
}

#[test]
fn retries_of_a_grpc_library_and_of_a_policy_are_counted_once() {
    // [attempt-12] [attempt-13] [attempt-7] [decide-8] [criteria-1]
    const CLAIMED: Reply = Reply::Error("claimed");
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    let request = service.request();
    let mut told = Vec::new();
    // Two calls at the same time, which nothing tells apart but their numbers.
    for number in ["", "1", "2"] {
        let carries = [("grpc-previous-rpc-attempts", number)];
        let carries = if number.is_empty() { &[][..] } else { &carries };
        let method = MethodKind::Grpc;
        let target = Target { method, body: None, carries, ..Target::GET };
        let mut both = [request.call_to("b", &target), request.call_to("b", &target)];
        for call in &mut both {
            let mut again = true;
            while again {
                let sent = call.send();
                told.push(line(&sent, "grpc-previous-rpc-attempts"));
                let verdict = call.reply(CLAIMED);
                again = matches!(verdict, Some(Verdict::Retry(_)));
                assert!(again || verdict == stopped(Stop::Exhausted), "{verdict:?}");
            }
        }
    }
    // Four of each call: the policy's two, and one for each retry of the library.
    assert_eq!(told, ["", "1", "", "1", "2", "2", "3", "3"]);
    assert_eq!(repeats(&service), 4.0);
    let claim = request.claim();
    assert_eq!(claim, "unclaimed;reason=exhausted;attempt=1;origin=\"b\";hops=1");
}

#[test]
fn a_hedged_call_repeats_none_that_is_under_way() {
    // [attempt-13]
    let service = Service::enforcing(|_| {});
    let request = service.request();
    let made = |carries| {
        let method = MethodKind::Grpc;
        request.call_to("b", &Target { method, body: None, carries, ..Target::GET })
    };
    let mut first = made(&[]);
    first.send();
    let mut hedged = made(&[("grpc-previous-rpc-attempts", "1")]);
    hedged.send();
    assert_eq!(repeats(&service), 0.0);
    // Once one has failed, the next is a further attempt after it.
    first.reply(Reply::Error("claimed"));
    let _third = made(&[("grpc-previous-rpc-attempts", "2")]);
    assert_eq!(repeats(&service), 1.0);
}

#[test]
fn a_call_under_way_is_not_repeated() {
    // [attempt-5]
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    let request = service.request();
    let mut first = request.call_to("b", &BODY);
    first.send();
    let _second = request.call_to("b", &BODY);
    first.reply(Reply::Error("claimed"));
    // Waits for its retry.
    let _third = request.call_to("b", &BODY);
    assert_eq!(repeats(&service), 0.0);
    // A repeat under way is no more to be repeated than any other call.
    let request = service.request();
    fails(request.call_to("c", &BODY));
    let mut repeat = request.call_to("c", &BODY);
    repeat.send();
    assert_eq!(repeats(&service), 1.0);
    let _fourth = request.call_to("c", &BODY);
    assert_eq!(repeats(&service), 1.0);
}

#[test]
fn another_request_repeats_nothing() {
    // [attempt-5]
    let service = Service::enforcing(|_| {});
    let request = service.request();
    fails(request.call_to("b", &BODY));
    fails(service.request().call_to("b", &BODY));
    fails(service.untied_call_to("b", &BODY));
    fails(service.untied_call_to("b", &BODY));
    assert_eq!(repeats(&service), 0.0);
}

#[test]
fn a_body_seen_later_is_known() {
    // [attempt-5]
    let service = Service::enforcing(|_| {});
    let request = service.request();
    let unknown = Target { body: None, ..Target::GET };
    for fails in [true, false] {
        let mut call = request.call_to("b", &unknown);
        call.send();
        call.outbound.set_body_digest(7);
        if fails {
            call.reply(Reply::Error("claimed"));
        }
    }
    let edge = service.edge(Some(&request.inbound), "b", "/out");
    assert!(request.inbound.may_be_repeat(&edge, crate::host::head("/out")));
    assert!(!request.inbound.may_be_repeat(&edge, crate::host::head("/other")));
    let other = service.edge(Some(&request.inbound), "c", "/out");
    assert!(!request.inbound.may_be_repeat(&other, crate::host::head("/out")));
}

#[test]
fn attempts_add_up_over_repeats() {
    // [attempt-5] [attempt-7] [criteria-1] [decide-8] [claim-5] [claim-8]
    let service = Service::enforcing(|config| config.retry("b", retries(3)));
    const CLAIMED: Reply = Reply::Error("claimed");
    // The policy's attempts are those of the logical call.
    let request = service.request();
    let replies = [CLAIMED, CLAIMED, CLAIMED];
    assert_eq!(request.call("b").play(&replies), stopped(Stop::Exhausted));
    assert_eq!(request.call("b").play(&[CLAIMED]), stopped(Stop::Exhausted));
    let claim = request.claim();
    assert_eq!(claim, "unclaimed;reason=exhausted;attempt=1;origin=\"b\";hops=1");
    // A loop that goes on in the middle of one leaves what is left.
    let request = service.request();
    let verdict = request.call("b").play(&[CLAIMED]);
    assert!(matches!(verdict, Some(Verdict::Retry(_))), "{verdict:?}");
    assert_eq!(request.call("b").play(&[CLAIMED, CLAIMED]), stopped(Stop::Exhausted));
    // Without a policy one attempt leaves the retry to the caller, two do not.
    for (tries, claim) in [
        (1, "claimed;reason=handoff;attempt=1;origin=\"c\";hops=1"),
        (2, "unclaimed;reason=not-configured;attempt=1;origin=\"c\";hops=1"),
    ] {
        let request = service.request();
        for _ in 0..tries {
            request.call("c").play(&[CLAIMED]);
        }
        assert_eq!(request.claim(), claim, "{tries} tries");
    }
}

#[test]
fn a_repeat_that_succeeds_heals_its_call() {
    // [term-2] [class-1]
    let service = Service::enforcing(|_| {});
    let request = service.request();
    request.call("b").play(&[Reply::Error("unclaimed")]);
    request.call("b").play(&[Reply::Ok]);
    assert_eq!(request.claim(), "claimed;reason=own;attempt=1;origin=\"a\";hops=0");
    let page = service.metrics();
    assert_eq!(page.sum("onus_clean_requests_total", &[("outcome", "error")]), 1.0);
    let ok = [("callee_outcome", "ok"), ("caller_outcome", "error")];
    assert_eq!(page.sum("onus_edge_requests_total", &ok), 1.0);
    assert_eq!(page.sum("onus_edge_requests_total", &[]), 1.0);
    // What was counted of each run stays.
    assert_eq!(page.sum("onus_calls_total", &[("outcome", "error")]), 1.0);
    assert_eq!(page.sum("onus_calls_total", &[("outcome", "ok")]), 1.0);
}

#[test]
fn a_repeat_is_marked_as_the_retry_it_is() {
    // [mark-5] [attempt-1] [drop-5]
    for (first, mark) in [
        (Reply::Error("claimed"), ""),
        (Reply::Error("unclaimed"), ""),
        (Reply::Error("claimed;kind=silent"), "1"),
        (Reply::Error(""), "1"),
        (Reply::Silence, "1"),
        (Reply::Hang, "1"),
    ] {
        let service = Service::enforcing(|_| {});
        let request = service.request();
        request.call("b").play(&[first]);
        let mut again = request.call("b");
        let sent = again.send();
        let seen = (line(&sent, "onus-mark"), line(&sent, "onus-attempt"));
        assert_eq!(seen, (mark.to_owned(), "2".to_owned()), "after {first:?}");
    }
    // Given up in backoff, what was read counts.
    let service = Service::enforcing(|config| config.retry("b", retries(3)));
    let request = service.request();
    request.call("b").play(&[Reply::Silence, Reply::Error("claimed")]);
    let mut again = request.call("b");
    let sent = again.send();
    assert_eq!(
        (line(&sent, "onus-mark"), line(&sent, "onus-attempt")),
        (String::new(), "3".into())
    );
}

#[test]
fn mode_off_counts_repeats_and_sends_no_number() {
    // [mode-2] [mode-3]
    let service = Service::new(onus_agent::Mode::Off, |config| config.retry("b", retries(2)));
    let request = service.request();
    request.call("b").play(&[Reply::Silence, Reply::Silence]);
    let mut again = request.call("b");
    assert_eq!(line(&again.send(), "onus-attempt"), "");
    assert_eq!(again.reply(Reply::Silence), stopped(Stop::Exhausted));
}
