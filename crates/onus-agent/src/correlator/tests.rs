//! The correlator against a model that remembers everything and searches it.

use proptest::prelude::*;

use super::*;

const LINGER_MS: u64 = 100;

fn at(milliseconds: u64) -> Timestamp {
    Timestamp::from_nanos(milliseconds * 1_000_000)
}

fn correlator(live: usize, ids: usize) -> Correlator<u32> {
    let linger = Duration::from_millis(LINGER_MS);
    Correlator::new(Limits { live, ids, linger }, 0x1234_5678_9abc_def0)
}

fn ids<'a>(ids: &'a [&str]) -> impl Iterator<Item = &'a [u8]> {
    ids.iter().map(|id| id.as_bytes())
}

#[test]
fn a_token_finds_its_request_and_no_other() {
    // [correlate-1]
    let correlator = correlator(4, 4);
    let first = correlator.open(ids(&[]), 1, at(0)).unwrap();
    let second = correlator.open(ids(&[]), 2, at(0)).unwrap();
    assert_eq!((correlator.find(first), correlator.find(second)), (Some(1), Some(2)));
    correlator.close(first, false, at(0));
    let third = correlator.open(ids(&[]), 3, at(0)).unwrap();
    assert_eq!(third.index, first.index, "the place is used again");
    assert_eq!(correlator.find(first), None);
    correlator.close(first, false, at(0));
    assert_eq!(correlator.find(third), Some(3), "a stale token closes nothing");
}

#[test]
fn a_token_of_another_process_finds_nothing() {
    // [correlate-1]
    let limits = Limits::default();
    let before = Correlator::new(limits, 1).open(ids(&[]), 1, at(0)).unwrap();
    let after = Correlator::new(limits, 2);
    after.open(ids(&[]), 2, at(0)).unwrap();
    assert_eq!(after.find(before), None);
}

#[test]
fn an_id_is_certain_while_one_live_request_has_it() {
    // [correlate-4]
    let correlator = correlator(8, 8);
    let find = |id: &str| correlator.find_by_id(id.as_bytes());
    assert_eq!(find("a"), Found::Unknown);
    let first = correlator.open(ids(&["a", "b", "a"]), 1, at(0)).unwrap();
    assert_eq!((find("a"), find("b"), find("c")), (Found::One(1), Found::One(1), Found::Unknown));
    let second = correlator.open(ids(&["a"]), 2, at(0)).unwrap();
    assert_eq!((find("a"), find("b")), (Found::Ambiguous, Found::One(1)));
    correlator.close(first, false, at(1));
    assert_eq!((find("a"), find("b")), (Found::One(2), Found::Unknown));
    correlator.close(second, false, at(1));
    assert_eq!(find("a"), Found::Unknown);
    assert_eq!(correlator.occupancy(), Occupancy::default());
}

#[test]
fn what_lingers_is_forgotten_where_no_further_request_comes() {
    let correlator = correlator(64, 64);
    for number in 0..50 {
        let name = number.to_string();
        let token = correlator.open(ids(&[&name]), number, at(number.into())).unwrap();
        correlator.close(token, true, at(number.into()));
    }
    correlator.forget(at(LINGER_MS - 1));
    assert_eq!(correlator.occupancy().ids, 50);
    correlator.forget(at(LINGER_MS + 50));
    assert_eq!(correlator.occupancy(), Occupancy::default());
}

#[test]
fn an_id_of_a_cancelled_request_lingers() {
    // [correlate-4]
    let correlator = correlator(8, 8);
    let find = |id: &str| correlator.find_by_id(id.as_bytes());
    let first = correlator.open(ids(&["a"]), 1, at(0)).unwrap();
    correlator.close(first, true, at(10));
    let retry = correlator.open(ids(&["a"]), 2, at(20)).unwrap();
    assert_eq!(find("a"), Found::Ambiguous);
    let other = correlator.open(ids(&["b"]), 3, at(10 + LINGER_MS - 1)).unwrap();
    assert_eq!((find("a"), find("b")), (Found::Ambiguous, Found::One(3)));
    correlator.close(other, false, at(10 + LINGER_MS));
    assert_eq!(find("a"), Found::One(2), "the linger time is over");
    correlator.close(retry, true, at(200));
    correlator.open(ids(&[]), 4, at(200 + LINGER_MS)).unwrap();
    assert_eq!(find("a"), Found::Unknown);
    assert_eq!(correlator.occupancy(), Occupancy { live: 1, ..Occupancy::default() });
}

