//! What is meant by a configuration file: every value in its range, and sound beside the others.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use onus_promql::Endpoint;

use crate::access::{Grant, Proof, Role};
use crate::config::{AnalysisConfig, Limits, PromqlConfig};
use crate::file::{
    AnalysisFile, ConfigError, GrantFile, LimitsFile, PromqlFile, ShardFile, TlsFile,
};
use crate::shard::Shard;
use crate::tls::TlsFiles;
use crate::typed::{At, Span};

impl AnalysisConfig {
    /// Reads a configuration file.
    ///
    /// # Errors
    ///
    /// What is wrong with it, where, and what would be right.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        Self::of(AnalysisFile::read(path)?, path)
    }

    /// What is meant by a file; `path` is for messages.
    ///
    /// # Errors
    ///
    /// What is wrong with it, where, and what would be right.
    pub fn of(file: AnalysisFile, path: &Path) -> Result<Self, ConfigError> {
        let checked = Checked { path };
        checked.guarded(&file)?;
        let tls = file.tls.map(|TlsFile { certificate, key, client_authorities }| TlsFiles {
            certificate,
            key,
            client_authorities,
        });
        let certifies = tls.as_ref().is_some_and(|tls| tls.client_authorities.is_some());
        let grants = file.grants.iter().map(|grant| checked.grant(grant, certifies));
        Ok(Self {
            listen: file.listen,
            data: file.data,
            minute: checked.time("minute", file.minute, SECOND..=HOUR, "1s to 1h")?,
            grants: grants.collect::<Result<_, _>>()?,
            open: file.open,
            overrides: file.overrides,
            tls,
            promql: file.promql.map(|typed| checked.promql(typed)).transpose()?,
            shard: file.shard.map(|typed| checked.shard(typed)).transpose()?,
            limits: checked.limits(&file.limits)?,
        })
    }
}

/// Takes over values, each in its range.
struct Checked<'a> {
    path: &'a Path,
}

impl Checked<'_> {
    /// Refuses what a server refuses when it is to listen, while nobody needs it yet.
    fn guarded(&self, file: &AnalysisFile) -> Result<(), ConfigError> {
        if file.open || !file.grants.is_empty() || file.listen.ip().is_loopback() {
            return Ok(());
        }
        let message = format!(
            "listen is {}, which is no address of loopback, and there are no `grants`; add grants, \
             or say `open: true`",
            file.listen
        );
        Err(ConfigError::Text { path: self.path.to_owned(), message })
    }

    fn limits(&self, typed: &LimitsFile) -> Result<Limits, ConfigError> {
        let (windows, silent) = (typed.windows, typed.silent_edges);
        let year = 366 * DAY;
        Ok(Limits {
            edges: self.number("limits.edges", typed.edges)?,
            edges_per_service: self.number("limits.edges-per-service", typed.edges_per_service)?,
            instances: self.number("limits.instances", typed.instances)?,
            report_rows: self.number("limits.report-rows", typed.report_rows)?,
            report_bytes: self.number("limits.report-bytes", typed.report_bytes)?,
            waiting: self.number("limits.waiting", typed.waiting)?,
            windows: self.time("limits.windows", windows, HOUR..=year, "1h to 366d")?,
            silent_edges: self.time("limits.silent-edges", silent, DAY..=year, "1d to 366d")?,
        })
    }

    fn number(&self, field: &str, typed: At<usize>) -> Result<usize, ConfigError> {
        if !(1..=COUNT_MAX).contains(&typed.value) {
            return Err(self.wrong(field, &typed, typed.value, "1 to 100000000"));
        }
        Ok(typed.value)
    }

    fn time(
        &self,
        field: &str,
        typed: At<Span>,
        range: RangeInclusive<Duration>,
        allowed: &str,
    ) -> Result<Duration, ConfigError> {
        let At { value: Span(time), .. } = typed;
        if !range.contains(&time) {
            return Err(self.wrong(field, &typed, typed.value, allowed));
        }
        Ok(time)
    }

    fn promql(&self, typed: PromqlFile) -> Result<PromqlConfig, ConfigError> {
        let PromqlFile { url, token_file, delay, recorded } = typed;
        let allowed = "an address such as http://prometheus:9090";
        let endpoint = Endpoint::new(&url.value)
            .map_err(|_| self.wrong("promql.url", &url, format!("{:?}", url.value), allowed))?;
        let delay = self.time("promql.delay", delay, Duration::ZERO..=HOUR, "0s to 1h")?;
        Ok(PromqlConfig { endpoint, token_file, delay, recorded })
    }

    fn shard(&self, typed: ShardFile) -> Result<Shard, ConfigError> {
        let ShardFile { addresses, index } = typed;
        if index.value >= addresses.len() {
            let typed = format!("{} of {} addresses", index.value, addresses.len());
            return Err(self.wrong("shard.index", &index, typed, "0 to their number less one"));
        }
        Ok(Shard { addresses, index: index.value })
    }

    fn grant(&self, typed: &At<GrantFile>, certifies: bool) -> Result<Grant, ConfigError> {
        let GrantFile { name, role, services, token_file, certificate } = typed.value.clone();
        let of = format!("that of {name:?}");
        let proof = match (token_file, certificate) {
            (Some(path), None) => Proof::TokenFile(path),
            (None, Some(name)) if certifies => Proof::Certificate(name),
            (None, Some(_)) => {
                let allowed = "token-file where there is no tls.client-authorities";
                return Err(self.wrong("grants.certificate", typed, of, allowed));
            }
            (None, None) | (Some(_), Some(_)) => {
                let allowed = "one of token-file and certificate";
                return Err(self.wrong("grants", typed, of, allowed));
            }
        };
        let role = Role::from(role);
        if (role == Role::Agent) == services.is_empty() {
            let allowed = "at least one for an agent, none for others";
            return Err(self.wrong("grants.services", typed, of, allowed));
        }
        Ok(Grant { name, role, services, proof })
    }

    fn wrong<T>(
        &self,
        field: &str,
        typed: &At<T>,
        value: impl std::fmt::Display,
        allowed: &str,
    ) -> ConfigError {
        let message = format!("{field} is {value}; allowed is {allowed}");
        ConfigError::at(self.path, typed.place, message)
    }
}

