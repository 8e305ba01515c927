//! Where services and lines go: callers left of callees, in columns; within a column in an order
//! that crosses few lines.

use super::Line;

/// Places of services, and ways of lines, in columns and rows. The middle row is 0.
pub(super) struct Layout {
    pub(super) columns: usize,
    pub(super) rows: usize,
    /// Column and row of each service.
    pub(super) places: Vec<(usize, f64)>,
    /// For each line the rows in which it passes the columns between its ends, with these columns.
    pub(super) between: Vec<Vec<(usize, f64)>>,
}

impl Layout {
    pub(super) fn of(services: usize, lines: &[Line]) -> Self {
        let columns = columns(services, lines);
        let mut slots = Slots::of(&columns, lines);
        for _ in 0..SWEEPS {
            slots.sweep();
        }
        let rows = slots.rows();
        let place = |slot: usize| (slots.column_of[slot], rows[slot]);
        Self {
            columns: slots.columns.len(),
            rows: slots.columns.iter().map(Vec::len).max().unwrap_or(0),
            places: (0..services).map(place).collect(),
            between: slots
                .between
                .iter()
                .map(|way| way.iter().map(|&it| place(it)).collect())
                .collect(),
        }
    }
}

/// The column of each service: one behind the last of its callers, where lines that close a circle
/// do not count.
fn columns(services: usize, lines: &[Line]) -> Vec<usize> {
    let mut callees = vec![Vec::new(); services];
    let mut is_called = vec![false; services];
    for line in lines.iter().filter(|line| line.caller != line.callee) {
        callees[line.caller].push(line.callee);
        is_called[line.callee] = true;
    }
    // Down from those that nobody calls, then from whoever is left in circles.
    let mut starts: Vec<_> = (0..services).collect();
    starts.sort_by_key(|&service| is_called[service]);
    let mut state = vec![State::Unseen; services];
    let mut forward = vec![Vec::new(); services];
    let mut finished = Vec::with_capacity(services);
    for start in starts {
        if state[start] != State::Unseen {
            continue;
        }
        state[start] = State::Open;
        let mut open = vec![(start, 0)];
        while let Some((service, next)) = open.last_mut() {
            let service = *service;
            let Some(&callee) = callees[service].get(*next) else {
                state[service] = State::Done;
                finished.push(service);
                open.pop();
                continue;
            };
            *next += 1;
            if state[callee] != State::Open {
                forward[service].push(callee);
            }
            if state[callee] == State::Unseen {
                state[callee] = State::Open;
                open.push((callee, 0));
            }
        }
    }
    let mut columns = vec![0; services];
    for &service in finished.iter().rev() {
        for &callee in &forward[service] {
            columns[callee] = columns[callee].max(columns[service] + 1);
        }
    }
    columns
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Unseen,
    Open,
    Done,
}

/// Services, and the places where lines pass columns between their ends, in the order of each
/// column.
struct Slots {
    columns: Vec<Vec<usize>>,
    column_of: Vec<usize>,
    /// Slots of the column before and of the one behind that a line leads to.
    left: Vec<Vec<usize>>,
    right: Vec<Vec<usize>>,
    /// For each line the slots between its ends.
    between: Vec<Vec<usize>>,
}

impl Slots {
    fn of(columns: &[usize], lines: &[Line]) -> Self {
        let mut slots = Self {
            columns: vec![Vec::new(); columns.iter().max().map_or(0, |most| most + 1)],
            column_of: Vec::new(),
            left: Vec::new(),
            right: Vec::new(),
            between: Vec::with_capacity(lines.len()),
        };
        for &column in columns {
            slots.add(column);
        }
        for line in lines {
            let mut way = Vec::new();
            let mut at = line.caller;
            for column in columns[line.caller] + 1..columns[line.callee] {
                let slot = slots.add(column);
                slots.join(at, slot);
                way.push(slot);
                at = slot;
            }
            if columns[line.caller] < columns[line.callee] {
                slots.join(at, line.callee);
            }
            slots.between.push(way);
        }
        slots
    }

    fn add(&mut self, column: usize) -> usize {
        let slot = self.column_of.len();
        self.column_of.push(column);
        self.left.push(Vec::new());
        self.right.push(Vec::new());
        self.columns[column].push(slot);
        slot
    }

    fn join(&mut self, left: usize, right: usize) {
        self.right[left].push(right);
        self.left[right].push(left);
    }

    /// Puts each slot where the middle of its neighbours is, once from the left and once back.
    fn sweep(&mut self) {
        for column in 1..self.columns.len() {
            self.order(column, |slots, slot| &slots.left[slot]);
        }
        for column in (0..self.columns.len().saturating_sub(1)).rev() {
            self.order(column, |slots, slot| &slots.right[slot]);
        }
    }

    fn order(&mut self, column: usize, neighbours: fn(&Self, usize) -> &[usize]) {
        let rows = self.rows();
        let mut order = std::mem::take(&mut self.columns[column]);
        order.sort_by_cached_key(|&slot| {
            let around = neighbours(self, slot);
            let sum: f64 = around.iter().map(|&it| rows[it]).sum();
            let wanted = if around.is_empty() { rows[slot] } else { sum / around.len() as f64 };
            // Thousandths of a row are as near as rows come.
            (wanted * 1000.0) as i64
        });
        self.columns[column] = order;
    }

    fn rows(&self) -> Vec<f64> {
        let mut rows = vec![0.0; self.column_of.len()];
        for column in &self.columns {
            let middle = (column.len() as f64 - 1.0) / 2.0;
            for (row, &slot) in column.iter().enumerate() {
                rows[slot] = row as f64 - middle;
            }
        }
        rows
    }
}

/// More change little.
const SWEEPS: usize = 6;

#[cfg(test)]
mod tests {
    use onus_learn::MeasuredClass;

    use super::*;
    use crate::draw::Look;

    fn layout(services: usize, lines: &[(usize, usize)]) -> Layout {
        let look = Look { class: MeasuredClass::NoData, label: String::new(), weight: 0 };
        let line = |&(caller, callee)| Line { caller, callee, look: look.clone(), on_way: false };
        Layout::of(services, &lines.iter().map(line).collect::<Vec<_>>())
    }

    #[test]
    fn callers_stand_left_of_their_callees() {
        let lines = [(0, 1), (1, 2), (0, 2), (0, 3), (2, 0), (2, 2)];
        let Layout { columns, places, between, .. } = layout(4, &lines);
        let column = |service: usize| places[service].0;
        // The call back from 2 to 0 closes a circle.
        assert_eq!([0, 1, 2, 3].map(column), [0, 1, 2, 1]);
        assert_eq!(columns, 3);
        let passed: Vec<Vec<usize>> =
            between.iter().map(|way| way.iter().map(|(column, _)| *column).collect()).collect();
        assert_eq!(passed, [vec![], vec![], vec![1], vec![], vec![], vec![]]);
    }

    #[test]
    fn lines_that_need_not_cross_do_not() {
        // 0 and 1 call 3 and 2.
        let Layout { places, rows, .. } = layout(4, &[(0, 3), (1, 2)]);
        assert_eq!(rows, 2);
        assert_eq!(places[0].1 < places[1].1, places[3].1 < places[2].1);
    }

    #[test]
    fn nothing_and_one_service_have_a_place() {
        assert_eq!(layout(0, &[]).columns, 0);
        assert_eq!(layout(1, &[(0, 0)]).places, [(0, 0.0)]);
    }
}