#[test]
fn a_full_table_refuses_and_counts() {
    // [fault-2]
    let correlator = correlator(2, 8);
    let first = correlator.open(ids(&["a"]), 1, at(0)).unwrap();
    assert!(correlator.open(ids(&["b"]), 2, at(0)).is_some());
    assert_eq!(correlator.open(ids(&["a"]), 3, at(0)), None);
    assert_eq!(correlator.find_by_id(b"a"), Found::One(1), "the refused request left no trace");
    let full = Occupancy { live: 2, ids: 2, refused: 1, unlisted: 0 };
    assert_eq!(correlator.occupancy(), full);
    correlator.close(first, false, at(0));
    assert!(correlator.open(ids(&["a"]), 4, at(0)).is_some());
}

#[test]
fn ids_without_room_make_every_id_uncertain() {
    // [fault-2] [correlate-4]
    fn check(cancelled: bool, at_once: Found<u32>) {
        let correlator = correlator(8, 2);
        let find = |id: &str| correlator.find_by_id(id.as_bytes());
        correlator.open(ids(&["a"]), 1, at(0)).unwrap();
        let over = correlator.open(ids(&["b", "c"]), 2, at(0)).unwrap();
        assert_eq!(correlator.find(over), Some(2), "no request is lost");
        for id in ["a", "b", "c"] {
            assert_eq!(find(id), Found::Ambiguous, "{id}");
        }
        assert_eq!(correlator.occupancy().unlisted, 1);
        correlator.close(over, cancelled, at(0));
        assert_eq!(find("a"), at_once);
        correlator.open(ids(&[]), 3, at(LINGER_MS)).unwrap();
        assert_eq!((find("a"), find("c")), (Found::One(1), Found::Unknown));
    }
    check(false, Found::One(1));
    check(true, Found::Ambiguous);
}

#[test]
fn more_ids_than_a_request_may_have_find_no_room() {
    let correlator = correlator(8, 8);
    let many = correlator.open(ids(&["a", "b", "c", "d", "e"]), 1, at(0)).unwrap();
    assert_eq!(correlator.find_by_id(b"a"), Found::Ambiguous);
    correlator.close(many, false, at(0));
    correlator.open(ids(&["a", "b", "c", "d"]), 2, at(0)).unwrap();
    assert_eq!(correlator.find_by_id(b"d"), Found::One(2));
}

#[test]
fn a_value_may_use_the_correlator_when_it_is_dropped() {
    use std::sync::Arc;

    #[derive(Clone)]
    struct Value(Arc<Correlator<Self>>);
    impl Drop for Value {
        fn drop(&mut self) {
            let _ = self.0.occupancy();
        }
    }
    let limits = Limits { live: 1, ..Limits::default() };
    let correlator = Arc::new(Correlator::new(limits, 0));
    let value = || Value(Arc::clone(&correlator));
    let token = correlator.open(ids(&[]), value(), at(0)).unwrap();
    assert_eq!(correlator.open(ids(&[]), value(), at(0)), None);
    correlator.close(token, false, at(0));
    assert_eq!(Arc::strong_count(&correlator), 1);
}

#[derive(Clone, Debug)]
enum Step {
    Open { ids: Vec<u8> },
    Close { which: usize, cancelled: bool },
    Wait { milliseconds: u64 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let open = prop::collection::vec(0_u8..6, 0..=IDS_PER_REQUEST);
    let step = prop_oneof![
        4 => open.prop_map(|ids| Step::Open { ids }),
        3 => (any::<usize>(), any::<bool>())
            .prop_map(|(which, cancelled)| Step::Close { which, cancelled }),
        2 => (0..LINGER_MS).prop_map(|milliseconds| Step::Wait { milliseconds }),
    ];
    prop::collection::vec(step, 0..120)
}

/// Every request there ever was, in order.
#[derive(Default)]
struct Model {
    requests: Vec<Filed>,
    /// The time of the last open or close.
    now: u64,
}

struct Filed {
    token: Token,
    ids: Vec<u8>,
    /// When it was closed, and whether it was cancelled.
    closed: Option<(u64, bool)>,
}

impl Model {
    fn live(&self) -> usize {
        self.requests.iter().filter(|request| request.closed.is_none()).count()
    }

