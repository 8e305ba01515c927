//! Whatever breaks inside Onus, the request passes, and no claim is sent.

use std::time::Duration;

use onus_agent::fault_injection::with_broken_decisions;
use onus_agent::{CallError, Stop, Verdict};

use crate::host::{Reply, Service, headers, line, retries, stopped};

/// The moments of one request that the tests break, one after the other.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    Starts,
    Fails,
    IsAnswered,
    Succeeds,
    Answers,
    Finishes,
}

/// Serves a request that calls `b`, once in vain and then with success, and answers with an error
/// all the same; what happens at `broken` happens with a fault.
fn serve(service: &Service, broken: Option<Moment>) -> (Option<Verdict>, String) {
    let at = |moment: Moment, act: &mut dyn FnMut()| {
        if broken == Some(moment) { with_broken_decisions(act) } else { act() }
    };
    let request = service.request();
    let mut call = None;
    at(Moment::Starts, &mut || call = Some(request.call("b")));
    let mut call = call.unwrap();
    call.send();
    let mut verdict = None;
    at(Moment::Fails, &mut || {
        verdict = Some(call.fail(CallError::Http(503), Some(&[("onus-claim", "claimed")])));
    });
    if matches!(verdict, Some(Verdict::Retry(_))) {
        at(Moment::IsAnswered, &mut || drop(call.send()));
        at(Moment::Succeeds, &mut || {
            call.reply(Reply::Ok);
        });
    }
    drop(call);
    let mut headers = headers(&[("onus-claim", "unclaimed"), ("x-own", "kept")]);
    at(Moment::Answers, &mut || {
        request.inbound.answer(true, false, &mut headers, service.now());
    });
    at(Moment::Finishes, &mut || request.inbound.finished(true, service.now()));
    assert_eq!(line(&headers, "x-own"), "kept");
    (verdict, line(&headers, "onus-claim"))
}

#[test]
fn a_fault_costs_its_request_the_claim_and_nothing_else() {
    // [fault-1]
    let own = "claimed;reason=own;attempt=1;origin=\"a\";hops=0";
    for (moment, claim, faults, clean) in [
        (None, own, 0.0, 1.0),
        (Some(Moment::Starts), "", 1.0, 0.0),
        (Some(Moment::Fails), "", 2.0, 0.0),
        (Some(Moment::IsAnswered), "", 1.0, 0.0),
        (Some(Moment::Succeeds), "", 2.0, 0.0),
        (Some(Moment::Answers), "", 1.0, 0.0),
        (Some(Moment::Finishes), own, 1.0, 0.0),
    ] {
        let service = Service::enforcing(|config| config.retry("b", retries(2)));
        let (verdict, sent) = serve(&service, moment);
        assert_eq!(sent, claim, "{moment:?}");
        let stops = moment == Some(Moment::Fails);
        assert_eq!(verdict == stopped(Stop::NotConfigured), stops, "{moment:?}: {verdict:?}");
        let page = service.metrics();
        assert_eq!(page.sum("onus_faults_total", &[]), faults, "{moment:?}");
        assert_eq!(page.sum("onus_requests_total", &[("outcome", "error")]), 1.0, "{moment:?}");
        // What a fault has touched teaches nothing.
        assert_eq!(page.sum("onus_clean_requests_total", &[]), clean, "{moment:?}");
        assert_eq!(page.sum("onus_edge_requests_total", &[]), clean, "{moment:?}");
        // The next request is served as if nothing had been.
        assert_eq!(serve(&service, None).1, own, "after {moment:?}");
    }
}

#[test]
fn a_fault_in_learning_costs_nothing() {
    // [fault-1]
    let service = Service::enforcing(|_| {});
    service.request().call("b").play(&[Reply::Ok]);
    service.pass(Duration::from_secs(61));
    with_broken_decisions(|| service.agent.tick(service.now()));
    assert_eq!(service.metrics().sum("onus_faults_total", &[]), 1.0);
    service.pass(Duration::from_secs(61));
    service.agent.tick(service.now());
    assert_eq!(service.metrics().sum("onus_faults_total", &[]), 1.0);
}

#[test]
fn a_service_whose_every_decision_breaks_still_serves() {
    // [fault-1]
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    with_broken_decisions(|| {
        let request = service.request();
        let verdict = request.call("b").play(&[Reply::Silence]);
        assert_eq!(verdict, stopped(Stop::NotConfigured));
        assert_eq!(request.error(), headers(&[]));
        assert_eq!(service.request().ok(), headers(&[]));
    });
    let page = service.metrics();
    assert_eq!(page.sum("onus_requests_total", &[]), 2.0);
    assert_eq!(page.sum("onus_calls_total", &[("outcome", "error")]), 1.0);
}
