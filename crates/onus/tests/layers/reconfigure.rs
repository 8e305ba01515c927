//! Another configuration while the service runs.

use onus::{EdgeClass, Mode, Onus, OnusBuilder, RetryPolicy, Source, Switches};
use tower::{Layer, ServiceExt};

use crate::cast::{Callee, Client, Reply, counted, get, paused};

/// Two attempts out of a budget of what is saved for them: one retry a second.
fn policy() -> RetryPolicy {
    RetryPolicy::attempts(2).budget_percent(0).no_probes()
}

fn service(policy: RetryPolicy) -> OnusBuilder {
    Onus::builder("a").retry("b", policy)
}

/// Makes a call that fails; how many attempts it had.
async fn attempts(onus: &Onus, callee: &Callee) -> usize {
    let before = callee.seen().len();
    let client: Client = onus.outbound("b").layer(callee.clone());
    client.oneshot(get("/")).await.unwrap();
    callee.seen().len() - before
}

#[test]
fn edges_follow_and_keep_their_budgets_and_counters() {
    // S92
    paused(async {
        let onus = service(policy()).build().unwrap();
        let callee = Callee::new([Reply::says("claimed")]);
        // The bucket has a token of the floor, and then none.
        assert_eq!([attempts(&onus, &callee).await, attempts(&onus, &callee).await], [2, 1]);
        onus.reconfigure(service(policy().no_probes())).unwrap();
        assert_eq!(attempts(&onus, &callee).await, 1, "the same again is no new budget");
        onus.reconfigure(service(policy()).required("b")).unwrap();
        assert_eq!(attempts(&onus, &callee).await, 1, "nor is something else");
        onus.reconfigure(service(policy().no_budget())).unwrap();
        assert_eq!(attempts(&onus, &callee).await, 2);
        onus.reconfigure(service(RetryPolicy::attempts(3).no_budget())).unwrap();
        assert_eq!(attempts(&onus, &callee).await, 3);
        onus.reconfigure(service(policy())).unwrap();
        assert_eq!(attempts(&onus, &callee).await, 2, "a budget that is new has its first token");
        onus.reconfigure(Onus::builder("a")).unwrap();
        assert_eq!(attempts(&onus, &callee).await, 1, "the policy is gone");
        assert_eq!(counted(&onus, "onus_calls_total", &[("outcome", "error")]), 8);
        let edges = onus.edges();
        assert_eq!(edges.len(), 1);
        let edge = &edges[0];
        assert_eq!((&*edge.callee, &*edge.callee_method, edge.attempts), ("b", "GET", 1));
        assert_eq!((edge.failed, edge.retries, edge.budget_tokens), (8, 5, None));
    });
}

#[test]
fn what_people_say_of_a_class_follows_and_what_needs_a_restart_is_refused() {
    paused(async {
        let onus = service(policy()).build().unwrap();
        attempts(&onus, &Callee::new([Reply::ok()])).await;
        let class = || onus.edges()[0].class;
        assert_eq!(class(), "unknown");
        onus.reconfigure(service(policy()).override_class("b", EdgeClass::FailOpen)).unwrap();
        assert_eq!(class(), "fail-open");
        for (builder, what) in [
            (Onus::builder("other"), "service name"),
            (Onus::builder("a").silent_claims(), "setting silent claims"),
            (Onus::builder("a").untrusted_callers(), "trust in callers"),
            (Onus::builder("a").replay_limits(1, 2), "bound of replay memory"),
        ] {
            let refused = onus.reconfigure(builder.enforce()).unwrap_err();
            assert_eq!(refused.to_string(), format!("another {what} needs a restart"));
        }
        let mistaken = onus.reconfigure(Onus::builder("a").retry("b", RetryPolicy::attempts(0)));
        assert!(mistaken.is_err());
        assert_eq!((class(), onus.mode()), ("fail-open", Mode::Observe), "nothing was changed");
    });
}

#[test]
fn the_mode_follows_where_nobody_switched_it() {
    let onus = Onus::builder("a").build().unwrap();
    onus.reconfigure(Onus::builder("a").enforce()).unwrap();
    assert_eq!(onus.mode(), Mode::ENFORCE);
    let off = Switches { mode: Some(Mode::Off), ..Switches::default() };
    onus.switch(Source::File, &off);
    onus.reconfigure(Onus::builder("a").mode(Mode::Observe)).unwrap();
    assert_eq!(onus.mode(), Mode::Off);
    onus.switch(Source::File, &Switches::default());
    assert_eq!(onus.mode(), Mode::Observe);
}
