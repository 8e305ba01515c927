//! Which request a call belongs to, and what becomes of calls that belong to none.

use std::time::Duration;

use onus_agent::correlator::Found;
use onus_agent::{Agent, AgentConfig, Timestamp};

use crate::host::{Reply, Service, line, retries};

#[test]
fn a_request_of_another_agent_is_none() {
    // [correlate-5] [mark-2]
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    let other = Agent::new(&AgentConfig::new("z"), 1, Timestamp::ZERO).unwrap();
    // Other names, under the numbers that this service's names have.
    let names = ["/z1", "/z2", "/z3"].map(|name| other.symbols().intern(name));
    let procedure = onus_agent::Procedure { method: names[0], route: names[1] };
    let mut headers = crate::host::headers(&[("onus-mark", "1")]);
    let foreign = other.request_arrived(&mut headers, procedure, 0, || Timestamp::ZERO);
    let mut call = service.call_for(Some(&foreign), "b");
    assert_eq!(line(&call.send(), "onus-mark"), "");
    call.reply(Reply::Error("unclaimed"));
    drop(call);
    let page = service.metrics();
    let untied = page.series("onus_untied_calls_total", &[("callee", "b")]);
    let caller = "{caller=\"a\",caller_method=\"\",callee=\"b\",callee_method=\"GET /out\"}";
    assert_eq!(untied, [(caller, 1.0)]);
    let mut answer = crate::host::headers(&[]);
    foreign.answer(true, false, &mut answer, Timestamp::ZERO);
    let own = "claimed;reason=own;attempt=1;origin=\"z\";hops=0";
    assert_eq!(line(&answer, "onus-claim"), own);
}

#[test]
fn a_call_after_the_answer_belongs_to_no_request() {
    // [correlate-5] [mark-2]
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    for cancelled in [false, true] {
        let request = service.request_with(&[("onus-mark", "1")]);
        let scope = request.inbound.clone();
        let untied = || service.metrics().sum("onus_untied_calls_total", &[("callee", "b")]);
        let before = untied();
        // While the answer is made its calls are the request's own, its body's too.
        let mut headers = crate::host::headers(&[]);
        scope.answer(false, false, &mut headers, service.now());
        let mut call = service.call_for(Some(&scope), "b");
        assert_eq!(line(&call.send(), "onus-mark"), "1");
        drop(call);
        assert_eq!(untied(), before);
        if cancelled {
            scope.cancelled(service.now());
        } else {
            scope.finished(false, service.now());
        }
        // A handler that goes on after its caller has gone still serves the request.
        let mut call = service.call_for(Some(&scope), "b");
        let (mark, more) = if cancelled { ("1", 0.0) } else { ("", 1.0) };
        assert_eq!(line(&call.send(), "onus-mark"), mark, "cancelled: {cancelled}");
        assert_eq!(untied(), before + more, "cancelled: {cancelled}");
        // And a late outcome of an earlier call changes nothing.
        assert_eq!(line(&request.error(), "onus-claim"), "");
    }
}

#[test]
fn an_id_leads_to_its_request_while_that_is_certain() {
    // [correlate-4]
    let service = Service::enforcing(|config| config.limits.linger = Duration::from_secs(10));
    let file = || {
        let request = service.request();
        let ids = [&b"trace"[..]].into_iter();
        service.agent.file(&request.inbound, ids, service.now()).unwrap();
        request
    };
    let found = || match service.agent.inbound_by_id(b"trace") {
        Found::One(_) => "one",
        Found::Ambiguous => "ambiguous",
        Found::Unknown => "unknown",
    };
    let first = file();
    assert_eq!(found(), "one");
    let second = file();
    assert_eq!(found(), "ambiguous");
    second.ok();
    assert_eq!(found(), "one", "one that is over leaves nothing");
    first.inbound.cancelled(service.now());
    service.pass(Duration::from_secs(9));
    let retry = file();
    assert_eq!(found(), "ambiguous", "a late call of the cancelled attempt");
    service.pass(Duration::from_secs(1));
    file().ok();
    assert_eq!(found(), "one");
    retry.ok();
}
