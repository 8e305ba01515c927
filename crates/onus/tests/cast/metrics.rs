//! What a service has counted, read as an operator reads it.

use std::collections::BTreeMap;

use onus::Onus;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// One line of the metrics page.
pub(crate) struct Series {
    pub(crate) family: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

/// The sum of a family's series that have all these labels.
pub(crate) fn counted(onus: &Onus, family: &str, labels: &[(&str, &str)]) -> u64 {
    let text = page(onus);
    assert!(text.contains(&format!("# TYPE {} ", family.trim_end_matches("_total"))), "{family}");
    let series = parse(&text).into_iter().filter(|series| series.family == family);
    let asked = series.filter(|series| {
        labels.iter().all(|(name, value)| series.labels.get(*name).is_some_and(|has| has == value))
    });
    asked.map(|series| series.value).sum::<f64>() as u64
}

/// Everything that is counted.
pub(crate) fn all_series(onus: &Onus) -> Vec<Series> {
    parse(&page(onus))
}

fn page(onus: &Onus) -> String {
    let mut registry = Registry::default();
    onus.register_metrics(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text
}

fn parse(page: &str) -> Vec<Series> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let series = lines.filter_map(|line| {
        let (family, rest) = line.split_once('{')?;
        let (labels, value) = rest.rsplit_once("} ")?;
        let label = |text: &str| {
            let (name, value) = text.split_once("=\"").unwrap();
            (name.to_owned(), value.trim_end_matches('"').to_owned())
        };
        let labels = labels.split("\",").map(label).collect();
        Some(Series { family: family.to_owned(), labels, value: value.parse().unwrap() })
    });
    series.collect()
}