/// More rows than fit into the memory of any machine.
const COUNT_MAX: usize = 100_000_000;
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AnalysisConfig, ConfigError> {
        let path = Path::new("onus.yaml");
        AnalysisFile::parse(text, path).and_then(|file| AnalysisConfig::of(file, path))
    }

    #[test]
    fn a_file_has_defaults_but_for_its_folder() {
        let config = read("data: /var/lib/onus").unwrap();
        assert_eq!(config.listen.to_string(), "127.0.0.1:7480");
        assert_eq!(config.limits, Limits::default());
        let text = "data: x\nopen: true\nlisten: 0.0.0.0:0\nminute: 5s\nlimits:\n  edges: 7\n  windows: 2d\n";
        let config = read(text).unwrap();
        assert_eq!(config.listen.port(), 0);
        assert_eq!((config.minute.as_secs(), config.limits.edges), (5, 7));
        assert_eq!(config.limits.windows.as_secs(), 2 * 86_400);
    }

    #[test]
    fn a_mistake_is_told_with_its_place_and_what_would_be_right() {
        for (text, says) in [
            ("", "onus.yaml:1:1: "),
            ("listen: 127.0.0.1:0\n", "onus.yaml:1:1: missing field `data`"),
            ("data: x\nport: 1\n", "onus.yaml:2:1: unknown field `port`"),
            ("data: x\nlisten: here\n", "onus.yaml:2:9: invalid socket address"),
            (
                "data: x\nlisten: 0.0.0.0:1\n",
                "onus.yaml: listen is 0.0.0.0:1, which is no address of loopback",
            ),
            ("data: x\nminute: 2w\n", "onus.yaml:2:9: \"2w\" is no span of time; one like 10s"),
            ("data: x\nminute: 100ms\n", "onus.yaml:2:9: minute is 100ms; allowed is 1s to 1h"),
            (
                "data: x\nlimits: {edges: 0}\n",
                "onus.yaml:2:17: limits.edges is 0; allowed is 1 to 100000000",
            ),
            ("data: x\nlimits:\n  edges: many\n", "onus.yaml:3:10: "),
            (
                "data: x\nlimits:\n  silent-edges: 2h\n",
                "onus.yaml:3:17: limits.silent-edges is 2h; allowed is 1d to 366d",
            ),
            (
                "data: x\npromql: {url: ftp://p}\n",
                "onus.yaml:2:15: promql.url is \"ftp://p\"; allowed is an address such as",
            ),
            (
                "data: x\nshard: {addresses: [a, b], index: 2}\n",
                "onus.yaml:2:35: shard.index is 2 of 2 addresses; allowed is 0 to their number",
            ),
            (
                "data: x\ngrants:\n- {name: a, role: boss, token-file: t}\n",
                "onus.yaml:3:19: unknown variant `boss`, expected one of",
            ),
            (
                "data: x\ngrants:\n- {name: a, role: viewer}\n",
                "onus.yaml:3:3: grants is that of \"a\"; allowed is one of token-file and cert",
            ),
            (
                "data: x\ngrants:\n- {name: a, role: agent, token-file: t}\n",
                "onus.yaml:3:3: grants.services is that of \"a\"; allowed is at least one",
            ),
            (
                "data: x\ngrants:\n- {name: a, role: viewer, certificate: a.b}\n",
                "onus.yaml:3:3: grants.certificate is that of \"a\"; allowed is token-file",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("understand {says}")), "{text:?}: {error}");
        }
    }
}
