//! From the calls of a request to the claim on its error.

use onus_agent::Mode;

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
