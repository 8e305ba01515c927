//! Folding a function of a few small variables into rows with don't-cares.

use std::collections::BTreeMap;

/// A column: its name and the values that it can take.
pub(crate) struct Variable {
    name: &'static str,
    values: Vec<String>,
}

impl Variable {
    pub(crate) fn new<V: Into<String>>(
        name: &'static str,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        Self { name, values: values.into_iter().map(Into::into).collect() }
    }

    pub(crate) fn yes_no(name: &'static str) -> Self {
        Self::new(name, ["yes", "no"])
    }
}

/// A function over every reachable choice of values, by their numbers; unreachable choices are
/// absent.
pub(crate) type Function = BTreeMap<Vec<usize>, String>;

/// A row: the values that each variable may have, and the result.
struct Row {
    allowed: Vec<Vec<usize>>,
    result: String,
}

impl Row {
    fn matches(&self, choice: &[usize]) -> bool {
        self.allowed.iter().zip(choice).all(|(allowed, value)| allowed.contains(value))
    }
}

/// The function as a Markdown table of which the first row that matches decides; the rows come in
/// the order of `results`.
pub(crate) fn table(
    variables: &[Variable],
    function: &Function,
    heading: &str,
    results: &[&str],
) -> String {
    let known = |result: &String| results.contains(&result.as_str());
    assert!(function.values().all(known), "every result has a place in the order");
    let names = variables.iter().map(|variable| variable.name.to_owned());
    let mut lines = vec![line(names.chain([format!("**{heading}**")]))];
    lines.push(line(std::iter::repeat_n("---".to_owned(), variables.len() + 1)));
    for row in rows(variables, function, results) {
        let cells = row.allowed.iter().zip(variables).map(|(allowed, of)| cell(allowed, of));
        lines.push(line(cells.chain([format!("**{}**", row.result)])));
    }
    lines.join("\n") + "\n"
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.fold("|".to_owned(), |line, cell| format!("{line} {cell} |"))
}

/// Nothing for every value, else the values or the few that are excluded.
fn cell(allowed: &[usize], variable: &Variable) -> String {
    let all = 0..variable.values.len();
    let excluded: Vec<_> = all.filter(|value| !allowed.contains(value)).collect();
    let names = |values: &[usize], joint| {
        let names: Vec<_> = values.iter().map(|value| variable.values[*value].as_str()).collect();
        names.join(joint)
    };
    if excluded.is_empty() {
        String::new()
    } else if excluded.len() < allowed.len() {
        format!("not {}", names(&excluded, " nor "))
    } else {
        names(allowed, ", ")
    }
}

/// Rows that cover the function, result by result: each choice in turn that no row covers is
/// widened, variable by variable from the last to the first, as far as it meets no choice with a
/// later result.
fn rows(variables: &[Variable], function: &Function, results: &[&str]) -> Vec<Row> {
    let mut left = function.clone();
    let mut rows = Vec::new();
    for result in results {
        let mut of_result: Vec<Row> = Vec::new();
        for (choice, _) in left.iter().filter(|(_, of)| of == result) {
            if !of_result.iter().any(|row| row.matches(choice)) {
                of_result.push(widened(choice, result, variables, &left));
            }
        }
        for row in without_needless(of_result, function) {
            let undecided =
                |choice: &&Vec<usize>| !rows.iter().any(|row: &Row| row.matches(choice));
            let narrowed = narrowed(row, variables, left.keys().filter(undecided));
            rows.push(narrowed);
        }
        left.retain(|_, of| of != result);
    }
    rows
}

fn widened(choice: &[usize], result: &str, variables: &[Variable], left: &Function) -> Row {
    let allowed = choice.iter().map(|value| vec![*value]).collect();
    let mut row = Row { allowed, result: result.to_owned() };
    for column in (0..variables.len()).rev() {
        for value in 0..variables[column].values.len() {
            if row.allowed[column].contains(&value) {
                continue;
            }
            row.allowed[column].push(value);
            if left.iter().any(|(choice, of)| of != result && row.matches(choice)) {
                row.allowed[column].pop();
            }
        }
        row.allowed[column].sort_unstable();
    }
    row
}

/// Leaves out values for which an earlier row has decided, unless the cell can stay empty.
fn narrowed<'a>(
    mut row: Row,
    variables: &[Variable],
    undecided: impl Iterator<Item = &'a Vec<usize>>,
) -> Row {
    let met: Vec<_> = undecided.filter(|choice| row.matches(choice)).collect();
    for (column, variable) in variables.iter().enumerate() {
        if row.allowed[column].len() < variable.values.len() {
            row.allowed[column].retain(|value| met.iter().any(|choice| choice[column] == *value));
        }
    }
    row
}

/// Leaves out rows whose choices are all covered by other rows of the same result.
fn without_needless(mut rows: Vec<Row>, function: &Function) -> Vec<Row> {
    let mut at = 0;
    while at < rows.len() {
        let row = rows.remove(at);
        let needed = function.iter().any(|(choice, result)| {
            *result == row.result
                && row.matches(choice)
                && !rows.iter().any(|other| other.matches(choice))
        });
        if needed {
            rows.insert(at, row);
            at += 1;
        }
    }
    rows
}

/// Every choice of one value for each variable.
pub(crate) fn choices(variables: &[Variable]) -> Vec<Vec<usize>> {
    variables.iter().fold(vec![Vec::new()], |choices, variable| {
        let longer = |choice: &Vec<usize>| {
            let values = 0..variable.values.len();
            values.map(|value| [choice.as_slice(), &[value]].concat()).collect::<Vec<_>>()
        };
        choices.iter().flat_map(longer).collect()
    })
}

#[test]
fn dont_cares_are_folded() {
    let variables = [Variable::yes_no("a"), Variable::new("b", ["x", "y", "z"])];
    let result = |choice: &[usize]| match choice {
        [0, 2] => "stop",
        [_, 0] => "wait",
        _ => "go",
    };
    let function = choices(&variables).into_iter().map(|c| (c.clone(), result(&c).to_owned()));
    let table = table(&variables, &function.collect(), "then", &["stop", "wait", "go"]);
    let expected = "\
        | a | b | **then** |\n| --- | --- | --- |\n\
        | yes | z | **stop** |\n|  | x | **wait** |\n|  |  | **go** |\n";
    assert_eq!(table, expected);
}
