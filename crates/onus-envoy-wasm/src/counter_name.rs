//! The name of a plugin's counter, which has its labels in it, in the form from which Envoy takes
//! them (`stats_tags`; in Istio `extraStatTags`).

use std::fmt::Write as _;

/// Labels first: what is left when they have been taken out is the name.
pub(crate) fn counter_name(name: &str, labels: &[&str], values: &[&str]) -> String {
    let mut text = String::new();
    for (label, value) in labels.iter().zip(values) {
        // Callers choose the names of gRPC methods, and must not end a label with them.
        let value = value.replace(';', "_");
        // Writing to a string does not fail.
        let _ = write!(text, "{label}=.={value};.;");
    }
    text.push_str(name);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_come_first_and_no_value_ends_one() {
        for (values, expected) in [
            (["shop/a", "GET x"], "caller=.=shop/a;.;method=.=GET x;.;onus_x_total"),
            (["", "/a;.;caller=.=b;.;"], "caller=.=;.;method=.=/a_._caller=.=b_._;.;onus_x_total"),
        ] {
            assert_eq!(counter_name("onus_x_total", &["caller", "method"], &values), expected);
        }
    }
}
