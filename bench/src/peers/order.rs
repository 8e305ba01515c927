//! In which order subjects are measured: another one in each round, the same for the same seed.

use super::subject::Subject;
use super::work::Work;

/// What is measured at once: a subject at a work.
pub(crate) type Cell = (Work, Subject);

/// The cells of a round. Those that are compared stand next to each other, so that the machine is
/// the same for them; which of them is first is left to chance, and so is which work is.
pub(crate) fn of_round(seed: u64, round: u32, cells: &[Cell]) -> Vec<Cell> {
    let mut random = fastrand::Rng::with_seed(seed.wrapping_mul(MANY) ^ u64::from(round));
    let mut groups: Vec<Work> = cells.iter().map(|(work, _)| work.beside()).collect();
    groups.sort_unstable();
    groups.dedup();
    random.shuffle(&mut groups);
    let mut order = Vec::with_capacity(cells.len());
    for group in groups {
        let belongs = |cell: &&Cell| cell.0.beside() == group;
        let mut of_group: Vec<Cell> = cells.iter().filter(belongs).copied().collect();
        random.shuffle(&mut of_group);
        order.extend(of_group);
    }
    order
}

/// More rounds than there can be, so that no two runs share one.
const MANY: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn cells() -> Vec<Cell> {
        let works = Work::ALL.into_iter();
        works
            .flat_map(|work| Subject::all().map(move |subject| (work, subject)))
            .filter(|(work, subject)| work.is_for(*subject))
            .collect()
    }

    #[test]
    fn a_seed_fixes_the_order_and_rounds_differ() {
        let cells = cells();
        assert_eq!(of_round(1, 0, &cells), of_round(1, 0, &cells));
        assert_ne!(of_round(1, 0, &cells), of_round(1, 1, &cells));
        assert_ne!(of_round(1, 0, &cells), of_round(2, 0, &cells));
        let mut sorted = of_round(1, 0, &cells);
        sorted.sort_unstable();
        let mut expected = cells;
        expected.sort_unstable();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn what_is_compared_stands_together() {
        for round in 0..20 {
            let mut groups: Vec<_> =
                of_round(3, round, &cells()).into_iter().map(|(work, _)| work.beside()).collect();
            groups.dedup();
            let changes = groups.len();
            groups.sort_unstable();
            groups.dedup();
            assert_eq!(changes, groups.len(), "round {round}");
        }
    }

    #[test]
    fn everybody_is_first_in_some_round() {
        let cells: Vec<_> =
            cells().into_iter().filter(|(work, _)| *work == Work::Http1Rate).collect();
        let mut firsts: Vec<_> = (0..200).map(|round| of_round(1, round, &cells)[0]).collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), cells.len());
    }
}
