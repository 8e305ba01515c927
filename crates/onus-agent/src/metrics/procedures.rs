//! The families of what this service serves, by procedure.

use std::fmt;

use onus_core::{Arm, Claim, ClaimReason};

use super::family::{Labels, Page};
use crate::agent::Agent;
use crate::counters::Place;
use crate::procedures::ServedProcedure;

pub(super) fn encode(agent: &Agent, page: &mut Page<'_>) -> fmt::Result {
    let rows: Vec<Row> =
        agent.procedures().sorted().into_iter().map(|p| Row::new(agent, p)).collect();
    requests(&rows, page)?;
    claims(agent, &rows, page)?;
    clean_requests(&rows, page)
}

struct Row<'a> {
    service: &'a str,
    method: String,
    served: &'a ServedProcedure,
}

impl<'a> Row<'a> {
    fn new(agent: &'a Agent, served: &'a ServedProcedure) -> Self {
        let method = served.procedure.display(agent.symbols()).to_string();
        Self { service: agent.service(), method, served }
    }

    fn labels(&self) -> Labels<'_, 2> {
        [("service", self.service), ("method", &self.method)]
    }
}

fn requests(rows: &[Row<'_>], page: &mut Page<'_>) -> fmt::Result {
    let help = "Requests served to their end or cancelled by their caller.";
    let mut family = page.counters("onus_requests", help)?;
    for row in rows {
        for &arm in Arm::ALL {
            let counters = row.served.counters.arm(arm);
            for (outcome, counter) in [
                ("ok", &counters.ok),
                ("error", &counters.failed),
                ("cancelled", &counters.cancelled),
            ] {
                let own = [("outcome", outcome), ("arm", arm.as_str())];
                family.add(&(row.labels(), own), counter.get())?;
            }
        }
    }
    Ok(())
}

fn claims(agent: &Agent, rows: &[Row<'_>], page: &mut Page<'_>) -> fmt::Result {
    let help = "Claims sent with errors: whose error it is said to be, and why.";
    let mut family = page.counters("onus_claims", help)?;
    for row in rows {
        for &arm in Arm::ALL {
            for &claim in Claim::ALL {
                for reason in ClaimReason::ALL {
                    let own = [
                        ("claim", claim_str(claim)),
                        ("reason", reason.as_str()),
                        ("arm", arm.as_str()),
                    ];
                    let count = row.served.counters.arm(arm).claims(claim, reason).get();
                    let expected = claim_occurs(arm, claim, reason, agent.silent_claims());
                    family.add_if(expected, &(row.labels(), own), count)?;
                }
            }
        }
    }
    Ok(())
}

fn clean_requests(rows: &[Row<'_>], page: &mut Page<'_>) -> fmt::Result {
    let help = "Finished requests that blame no outbound call.";
    let mut family = page.counters("onus_clean_requests", help)?;
    for row in rows {
        for (outcome, counter) in ["ok", "error"].into_iter().zip(&row.served.counters.clean) {
            let labels =
                [("caller", row.service), ("caller_method", &row.method), ("outcome", outcome)];
            family.add(&labels, counter.get())?;
        }
    }
    Ok(())
}

/// The spelling of a claim, that of what its caller reads.
fn claim_str(claim: Claim) -> &'static str {
    onus_core::CalleeClaim::Reply(claim).as_str()
}

/// Whether the claim table can come to this claim for this reason.
fn claim_occurs(arm: Arm, claim: Claim, reason: ClaimReason, silent_claims: bool) -> bool {
    match (claim, reason) {
        (Claim::UnclaimedShield, ClaimReason::Operator) => true,
        _ if arm.is_off() => false,
        (Claim::Claimed, ClaimReason::Own | ClaimReason::ContextLost | ClaimReason::Handoff)
        | (Claim::ClaimedSilent, ClaimReason::Handoff)
        | (Claim::Unclaimed, ClaimReason::Stopped(_) | ClaimReason::InFlight) => true,
        (Claim::ClaimedSilent, ClaimReason::Silent) => silent_claims,
        (
            Claim::Claimed | Claim::ClaimedSilent | Claim::Unclaimed | Claim::UnclaimedShield,
            ClaimReason::Own
            | ClaimReason::Handoff
            | ClaimReason::Silent
            | ClaimReason::ContextLost
            | ClaimReason::Operator
            | ClaimReason::Stopped(_)
            | ClaimReason::InFlight,
        ) => false,
    }
}
