//! The fold over reports.

use onus_api::EdgePolicyFacts;
use onus_learn::MeasuredClass;

use super::*;

const MINUTE: u64 = 60_000;

fn at(minute: u64) -> Millis {
    // Not at zero: reports of the first minutes could not be clamped to before it.
    Millis((1_000 + minute) * MINUTE)
}

fn delta(callee: &str, counts: EdgeCounts) -> EdgeDelta {
    EdgeDelta {
        caller_procedure: "GET /".to_owned(),
        callee: callee.to_owned(),
        procedure: "/".to_owned(),
        policy: EdgePolicyFacts::default(),
        counts,
    }
}

fn report(instance: &str, sequence: u64, edges: Vec<EdgeDelta>) -> Report {
    Report {
        schema_version: 1,
        service: "checkout".to_owned(),
        instance: instance.to_owned(),
        sequence,
        at: at(0).0,
        facts: ServiceFacts::default(),
        edges,
        procedures: Vec::new(),
    }
}

fn alone(caller_ok: u64, caller_failed: u64) -> EdgeCounts {
    EdgeCounts {
        alone_caller_ok: caller_ok,
        alone_caller_failed: caller_failed,
        calls_failed: caller_ok + caller_failed,
        ..EdgeCounts::default()
    }
}

fn book() -> Book {
    Book::new(Limits::default(), at(0))
}

#[test]
fn a_report_counts_once_and_one_that_never_came_is_seen() {
    let mut book = book();
    let one = EdgeCounts { calls_ok: 1, ..EdgeCounts::default() };
    for (instance, sequence, arrival) in [
        ("a", 1, Arrival::New { lost: 0 }),
        ("a", 1, Arrival::Repeated),
        ("a", 2, Arrival::New { lost: 0 }),
        ("b", 1, Arrival::New { lost: 0 }),
        ("a", 5, Arrival::New { lost: 2 }),
        ("a", 4, Arrival::Repeated),
        ("late", 7, Arrival::New { lost: 6 }),
    ] {
        let report = report(instance, sequence, vec![delta("payments", one)]);
        assert_eq!(book.apply(&report, at(0)), arrival, "{instance} {sequence}");
    }
    let counted: u64 = book.edges().map(|row| row.counts.calls_ok).sum();
    assert_eq!(counted, 5, "over both processes, and over the late one");
    assert_eq!(book.noticed.lost_reports, 8);
    assert_eq!(book.standing("checkout", "a"), Some((5, 2)));
}

#[test]
fn a_minute_of_all_processes_is_one_minute() {
    let mut book = book();
    for (instance, counts) in [("a", alone(9, 0)), ("b", alone(9, 0)), ("c", alone(7, 0))] {
        book.apply(&report(instance, 1, vec![delta("recs", counts)]), at(0));
    }
    assert!(book.tick(at(1)), "a class is news");
    let row = book.edges().next().expect("there is an edge");
    assert_eq!(row.told.class, MeasuredClass::FailOpen);
    assert_eq!((row.told.k, row.told.n), (0.0, 25.0));
    assert!(!book.tick(at(2)), "nothing new");
}

#[test]
fn a_caller_in_trouble_teaches_nothing() {
    // [class-8]
    let mut book = book();
    let mut troubled = report("a", 1, vec![delta("payments", alone(0, 30))]);
    let counts = ProcedureCounts { clean_ok: 8, clean_failed: 2, ..ProcedureCounts::default() };
    troubled.procedures = vec![ProcedureDelta { procedure: "GET /".to_owned(), counts }];
    book.apply(&troubled, at(0));
    assert!(book.tick(at(1)), "it has failed, which is known");
    let class = |book: &Book| book.edges().next().map(|row| row.told.class);
    assert_eq!(class(&book), Some(MeasuredClass::Unknown));
    book.apply(&report("a", 2, vec![delta("payments", alone(0, 30))]), at(1));
    book.tick(at(2));
    assert_eq!(class(&book), Some(MeasuredClass::FailClose));
}

