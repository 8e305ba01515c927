//! What makes no sense in a scenario: where it is, and what is allowed.

use super::load;

/// A scenario that makes sense, with one line in the place of another.
fn with(line: &str, other: &str) -> String {
    let text = "arrivals: {requests: 10}\n\
                topology: {calls: {services: {a: [b], b: []}}}\n\
                service: {work: 5ms}\n\
                faults: [{fails: {service: b, probability: 0.5}}]\n\
                policies: [none]\n";
    assert!(text.contains(line), "{line}");
    text.replace(line, other)
}

#[test]
fn mistakes_are_shown_with_their_place_and_what_is_allowed() {
    for (line, other, place, complaint) in [
        ("policies: [none]", "policies: [none]\ncolour: red", "6:1", "unknown field"),
        ("policies: [none]", "policies: [nobody]", "5:12", "unknown variant"),
        (
            "probability: 0.5",
            "probability: 1.5",
            "4:44",
            "1.5 is no probability; allowed is 0 to 1",
        ),
        ("work: 5ms", "work: -5ms", "3:17", "`-5ms` is no latency; allowed is"),
        ("service: b,", "service: x,", "4:28", "`x` is no service of the topology"),
        ("{a: [b], b: []}", "{a: [b], b: [], c: [d], d: [c]}", "2:50", "no request reaches `c`"),
        ("{a: [b], b: []}", "{a: [b], b: [a]}", "2:11", "a cycle needs `entries`"),
        (
            "{requests: 10}",
            "{requests: 10, rate: -1}",
            "1:32",
            "-1 requests per second; allowed is",
        ),
        ("{requests: 10}", "{}", "", "arrivals need `requests` or `for`"),
        ("[none]", "[none, none]", "", "two policies are called `none`"),
        ("[none]", "[]", "", "there is no policy to run"),
        ("[none]", "[{policy: linkerd, gate: true}]", "", "`gate` cannot be set for linkerd"),
    ] {
        let text = with(line, other);
        let error = load(&text).expect_err(other);
        let found =
            error.place.map_or_else(String::new, |(line, column)| format!("{line}:{column}"));
        assert_eq!(found, place, "{other}: {error}");
        assert!(error.message.contains(complaint), "{other}: {}", error.message);
    }
}
