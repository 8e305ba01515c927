//! Overrides: the classes of edges that operators say.

use std::collections::HashSet;

use axum::extract::State;
use axum::response::{Json, Response};
use onus_api::{
    OverrideChange, OverrideDrop, OverrideRequest, OverrideSource, OverridesPlan, OverridesRequest,
    Range, ReplayedEdge, SCHEMA_VERSION,
};

use super::body::Body;
use super::orders::all_of;
use super::problem::Refusal;
use crate::access::{Role, Who};
use crate::clock::Millis;
use crate::engine::Analysis;
use crate::orders::{Change, ORDERS_MAX};
use crate::overrides::Overrides;
use crate::replay::{self, replay};

/// The most edges that a plan lists; its sums are over all.
const EDGES_MAX: usize = 1_000;

/// `POST /api/v1/overrides`: the class of edges.
pub(crate) async fn set(
    State(analysis): State<Analysis>,
    who: Who,
    body: Body,
) -> Result<Response, Refusal> {
    who.must_be(Role::Operator)?;
    let asked: OverrideRequest = body.parse()?;
    analysis.must_own(&asked.caller, "/api/v1/overrides")?;
    let now = Millis::now();
    let it = Overrides::checked(asked, OverrideSource::Api, now)
        .map_err(|wrong| Refusal::order(wrong.message))?;
    analysis.book().said.overrides.has_place_for(&it).map_err(Refusal::order)?;
    analysis.change(vec![Change::SetOverride(it)], who.name).await?;
    Ok(all_of(&analysis))
}

/// `POST /api/v1/overrides/drop`: takes one back.
pub(crate) async fn drop_one(
    State(analysis): State<Analysis>,
    who: Who,
    body: Body,
) -> Result<Response, Refusal> {
    who.must_be(Role::Operator)?;
    let OverrideDrop { id } = body.parse()?;
    let known = analysis.book().said.overrides.get(&id).cloned();
    let it = known.ok_or_else(|| {
        Refusal::order(format!("there is no override {id:?}; `onus overrides list` has them"))
    })?;
    if it.source == OverrideSource::File {
        let says = format!("{id:?} is in the overrides file; take it out there");
        return Err(Refusal::order(says));
    }
    analysis.change(vec![Change::DropOverride(it)], who.name).await?;
    Ok(all_of(&analysis))
}

/// `POST /api/v1/overrides/apply`: several at once, and what that changes; nothing is set by a dry
/// run.
pub(crate) async fn apply(
    State(analysis): State<Analysis>,
    who: Who,
    body: Body,
) -> Result<Json<OverridesPlan>, Refusal> {
    let OverridesRequest { overrides: asked, dry_run, source } = body.parse()?;
    if source == OverrideSource::File && !dry_run {
        let says = "source is file; the file is followed by itself, and only tried here (dry_run)";
        return Err(Refusal::order(says));
    }
    who.must_be(if dry_run { Role::Viewer } else { Role::Operator })?;
    if asked.len() > ORDERS_MAX {
        return Err(Refusal::order(format!("{} overrides; allowed is {ORDERS_MAX}", asked.len())));
    }
    if let Some(shard) = &analysis.config().shard {
        for (at, it) in asked.iter().enumerate() {
            if let Some(address) = shard.elsewhere(&it.caller) {
                let caller = &it.caller;
                return Err(Refusal::order(format!(
                    "overrides[{at}]: caller is {caller:?}, which the analysis at {address} has"
                )));
            }
        }
    }
    let now = Millis::now();
    let last = now.minute() + 1;
    let first = last.saturating_sub(replay::MINUTES);
    let windows = analysis.windows(first..last).await?;
    let planning = analysis.clone();
    // A quarter of a million edges take a while: not on a thread that serves others.
    let planned = tokio::task::spawn_blocking(move || {
        let book = planning.book();
        let (changes, tried) = changes(&book.said.overrides, asked, source, now)?;
        let mut tried = tried;
        tried.index(|name| book.names.find(name));
        let edges = replay(&book, &tried, &windows, now);
        Ok::<_, String>((changes, edges))
    });
    let failed = |_| Refusal::later("plan-failed", "the plan cannot be made", "try again");
    let (changes, edges) = planned.await.map_err(failed)?.map_err(Refusal::order)?;
    if !dry_run {
        let differing = changes.iter().filter(|change| change.differs);
        let set: Vec<_> =
            differing.filter_map(|change| change.after.clone().map(Change::SetOverride)).collect();
        if !set.is_empty() {
            analysis.change(set, who.name).await?;
        }
    }
    let [from, to] = [first, last].map(|minute| u64::from(minute) * 60_000);
    let plan = OverridesPlan {
        schema_version: SCHEMA_VERSION,
        applied: !dry_run,
        changes,
        from,
        to: to.min(now.0),
        ..OverridesPlan::default()
    };
    Ok(Json(with_edges(plan, edges)))
}

/// What is asked for beside what holds, and all that would hold.
fn changes(
    holding: &Overrides,
    asked: Vec<OverrideRequest>,
    source: OverrideSource,
    now: Millis,
) -> Result<(Vec<OverrideChange>, Overrides), String> {
    let mut tried = holding.clone();
    let (mut seen, mut kept) = (HashSet::new(), HashSet::new());
    let mut changes = Vec::new();
    for (at, request) in asked.into_iter().enumerate() {
        let named = |why: String| format!("overrides[{at}]: {why}");
        let after =
            Overrides::checked(request, source, now).map_err(|wrong| named(wrong.message))?;
        if source == OverrideSource::Api {
            tried.has_place_for(&after).map_err(named)?;
        }
        if !seen.insert(after.id.clone()) {
            return Err(named(format!("a second override of {}", after.subject())));
        }
        // A file may keep what has ended, which is as if it were taken out.
        if after.expires <= now.0 {
            continue;
        }
        kept.insert(after.id.clone());
        let before = holding.get(&after.id).cloned();
        let differs = before.as_ref().is_none_or(|before| !after.says_as(before));
        tried.set(after.clone());
        changes.push(OverrideChange { before, after: Some(after), differs });
    }
    // A file is all that it says.
    let filed = holding.iter().filter(|it| it.source == source && source == OverrideSource::File);
    for before in filed.filter(|it| !kept.contains(&it.id)) {
        tried.drop(&before.id);
        let before = Some(before.clone());
        changes.push(OverrideChange { before, after: None, differs: true });
    }
    Ok((changes, tried))
}

fn with_edges(plan: OverridesPlan, mut edges: Vec<ReplayedEdge>) -> OverridesPlan {
    let range = |of: fn(&ReplayedEdge) -> Range| {
        edges.iter().map(of).fold(Range::default(), |sum, it| Range {
            least: sum.least.saturating_add(it.least),
            most: sum.most.saturating_add(it.most),
        })
    };
    let sum = |of: fn(&ReplayedEdge) -> u64| edges.iter().map(of).fold(0, u64::saturating_add);
    let (claimed, unclaimed) = (range(|edge| edge.claimed), range(|edge| edge.unclaimed));
    let (retried, suppressed) = (sum(|edge| edge.retried), sum(|edge| edge.suppressed));
    let edges_changed = edges.len();
    edges.truncate(EDGES_MAX);
    OverridesPlan { edges_changed, edges, claimed, unclaimed, retried, suppressed, ..plan }
}
