//! The claim decision of the protocol over sets of calls: which dropped calls count, which failed
//! calls are blamed, and the rules from the top.

/// A request that is answered with an error, as the protocol speaks of it.
pub(crate) struct Request {
    pub(crate) mode: &'static str,
    pub(crate) marked: bool,
    pub(crate) shield: bool,
    pub(crate) silent_claims: bool,
    pub(crate) untied_calls: bool,
    pub(crate) calls: Vec<Call>,
}

/// One of its outbound calls.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) class: &'static str,
    /// How it ended: `ok`, `dropped`, or the reason for which its retries stopped.
    pub(crate) end: &'static str,
    pub(crate) attempts: u32,
    /// What the last attempt read; an attempt under way reads `silent`.
    pub(crate) read: Option<&'static str>,
    pub(crate) got_a_reply: bool,
    /// Where the caller observes: the reason for which enforcing would have stopped first.
    pub(crate) shadow: Option<&'static str>,
    pub(crate) probed: bool,
}

/// Token, reason, the number of the deciding call and whether vetoes go with it.
pub(crate) type Answer = (&'static str, &'static str, Option<usize>, bool);

const MET_AT_ONCE: [&str; 5] = ["suppressed", "marked", "pushback", "budget-denied", "gated"];
const NOBODY_ANSWERED: [&str; 3] = ["missing", "silent", "claimed-silent"];

/// The claim on the request's error; `None` where nothing is sent.
pub(crate) fn answer(request: &Request) -> Option<Answer> {
    let Request { calls, .. } = request;
    let numbers = || 0..calls.len();
    let is_final = |&n: &usize| !["ok", "dropped"].contains(&calls[n].end);
    let may_be_blamed = |&n: &usize| calls[n].class != "fail-open";
    let somebody_blamed = numbers().filter(is_final).any(|n| may_be_blamed(&n));
    let is_dropped = |&n: &usize| calls[n].end == "dropped";
    // A call that enforcing would have ended is no dropped call to the claim.
    let in_flight = |&n: &usize| {
        is_dropped(&n) && calls[n].shadow.is_none() && (calls[n].attempts > 1 || !somebody_blamed)
    };
    let shadowed = |&n: &usize| is_dropped(&n) && calls[n].shadow.is_some();
    let failed: Vec<_> = numbers().filter(|n| is_final(n) || in_flight(n) || shadowed(n)).collect();
    let reason = |&n: &usize| match calls[n].shadow {
        Some(shadow) => shadow,
        None if in_flight(&n) => "in-flight",
        None => calls[n].end,
    };
    let blamed: Vec<_> = failed.iter().copied().filter(may_be_blamed).collect();
    let met = |n: &usize| calls[*n].attempts > 1 || MET_AT_ONCE.contains(&reason(n));
    let first_met = blamed.iter().copied().find(met);
    let in_silence = |n: &usize| calls[*n].read.is_some_and(|read| NOBODY_ANSWERED.contains(&read));
    let attempts: u32 = blamed.iter().map(|n| calls[*n].attempts).sum();
    let replies = blamed.iter().filter(|n| calls[**n].attempts > 0 && calls[**n].got_a_reply);
    let only_silence = attempts > 0 && replies.count() == 0;

    let hand_off = if blamed.iter().any(in_silence) { "claimed;kind=silent" } else { "claimed" };
    let silent_claims = request.silent_claims && !request.marked && only_silence;
    let deciding = first_met.or_else(|| blamed.first().copied());
    let stop = deciding.as_ref().map_or("own", reason);
    let rules = [
        (request.shield, "unclaimed;kind=shield", "operator", None),
        (failed.is_empty() && request.untied_calls, "claimed", "context-lost", None),
        (blamed.is_empty(), "claimed", "own", None),
        (first_met.is_none(), hand_off, "handoff", deciding),
        (silent_claims, "claimed;kind=silent", "silent", deciding),
        (true, "unclaimed", stop, deciding),
    ];
    let (_, claim, reason, deciding) = rules.into_iter().find(|rule| rule.0)?;
    let probed = calls.iter().any(|call| call.probed);
    let vetoes = request.shield || claim == "unclaimed" && request.mode == "enforce" && !probed;
    (request.mode != "off" || request.shield).then_some((claim, reason, deciding, vetoes))
}