#[test]
fn an_edge_that_stops_being_survived_is_no_trouble_of_its_caller() {
    // [class-13]
    let mut book = book();
    book.apply(&report("a", 1, vec![delta("recs", alone(30, 0))]), at(0));
    book.tick(at(1));
    for minute in 1..3 {
        let mut needed = report("a", minute + 1, vec![delta("recs", alone(0, 30))]);
        // Agents that hold the edge fail-open count its failures as clean requests.
        let counts =
            ProcedureCounts { clean_ok: 20, clean_failed: 30, ..ProcedureCounts::default() };
        needed.procedures = vec![ProcedureDelta { procedure: "GET /".to_owned(), counts }];
        book.apply(&needed, at(minute));
        book.tick(at(minute + 1));
    }
    let class = book.edges().next().map(|row| row.told.class);
    assert_eq!(class, Some(MeasuredClass::Unknown), "50 of 75");
}

#[test]
fn clocks_that_are_wrong_move_windows_and_no_counts() {
    let mut book = book();
    let sent = [at(0).0, 0, u64::MAX, at(0).0 - 3 * MINUTE];
    for (sequence, sent) in (1..).zip(sent) {
        let report = Report { at: sent, ..report("a", sequence, vec![delta("recs", alone(1, 0))]) };
        book.apply(&report, at(0));
    }
    let mut minutes: Vec<_> = book.windows.keys().map(|key| u64::from(key.minute)).collect();
    minutes.sort_unstable();
    assert_eq!(minutes, [990, 997, 1_000, 1_001]);
    assert_eq!(book.edges().map(|row| row.counts.calls_failed).sum::<u64>(), 4);
}

#[test]
fn a_million_procedures_take_the_room_of_ten_thousand() {
    let mut book = book();
    let one = EdgeCounts { calls_ok: 1, ..EdgeCounts::default() };
    for sequence in 1..=100 {
        let name = |number: u32| format!("/pay/{sequence}/{number}");
        let edges = (0..10_000)
            .map(|number| EdgeDelta { procedure: name(number), ..delta("payments", one) })
            .collect();
        book.apply(&report("a", sequence, edges), at(0));
    }
    assert_eq!(book.edge_count(), 10_001, "those of the limit, and one for all others");
    assert_eq!(book.edges().map(|row| row.counts.calls_ok).sum::<u64>(), 1_000_000);
    assert_eq!(book.noticed.overflows, 990_000);
    assert_eq!(book.names.find("/pay/100/9999"), None, "names without a row are not kept");
}

#[test]
fn an_edge_that_is_silent_for_long_makes_room() {
    let limits = Limits { edges: 2, ..Limits::default() };
    let mut book = Book::new(limits, at(0));
    let one = EdgeCounts { calls_ok: 1, ..EdgeCounts::default() };
    let callees = |book: &Book| {
        let mut callees: Vec<_> =
            book.edges().map(|row| book.names.name(row.key.callee).to_string()).collect();
        callees.sort();
        callees
    };
    let month = 31 * 24 * 60;
    book.apply(&report("a", 1, vec![delta("old", one), delta("kept", one)]), at(0));
    book.apply(&report("a", 2, vec![delta("kept", one)]), at(month));
    book.tick(at(month));
    assert_eq!(callees(&book), ["kept"]);
    assert_eq!(book.freed(), [0]);
    book.apply(&report("a", 3, vec![delta("new", one)]), at(month));
    assert_eq!(callees(&book), ["kept", "new"]);
    assert_eq!(book.freed(), [0_u32; 0], "its place is taken, and written anew");
    book.apply(&report("a", 4, vec![delta("further", one)]), at(month));
    assert_eq!(callees(&book), [OTHER, "kept", "new"]);
}

#[test]
fn the_processes_that_were_silent_longest_make_room() {
    let limits = Limits { instances: 3, ..Limits::default() };
    let mut book = Book::new(limits, at(0));
    for (minute, instance) in (0..).zip(["a", "b", "c", "d"]) {
        book.apply(&report(instance, 1, Vec::new()), at(minute));
    }
    assert_eq!(book.standing("checkout", "a"), None);
    assert!(["b", "c", "d"].iter().all(|instance| book.standing("checkout", instance).is_some()));
    assert_eq!(book.noticed.forgotten_instances, 1);
}
