//! A page of metrics.

use std::net::SocketAddr;

use super::Line;

/// A page of metrics.
pub(crate) struct Page(String);

impl Page {
    /// Asks the admin interface at `address`.
    pub(crate) async fn of(address: SocketAddr) -> Self {
        let (status, text) = get(address, "/metrics").await;
        assert_eq!(status, 200, "{text}");
        Self(text)
    }

    /// The sum of the series of a family that have all these labels, as in `kind="flood"`.
    pub(crate) fn sum(&self, name: &str, labels: &[&str]) -> u64 {
        let found = self.values(name, labels);
        assert!(!found.is_empty(), "{name} {labels:?} is not in\n{}", self.0);
        found.iter().sum()
    }

    /// The same, and nothing where there are none.
    pub(crate) fn sum_of_any(&self, name: &str, labels: &[&str]) -> u64 {
        self.values(name, labels).iter().sum()
    }

    fn values(&self, name: &str, labels: &[&str]) -> Vec<u64> {
        let of_family = |line: &&str| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
        };
        let series = self.0.lines().filter(of_family);
        let series = series.filter(|line| labels.iter().all(|label| line.contains(label)));
        let value = |line: &str| {
            let value = line.rsplit(' ').next().expect("a line has words");
            value.parse::<f64>().expect("a value is a number") as u64
        };
        series.map(value).collect()
    }
}

/// The status and the text of an answer.
pub(crate) async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut line = Line::to(address).await;
    line.say(format!("GET {path} HTTP/1.1\r\nhost: admin\r\n\r\n")).await;
    let head = line.head().await.expect("the admin interface answers");
    let (body, _) = line.body(&head).await.expect("the answer is whole");
    (head.status(), String::from_utf8_lossy(&body).into_owned())
}
