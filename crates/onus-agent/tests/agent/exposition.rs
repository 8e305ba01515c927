//! What a scrape of the agent's metrics returns.

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

/// The text of a scrape.
pub(crate) struct Exposition(pub(crate) String);

impl Exposition {
    pub(crate) fn of(registry: &Registry) -> Self {
        let mut page = String::new();
        text::encode(&mut page, registry).unwrap();
        Self(page)
    }

    /// The sum of the series of this name which have all these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.series(name, labels).iter().map(|(_, value)| value).sum()
    }

    /// The labels and values of the series of this name which have all these labels.
    pub(crate) fn series(&self, name: &str, labels: &[(&str, &str)]) -> Vec<(&str, f64)> {
        let found = self.samples().filter(|(own, text, _)| {
            let has = |(key, value): &(&str, &str)| text.contains(&format!("{key}=\"{value}\""));
            *own == name && labels.iter().all(has)
        });
        found.map(|(_, labels, value)| (labels, value)).collect()
    }

    /// Name, labels in braces and value of each sample.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (&str, &str, f64)> {
        let lines = self.0.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_at(series.find('{').unwrap_or(series.len()));
            (name, labels, value.parse().unwrap())
        })
    }
}
