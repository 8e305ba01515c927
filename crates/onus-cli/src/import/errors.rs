//! On what is retried, as the sidecar says it.

use onus::{CallError, ErrorSet};
use onus_retry_config::Condition;

use crate::cli::MadeBy;

/// The errors of conditions, and the words that mean none; `None` where nothing is said of them.
pub(super) fn of(conditions: &[Condition], made_by: MadeBy) -> (Option<ErrorSet>, Vec<String>) {
    if conditions.is_empty() {
        return (None, Vec::new());
    }
    let (mut set, mut lost) = (ErrorSet::EMPTY, Vec::new());
    for condition in conditions {
        match errors(condition, made_by) {
            Ok(errors) => errors.into_iter().for_each(|error| set.insert(error)),
            Err(why) => lost.push(why),
        }
    }
    (Some(set), lost)
}

fn errors(condition: &Condition, made_by: MadeBy) -> Result<Vec<CallError>, String> {
    let statuses = |from: u16, to: u16| (from..=to).map(CallError::Http).collect::<Vec<_>>();
    let with_transport =
        |errors: Vec<CallError>| errors.into_iter().chain(CallError::TRANSPORT).collect();
    Ok(match condition {
        Condition::ConnectFailure => vec![CallError::Connect],
        // What provably was not sent is resent by the sidecar without being asked to; `reset` would
        // mean more than that.
        Condition::RefusedStream | Condition::ResetBeforeRequest => match made_by {
            MadeBy::Onus => Vec::new(),
            MadeBy::Below => vec![CallError::Reset],
        },
        Condition::NoAnswer => vec![CallError::Reset, CallError::Timeout, CallError::Protocol],
        Condition::ServerError => with_transport(statuses(500, 599)),
        Condition::GatewayError => with_transport(statuses(502, 504)),
        Condition::Status(status) => vec![status_error(*status)?],
        Condition::Statuses(from, to) => {
            status_error(*from)?;
            status_error(*to)?;
            statuses(*from, *to)
        }
        Condition::Grpc(code @ 1..=16) => vec![CallError::Grpc(*code)],
        Condition::Grpc(code) => return Err(format!("the gRPC code {code} is no error")),
        Condition::Header | Condition::RateLimited => {
            return Err(format!("the condition {condition} is not known to the sidecar"));
        }
        // The reader has told it.
        Condition::Unknown(_) => Vec::new(),
    })
}

fn status_error(status: u16) -> Result<CallError, String> {
    match status {
        400..=599 => Ok(CallError::Http(status)),
        _ => Err(format!("the status {status} is no error")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(set: ErrorSet) -> String {
        serde_json::to_string(&onus_proxy::Errors(set)).unwrap()
    }

    #[test]
    fn conditions_and_what_they_cover() {
        use Condition::*;
        for (conditions, onus, below) in [
            (vec![ConnectFailure], r#"["connect"]"#, r#"["connect"]"#),
            (vec![RefusedStream, ResetBeforeRequest], "[]", r#"["reset"]"#),
            (
                vec![NoAnswer],
                r#"["reset","protocol","timeout"]"#,
                r#"["reset","protocol","timeout"]"#,
            ),
            (
                vec![GatewayError],
                r#"["http-502","http-503","http-504","connect","reset","protocol","timeout"]"#,
                r#"["http-502","http-503","http-504","connect","reset","protocol","timeout"]"#,
            ),
            (vec![Statuses(503, 504)], r#"["http-503","http-504"]"#, r#"["http-503","http-504"]"#),
            (vec![Grpc(14), Status(429)], r#"["http-429","grpc-14"]"#, r#"["http-429","grpc-14"]"#),
        ] {
            for (made_by, expected) in [(MadeBy::Onus, onus), (MadeBy::Below, below)] {
                let (set, lost) = of(&conditions, made_by);
                assert_eq!((words(set.unwrap()), lost.len()), (expected.to_owned(), 0));
            }
        }
        assert_eq!(of(&[], MadeBy::Onus).0, None);
        for condition in [Header, RateLimited, Status(302), Statuses(200, 500), Grpc(0)] {
            assert_eq!(of(&[condition], MadeBy::Onus).1.len(), 1);
        }
    }
}
