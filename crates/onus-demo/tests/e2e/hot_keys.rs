//! A budget sees the average: the requests of a few bad keys are retried as if there were no
//! budget, because those of the good keys pay for them. Ownership sees each request.
//!
//! The last service of a chain of d hops fails every request of so many of a hundred keys, which
//! are sent equally often and evenly mixed; every hop tries twice, and budgets are 10 % of calls,
//! with no floor and from an empty bucket. Counted are the requests with a bad key at the last
//! service, by the services themselves, for each request with a bad key of the client.

use onus_demo::{BadKeys, Demo, Node, PerNode, Policy};

const EXACT: f64 = 0.0;

/// A budget has spent all that was deposited but for a fraction of a token at each hop.
const BUDGET: f64 = 0.01;

/// Sends requests through a chain that ends at `last`, and compares the growth for bad keys with
/// `growth`. Good keys are not retried.
async fn check(last: Node, bad_keys: u32, requests: u64, rows: &[(Policy, f64, f64)]) {
    for &(policy, growth, tolerance) in rows {
        let demo = Demo { fail: last, bad_keys: Some(bad_keys), requests, ..Demo::default() };
        let run = demo.run(policy).await.unwrap();
        let what = format!("{bad_keys} % at {last}, {policy:?}");
        let bad_requests = requests * u64::from(bad_keys) / 100;
        assert_eq!(run.report.client_errors, bad_requests, "{what}");
        let BadKeys { handled: bad, expected } = run.bad_keys.unwrap();
        let good = Node::ALL.map(|node| run.handled[node] - bad[node]);
        assert_eq!(good, [requests - bad_requests; 7], "{what}");
        assert_eq!(bad[Node::A], bad_requests, "{what}");
        let measured = bad[last] as f64 / bad_requests as f64;
        assert!(
            (measured - growth).abs() <= growth * tolerance,
            "{what}: {measured}, not {growth}"
        );
        for (node, expected) in expected.unwrap().iter() {
            let off = bad[node].abs_diff(*expected) as f64;
            assert!(
                off <= *expected as f64 * tolerance,
                "{what}: {bad:?}, not {expected} at {node}"
            );
        }
    }
}

#[tokio::test]
async fn hot_keys() {
    let one_hop = [(Policy::Ownership, 2.0, EXACT), (Policy::OwnershipBudget, 2.0, EXACT)];
    check(Node::G, 5, 200, &[(Policy::Everywhere, 64.0, EXACT)]).await;
    check(Node::G, 5, 200, &one_hop).await;
    check(Node::G, 5, 5000, &[(Policy::Budget, 14.68, BUDGET)]).await;
    check(Node::F, 5, 200, &[(Policy::Everywhere, 32.0, EXACT)]).await;
    check(Node::F, 5, 200, &one_hop).await;
    check(Node::F, 5, 1000, &[(Policy::Budget, 11.61, BUDGET)]).await;
}

#[tokio::test]
async fn hot_keys_that_are_many() {
    let own = (Policy::Ownership, 2.0, EXACT);
    let both = (Policy::OwnershipBudget, 4.0 / 3.0, BUDGET);
    check(Node::G, 30, 100, &[own]).await;
    check(Node::G, 30, 1000, &[(Policy::Budget, 3.57, BUDGET), both]).await;
    check(Node::F, 30, 1000, &[(Policy::Budget, 3.04, BUDGET)]).await;
}

#[test]
fn what_is_expected_of_bad_keys() {
    let demo = Demo { fail: Node::B, bad_keys: Some(5), ..Demo::default() };
    // The first requests have the keys 0, 37, 74, 11, 48, …; the twentieth has the key 3.
    for (requests, bad) in [(1, 1), (19, 1), (20, 2), (100, 5), (219, 11)] {
        let expected = Demo { requests, ..demo }.expected_with_bad_keys(Policy::None);
        assert_eq!(expected, Some(PerNode([bad; 7])), "{requests}");
    }
    assert_eq!(Demo { bad_keys: None, ..demo }.expected_with_bad_keys(Policy::None), None);
    // Retries of the bad ones come to the others on top.
    let all = demo.expected(Policy::Everywhere);
    assert_eq!(all, Some(PerNode([1000, 1050, 1050, 1050, 1050, 1050, 1050])));
}
