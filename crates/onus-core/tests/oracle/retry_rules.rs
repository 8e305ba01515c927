//! The retry table of the protocol as text: one line for each way to stop, the first line that
//! matches wins, and where none matches the call is retried.

use std::sync::LazyLock;

/// The facts of a decision, spelt for the table.
///
/// Claims are one letter each: `c`laimed, claimed-`s`ilent, `u`nclaimed, unclaimed by a
/// shield (`h`), `m`issing, silent (no reply, `n`). Pushback is `r`efused, too `l`ong or absent
/// (`.`). Yes is `+` and no is `-`. Ownership is `E`nforced or `O`bserved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spelt {
    pub(crate) claim: char,
    pub(crate) pushback: char,
    pub(crate) trusted: char,
    pub(crate) covered: char,
    pub(crate) marked: char,
    pub(crate) replayable: char,
    pub(crate) attempts_left: char,
    pub(crate) time_left: char,
    pub(crate) gate_open: char,
    pub(crate) ownership: char,
    pub(crate) token: char,
}

/// Columns: row of the protocol; claim; pushback; trusted, covered, marked, replayable; attempts,
/// time, gate, ownership, token; reason of the stop. `*` matches everything, letters match one
/// of themselves.
const TABLE: &str = "
    1   h     *    * * * *    * * * * *   suppressed
    1   u     *    * * * *    * * * E *   suppressed
    2   csmn  r    + * * *    * * * * *   pushback
    2   csmn  r    - * * *    * * * * *   not-configured
    2   *     l    * * * *    * * * * *   pushback
    3   *     *    * - * *    * * * * *   not-configured
    4   smn   *    * * + *    * * * E *   marked
    5   *     *    * * * -    * * * * *   not-replayable
    6   *     *    * * * *    - * * * *   exhausted
    7   *     *    * * * *    * - * * *   no-time
    8   *     *    * * * *    * * - E *   gated
    9   *     *    * * * *    * * * * -   budget-denied
";

/// A line of the table.
struct Line {
    row: u32,
    patterns: [&'static str; 11],
    reason: &'static str,
}

static LINES: LazyLock<Vec<Line>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.trim().is_empty());
    let parsed = lines.map(|line| {
        let cells: Vec<_> = line.split_whitespace().collect();
        let patterns = cells[1..12].try_into().expect("a line has eleven patterns");
        Line {
            row: cells[0].parse().expect("a line starts with its row"),
            patterns,
            reason: cells[12],
        }
    });
    parsed.collect()
});

/// The reason of the first line from `first_row` on that matches; `None` to retry.
pub(crate) fn stop(facts: &Spelt, first_row: u32) -> Option<&'static str> {
    let facts = [
        facts.claim,
        facts.pushback,
        facts.trusted,
        facts.covered,
        facts.marked,
        facts.replayable,
        facts.attempts_left,
        facts.time_left,
        facts.gate_open,
        facts.ownership,
        facts.token,
    ];
    let matches = |line: &&Line| {
        let mut pairs = facts.iter().zip(line.patterns);
        line.row >= first_row && pairs.all(|(fact, any)| any == "*" || any.contains(*fact))
    };
    LINES.iter().find(matches).map(|line| line.reason)
}