    fn by_token(&self, number: usize) -> Option<u32> {
        self.requests[number].closed.is_none().then_some(number as u32)
    }

    fn by_id(&self, id: u8) -> Found<u32> {
        let mut live = Vec::new();
        let mut lingers = false;
        for (number, request) in self.requests.iter().enumerate() {
            if !request.ids.contains(&id) {
                continue;
            }
            match request.closed {
                None => live.push(number as u32),
                Some((at, cancelled)) => lingers |= cancelled && self.now < at + LINGER_MS,
            }
        }
        match live[..] {
            _ if lingers => Found::Ambiguous,
            [] => Found::Unknown,
            [one] => Found::One(one),
            [_, _, ..] => Found::Ambiguous,
        }
    }
}

/// Runs the steps in both; `compare` sees them after each.
fn run(
    steps: Vec<Step>,
    live_max: usize,
    ids_max: usize,
    compare: impl Fn(&Correlator<u32>, &Model) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let correlator = correlator(live_max, ids_max);
    let mut model = Model::default();
    let mut clock = 1;
    for step in steps {
        match step {
            Step::Open { ids } => {
                model.now = clock;
                let number = model.requests.len() as u32;
                let bytes = ids.iter().map(std::slice::from_ref);
                let token = correlator.open(bytes, number, at(clock));
                prop_assert_eq!(token.is_some(), model.live() < live_max);
                if let Some(token) = token {
                    model.requests.push(Filed { token, ids, closed: None });
                }
            }
            Step::Close { which, cancelled } => {
                model.now = clock;
                // One that is closed already too: a stale token closes nothing.
                let count = model.requests.len().max(1);
                if let Some(request) = model.requests.get_mut(which % count) {
                    correlator.close(request.token, cancelled, at(clock));
                    request.closed.get_or_insert((clock, cancelled));
                }
            }
            Step::Wait { milliseconds } => clock += milliseconds,
        }
        for (number, request) in model.requests.iter().enumerate() {
            prop_assert_eq!(correlator.find(request.token), model.by_token(number));
        }
        prop_assert_eq!(correlator.occupancy().live, model.live());
        prop_assert!(correlator.occupancy().ids <= ids_max);
        compare(&correlator, &model)?;
    }
    Ok(())
}

proptest! {
    #[test]
    fn finds_what_the_model_finds(steps in steps()) {
        // [correlate-1] [correlate-4]
        run(steps, 8, 1000, |correlator, model| {
            for id in 0..6 {
                prop_assert_eq!(correlator.find_by_id(&[id]), model.by_id(id), "id {}", id);
            }
            Ok(())
        })?;
    }

    #[test]
    fn never_finds_another_request_when_ids_have_no_room(steps in steps(), ids_max in 0_usize..6) {
        // [correlate-4] [fault-2]
        run(steps, 8, ids_max, |correlator, model| {
            for id in 0..6 {
                match correlator.find_by_id(&[id]) {
                    Found::One(number) => prop_assert_eq!(model.by_id(id), Found::One(number)),
                    // Less certain than the model is allowed; more is not.
                    Found::Unknown | Found::Ambiguous => {}
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn what_lingers_is_forgotten(steps in steps()) {
        let correlator = correlator(1000, 1000);
        let mut tokens = Vec::new();
        for step in steps {
            match step {
                Step::Open { ids } => {
                    let bytes = ids.iter().map(std::slice::from_ref);
                    tokens.extend(correlator.open(bytes, 0, at(0)));
                }
                Step::Close { which, cancelled } => {
                    if let Some(&token) = tokens.get(which % tokens.len().max(1)) {
                        correlator.close(token, cancelled, at(0));
                    }
                }
                Step::Wait { .. } => {}
            }
        }
        for token in tokens {
            correlator.close(token, true, at(1));
        }
        // Six ids at most, eight looked at in one go.
        correlator.open(ids(&[]), 0, at(1 + LINGER_MS)).unwrap();
        prop_assert_eq!(correlator.occupancy().ids, 0);
    }
}
