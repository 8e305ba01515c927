//! Which request a call belongs to, and what becomes of calls that belong to none.

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
    let foreign = other.request_arrived(&mut headers, procedure, 0);
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
