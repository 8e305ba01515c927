//! What a service has counted, read as an operator reads it.

use onus::Onus;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

/// The sum of a family's series that have all these labels.
pub(crate) fn counted(onus: &Onus, family: &str, labels: &[(&str, &str)]) -> u64 {
    let mut registry = Registry::default();
    onus.register_metrics(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    assert!(text.contains(&format!("# TYPE {} ", family.trim_end_matches("_total"))), "{family}");
    let has = |line: &&str| {
        labels.iter().all(|(name, value)| line.contains(&format!("{name}=\"{value}\"")))
    };
    let series = text.lines().filter(|line| line.starts_with(&format!("{family}{{"))).filter(has);
    series.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}
