//! The edges as comma-separated values.

use std::borrow::Cow;
use std::fmt::Write;

use onus_traces::Report;

/// A header and a line for each edge; cells about nothing are empty.
pub(crate) fn render(report: &Report) -> String {
    let mut text = String::from(
        "caller,callee,calls,failures,both,p,p_per_request,raw_class,class,low,high\n",
    );
    for edge in &report.edges {
        let (low, high) = edge.interval().unzip();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{}",
            quoted(&edge.caller),
            quoted(&edge.callee),
            edge.calls,
            edge.failures,
            edge.both,
            ratio(edge.p()),
            ratio(edge.p_per_request()),
            edge.raw_class(),
            edge.class(),
            ratio(low),
            ratio(high),
        );
    }
    text
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(String::new, |ratio| format!("{ratio:.4}"))
}

/// Names are what people type; one with a comma, a quote or a line break is put in quotes.
fn quoted(name: &str) -> Cow<'_, str> {
    if name.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\"")).into()
    } else {
        name.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_cell() {
        for (name, expected) in
            [("shop", "shop"), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\""), ("a\nb", "\"a\nb\"")]
        {
            assert_eq!(quoted(name), expected);
        }
    }
}
