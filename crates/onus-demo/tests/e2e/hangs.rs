//! Services that never answer, and callers that give up waiting: the mark from end to end, with
//! timers where the vectors of the protocol close connections.

use std::time::Duration;

use onus_demo::{Cluster, Fault, Load, Protocol, What};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::http;
use super::vectors::{Case, chain};

/// How a caller gives up.
#[derive(Clone, Copy)]
enum GivesUp {
    /// Its client has a timeout, and says so.
    Client,
    /// Its handler waits only so long, and drops the call.
    Handler,
}

impl Case {
    /// These do their work, however late it is, and never answer; their callers give up.
    fn hanging(self, names: &str) -> Self {
        names.split("").filter(|name| !name.is_empty()).fold(self, |case, name| {
            let case = case.each(name, |service| {
                service.faults = vec![Fault::always(What::Stalls)];
                service.detached = true;
            });
            case.waited_for(name, GivesUp::Client)
        })
    }

    /// How the callers of this service give up.
    fn waited_for(mut self, name: &str, how: GivesUp) -> Self {
        let callees = self.0.services.iter_mut().flat_map(|service| &mut service.callees);
        for callee in callees.filter(|callee| callee.name == name) {
            (callee.client_timeout, callee.patience) = match how {
                GivesUp::Client => (Some(PATIENCE), None),
                GivesUp::Handler => (None, Some(PATIENCE)),
            };
        }
        self
    }
}

/// Runs a case over each protocol, all at the same time, and compares the requests at each service
/// for one at the first.
async fn check(what: &'static str, case: impl Fn() -> Case, expected: &'static [u64]) {
    let mut runs = JoinSet::new();
    for protocol in Protocol::ALL {
        let mut topology = case().0;
        topology.protocol = protocol;
        runs.spawn(async move {
            let cluster = Cluster::start(&topology).await.unwrap();
            let report = cluster.send(Load::new(2, 2)).await.unwrap();
            assert_eq!(report.client_errors, 2, "{what} over {protocol:?}");
            let expected: Vec<_> = expected.iter().map(|each| each * 2).collect();
            assert_eq!(http::counts(&cluster).await, expected, "{what} over {protocol:?}");
        });
    }
    timeout(TOO_LONG, runs.join_all()).await.expect(what);
}

#[tokio::test]
async fn every_level_hangs() {
    let hang = || chain("ABCDEF").hanging("BCDEF");
    check("off", || hang().off(), &[1, 2, 4, 8, 16, 32]).await;
    check("on", hang, &[1, 2, 3, 4, 5, 6]).await;
}

/// A, C and E try twice, B and D once; C, E and F hang.
fn gaps() -> Case {
    chain("ABCDEF").attempts("BD", 1).hanging("CEF")
}

#[tokio::test]
async fn services_without_retries_do_not_wash_the_mark_off() {
    check("off", || gaps().off(), &[1, 2, 2, 4, 4, 8]).await;
    check("on", gaps, &[1, 2, 2, 3, 3, 4]).await;
    let drops = || gaps().waited_for("C", GivesUp::Handler).waited_for("E", GivesUp::Handler);
    check("B and D drop their calls", drops, &[1, 2, 2, 3, 3, 4]).await;
}

#[tokio::test]
async fn the_mark_is_washed_off_where_it_is_not_carried() {
    const WASHED_OFF: &[u64] = &[1, 2, 2, 4, 4, 8];
    check("B and D lose the context", || gaps().context_lost("BD"), WASHED_OFF).await;
    check("B and D have no Onus", || gaps().without_onus("BD"), WASHED_OFF).await;
}

#[tokio::test]
async fn a_context_loss_between_hangs_starts_the_mark_anew() {
    let lost = || chain("ABCDE").context_lost("C").hanging("BDE");
    check("C loses the context", lost, &[1, 2, 4, 8, 12]).await;
}

/// Everybody gives up within a few waits.
const TOO_LONG: Duration = Duration::from_secs(30);

/// Long enough that a request always reaches its callee, on a busy machine too.
const PATIENCE: Duration = Duration::from_millis(250);
