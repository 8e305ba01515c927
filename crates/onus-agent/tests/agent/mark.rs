//! What Onus writes on requests: the mark, and the number of the attempt.

use onus_agent::{Mode, Share, Stop, Verdict};

use crate::host::{Reply, Service, Target, headers, line, retries, stopped};

const MARKED: &[(&str, &str)] = &[("onus-mark", "1")];

/// Mark and attempt on each request that a call sends until it is over.
fn sent(service: &Service, request: &[(&str, &str)], replies: &[Reply]) -> Vec<(String, String)> {
    let request = service.request_with(request);
    let mut call = request.call("b");
    let mut seen = Vec::new();
    for reply in replies {
        let headers = call.send();
        seen.push((line(&headers, "onus-mark"), line(&headers, "onus-attempt")));
        call.reply(*reply);
    }
    seen
}

fn check(marks: &[&str], service: &Service, request: &[(&str, &str)], replies: &[Reply]) {
    let attempts = ["", "2", "3"];
    let expected: Vec<_> = std::iter::zip(marks, attempts)
        .map(|(mark, attempt)| ((*mark).to_owned(), attempt.to_owned()))
        .collect();
    assert_eq!(sent(service, request, replies), expected, "{request:?} {replies:?}");
}

#[test]
fn lost_answers_mark_the_next_attempt() {
    // [mark-1] [mark-2] [mark-3] [mark-4] [attempt-1] [mode-4]
    let observing = Mode::Enforce(Share::percent(0).unwrap());
    for mode in [Mode::Observe, observing, Mode::ENFORCE] {
        let service = Service::new(mode, |config| config.retry("b", retries(3)));
        for (first, mark) in [
            (Reply::Error("claimed"), ""),
            (Reply::Error("claimed;kind=silent"), "1"),
            (Reply::Error(""), "1"),
            (Reply::Error("nonsense"), "1"),
            (Reply::Silence, "1"),
        ] {
            check(&["", mark], &service, &[], &[first, Reply::Ok]);
            // The attempt before decides, not the first.
            let then_claimed = [first, Reply::Error("claimed"), Reply::Ok];
            check(&["", mark, ""], &service, &[], &then_claimed);
        }
        check(&["1", "1"], &service, MARKED, &[Reply::Error("claimed"), Reply::Ok]);
    }
    let service = Service::new(Mode::Observe, |config| config.retry("b", retries(3)));
    check(&["", ""], &service, &[], &[Reply::Error("unclaimed"), Reply::Ok]);
}

#[test]
fn a_marked_request_retries_no_lost_answer() {
    // [decide-6]
    for (reply, expected) in [
        (Reply::Error("claimed"), None),
        (Reply::Error("claimed;kind=silent"), stopped(Stop::Marked)),
        (Reply::Error(""), stopped(Stop::Marked)),
        (Reply::Silence, stopped(Stop::Marked)),
    ] {
        let service = Service::enforcing(|config| config.retry("b", retries(2)));
        let request = service.request_with(MARKED);
        let verdict = request.call("b").play(&[reply]);
        let claim = request.claim();
        match expected {
            None => assert!(matches!(verdict, Some(Verdict::Retry(_))), "{reply:?}: {verdict:?}"),
            Some(_) => assert_eq!(verdict, expected, "{reply:?}"),
        }
        let marked = claim.starts_with("unclaimed;reason=marked;");
        assert_eq!(marked, expected.is_some(), "{claim}");
    }
}

#[test]
fn what_the_application_copied_is_taken_out() {
    // [mark-2] [attempt-1]
    const COPIED: &[(&str, &str)] =
        &[("onus-mark", "1"), ("onus-attempt", "7"), ("x-other", "kept")];
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    let request = service.request_with(COPIED);
    assert_eq!(request.headers, headers(&[("x-other", "kept")]));
    let request = service.request();
    let mut call = request.call_to("b", &Target { carries: COPIED, ..Target::GET });
    assert_eq!(call.send(), headers(&[("x-other", "kept")]));
    call.reply(Reply::Error("claimed"));
    let second = [("x-other", "kept"), ("onus-attempt", "2")];
    assert_eq!(call.send(), headers(&second));
}

#[test]
fn an_untied_call_starts_unmarked() {
    // [mark-2] [mark-3]
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    let _marked = service.request_with(MARKED);
    let mut call = service.untied_call_to("b", &Target { carries: MARKED, ..Target::GET });
    assert_eq!(line(&call.send(), "onus-mark"), "");
    call.reply(Reply::Silence);
    assert_eq!(line(&call.send(), "onus-mark"), "1");
}

#[test]
fn the_claim_says_which_attempt_the_request_was() {
    // [attempt-2]
    for (lines, attempt) in [
        (&[][..], 1),
        (&[("onus-attempt", "2")], 2),
        (&[("x-envoy-attempt-count", "3")], 3),
        (&[("grpc-previous-rpc-attempts", "3")], 4),
        (&[("onus-attempt", "2"), ("x-envoy-attempt-count", "5")], 5),
        (&[("onus-attempt", "nonsense")], 1),
        (&[("onus-attempt", "999999999999")], u32::MAX),
    ] {
        let claim = Service::enforcing(|_| {}).request_with(lines).claim();
        let expected = format!("claimed;reason=own;attempt={attempt};origin=\"a\";hops=0");
        assert_eq!(claim, expected, "{lines:?}");
    }
}
