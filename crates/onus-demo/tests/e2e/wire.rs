//! What a client without Onus reads on the answer of the first service.

use onus_demo::{Cluster, Demo, Node, Policy};

use super::http;

/// Asks `node`, and compares the claim and the veto on its answer.
async fn check_at(node: Node, demo: Demo, policy: Policy, claim: Option<&str>, vetoed: bool) {
    let cluster = Cluster::start(&demo.topology(policy)).await.unwrap();
    let answer = http::get(cluster.addresses()[node.depth()].1, "/").await;
    let what = format!("{policy:?} of {demo:?}, asked at {node}");
    assert!((500..=599).contains(&answer.status), "{what}: {answer:?}");
    assert_eq!(answer.header("onus-claim"), claim, "{what}");
    let veto = answer.header("x-envoy-ratelimited");
    assert_eq!(veto, vetoed.then_some("true"), "{what}");
}

async fn check(demo: Demo, policy: Policy, claim: Option<&str>, vetoed: bool) {
    check_at(Node::A, demo, policy, claim, vetoed).await;
}

#[tokio::test]
async fn the_answer_names_origin_and_hops() {
    const SUPPRESSED: &str = r#"unclaimed;reason=suppressed;attempt=1;origin="D";hops=3"#;
    let demo = Demo::default();
    for policy in [Policy::None, Policy::Everywhere, Policy::Budget] {
        check(demo, policy, None, false).await;
    }
    check(demo, Policy::Ownership, Some(SUPPRESSED), true).await;
    check(demo, Policy::OwnershipBudget, Some(SUPPRESSED), true).await;
    let observing = Demo { observe: true, ..demo };
    check(observing, Policy::Ownership, Some(SUPPRESSED), false).await;
    let own = r#"claimed;reason=own;attempt=1;origin="A";hops=0"#;
    check(Demo { fail: Node::A, ..demo }, Policy::Ownership, Some(own), false).await;
    let exhausted = r#"unclaimed;reason=exhausted;attempt=1;origin="B";hops=1"#;
    check(Demo { fail: Node::B, ..demo }, Policy::Ownership, Some(exhausted), true).await;
    let lost = r#"unclaimed;reason=suppressed;attempt=1;origin="C";hops=2"#;
    let context_loss = Some(Node::C);
    check(Demo { context_loss, ..demo }, Policy::Ownership, Some(lost), true).await;
}

#[tokio::test]
async fn each_service_says_why() {
    async fn check(node: Node, demo: Demo, claim: &str, vetoed: bool) {
        check_at(node, demo, Policy::Ownership, Some(claim), vetoed).await;
    }
    let demo = Demo::default();
    let own = r#"claimed;reason=own;attempt=1;origin="D";hops=0"#;
    check(Node::D, demo, own, false).await;
    let exhausted = r#"unclaimed;reason=exhausted;attempt=1;origin="D";hops=1"#;
    check(Node::C, demo, exhausted, true).await;
    check(Node::C, Demo { no_claims: Some(Node::D), ..demo }, exhausted, true).await;
    let lost = r#"claimed;reason=context-lost;attempt=1;origin="C";hops=0"#;
    check(Node::C, Demo { context_loss: Some(Node::C), ..demo }, lost, false).await;
    let handoff = r#"claimed;reason=handoff;attempt=1;origin="D";hops=1"#;
    check(Node::C, Demo { no_retries: Some(Node::C), ..demo }, handoff, false).await;
    let shield = r#"unclaimed;kind=shield;reason=operator;attempt=1;origin="D";hops=0"#;
    check(Node::D, Demo { shield: Some(Node::D), ..demo }, shield, true).await;
}

#[tokio::test]
async fn asking_for_the_count_is_not_counted_and_claims_nothing() {
    let demo = Demo { fail: Node::A, ..Demo::default() };
    let cluster = Cluster::start(&demo.topology(Policy::Ownership)).await.unwrap();
    for _ in 0..2 {
        let answer = http::get(cluster.addresses()[0].1, "/count").await;
        assert_eq!((answer.status, &*answer.body), (200, "0"));
        assert_eq!(answer.header("onus-claim"), None);
    }
}
