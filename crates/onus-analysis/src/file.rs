//! The configuration file: YAML, every value with its range.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use onus_promql::Endpoint;
use serde::Deserialize;

use crate::access::{Grant, Proof, Role};
use crate::config::{AnalysisConfig, Limits, PromqlConfig};
use crate::shard::Shard;
use crate::tls::TlsFiles;

/// The file as it is typed. Only `data` must be there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct AnalysisFile {
    /// Where it listens, `127.0.0.1:7480` by default; port 0 for any.
    #[serde(default)]
    listen: Option<SocketAddr>,
    /// The folder of the store.
    data: PathBuf,
    /// How often counts become evidence, `1m` by default.
    #[serde(default)]
    minute: Option<String>,
    /// Who may do what. Without any, only an address of loopback is listened on.
    #[serde(default)]
    grants: Vec<GrantFile>,
    /// Lets everybody in who reaches the address, for a mesh that guards it by other means.
    #[serde(default)]
    open: bool,
    /// The server's certificate; without it, it talks without TLS.
    #[serde(default)]
    tls: Option<TlsFile>,
    /// The PromQL store that evidence is read from, where agents are scraped.
    #[serde(default)]
    promql: Option<PromqlFile>,
    /// Which of several analyses this one is.
    #[serde(default)]
    shard: Option<ShardFile>,
    /// The bounds of what is remembered.
    #[serde(default)]
    limits: LimitsFile,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TlsFile {
    /// The certificate chain, PEM.
    certificate: PathBuf,
    /// Its key, PEM.
    key: PathBuf,
    /// The authorities that sign certificates of clients, PEM.
    #[serde(default)]
    client_authorities: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PromqlFile {
    /// Its address.
    url: String,
    /// The file with the token for it.
    #[serde(default)]
    token_file: Option<PathBuf>,
    /// How long after its end a minute is read, `1m` by default.
    #[serde(default)]
    delay: Option<String>,
    /// Whether the recording rules of docs/prometheus are in force.
    #[serde(default)]
    recorded: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ShardFile {
    /// The addresses of all of them, in the same order everywhere.
    addresses: Vec<String>,
    /// Which of them is this one, from 0.
    index: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct GrantFile {
    /// Who it is, for the audit log.
    name: String,
    /// `agent`, `viewer`, `operator` or `admin`.
    role: String,
    /// The services that an agent speaks for: names, `prefix/*`, or `*`.
    #[serde(default)]
    services: Vec<String>,
    /// The file with the token.
    #[serde(default)]
    token_file: Option<PathBuf>,
    /// A name in the client's certificate.
    #[serde(default)]
    certificate: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct LimitsFile {
    edges: Option<usize>,
    edges_per_service: Option<usize>,
    instances: Option<usize>,
    report_rows: Option<usize>,
    report_bytes: Option<usize>,
    waiting: Option<usize>,
    windows: Option<String>,
    silent_edges: Option<String>,
}

/// A configuration that cannot be meant.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no configuration.
    #[error("understand {path}: {message}")]
    Text {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        message: String,
    },
    /// A value is out of range.
    #[error("understand {path}: {field} is {value}; allowed is {allowed}")]
    Value {
        /// The file.
        path: PathBuf,
        /// The value's name.
        field: &'static str,
        /// What was typed.
        value: String,
        /// What would be right.
        allowed: &'static str,
    },
}

impl AnalysisConfig {
    /// Reads a configuration file.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and what would be right.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// Reads the text of a configuration file; `path` is for messages.
    ///
    /// # Errors
    ///
    /// What is wrong with it, and what would be right.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let file: AnalysisFile = serde_saphyr::from_str(text).map_err(|error| {
            ConfigError::Text { path: path.to_owned(), message: error.to_string() }
        })?;
        let checked = Checked { path };
        let mut config = Self::new(file.data);
        if let Some(listen) = file.listen {
            config.listen = listen;
        }
        config.open = file.open;
        for grant in file.grants {
            config.grants.push(checked.grant(grant)?);
        }
        let second = Duration::from_secs(1);
        let hour = 3600 * second;
        let day = 24 * hour;
        checked.time(&mut config.minute, "minute", file.minute, second..=hour, "1s to 1h")?;
        config.tls = file.tls.map(|TlsFile { certificate, key, client_authorities }| TlsFiles {
            certificate,
            key,
            client_authorities,
        });
        let certified = |grant: &Grant| matches!(grant.proof, Proof::Certificate(_));
        let knows = config.tls.as_ref().is_some_and(|tls| tls.client_authorities.is_some());
        if !knows && config.grants.iter().any(certified) {
            let allowed = "token-file, where tls.client-authorities is not said";
            return Err(checked.wrong("grants", "one by certificate".to_owned(), allowed));
        }
        if let Some(typed) = file.promql {
            config.promql = Some(checked.promql(typed)?);
        }
        if let Some(ShardFile { addresses, index }) = file.shard {
            if index >= addresses.len() {
                let typed = format!("{index} of {} addresses", addresses.len());
                return Err(checked.wrong("shard.index", typed, "0 to their number less one"));
            }
            config.shard = Some(Shard { addresses, index });
        }
        let Limits {
            edges,
            edges_per_service,
            instances,
            report_rows,
            report_bytes,
            waiting,
            windows,
            silent_edges,
        } = &mut config.limits;
        let typed = file.limits;
        for (place, field, value) in [
            (edges, "limits.edges", typed.edges),
            (edges_per_service, "limits.edges-per-service", typed.edges_per_service),
            (instances, "limits.instances", typed.instances),
            (report_rows, "limits.report-rows", typed.report_rows),
            (report_bytes, "limits.report-bytes", typed.report_bytes),
            (waiting, "limits.waiting", typed.waiting),
        ] {
            checked.number(place, field, value)?;
        }
        checked.time(windows, "limits.windows", typed.windows, hour..=366 * day, "1h to 366d")?;
        checked.time(
            silent_edges,
            "limits.silent-edges",
            typed.silent_edges,
            day..=366 * day,
            "1d to 366d",
        )?;
        Ok(config)
    }
}

/// Takes over values, each in its range.
struct Checked<'a> {
    path: &'a Path,
}

impl Checked<'_> {
    fn number(
        &self,
        place: &mut usize,
        field: &'static str,
        value: Option<usize>,
    ) -> Result<(), ConfigError> {
        let Some(value) = value else { return Ok(()) };
        if !(1..=COUNT_MAX).contains(&value) {
            return Err(self.wrong(field, value.to_string(), "1 to 100000000"));
        }
        *place = value;
        Ok(())
    }

    fn time(
        &self,
        place: &mut Duration,
        field: &'static str,
        value: Option<String>,
        range: std::ops::RangeInclusive<Duration>,
        allowed: &'static str,
    ) -> Result<(), ConfigError> {
        let Some(value) = value else { return Ok(()) };
        match duration(&value).filter(|time| range.contains(time)) {
            Some(time) => *place = time,
            None => return Err(self.wrong(field, format!("{value:?}"), allowed)),
        }
        Ok(())
    }

    fn promql(&self, typed: PromqlFile) -> Result<PromqlConfig, ConfigError> {
        let PromqlFile { url, token_file, delay, recorded } = typed;
        let allowed = "an address such as http://prometheus:9090";
        let endpoint = Endpoint::new(&url)
            .map_err(|_| self.wrong("promql.url", format!("{url:?}"), allowed))?;
        let delay_default = Duration::from_secs(60);
        let mut config = PromqlConfig { endpoint, token_file, delay: delay_default, recorded };
        let range = Duration::ZERO..=Duration::from_secs(3600);
        self.time(&mut config.delay, "promql.delay", delay, range, "0s to 1h")?;
        Ok(config)
    }

    fn grant(&self, typed: GrantFile) -> Result<Grant, ConfigError> {
        let GrantFile { name, role, services, token_file, certificate } = typed;
        let Some(role) = Role::named(&role) else {
            let allowed = "agent, viewer, operator or admin";
            return Err(self.wrong("grants.role", format!("{role:?}"), allowed));
        };
        let proof = match (token_file, certificate) {
            (Some(path), None) => Proof::TokenFile(path),
            (None, Some(name)) => Proof::Certificate(name),
            (None, None) | (Some(_), Some(_)) => {
                let allowed = "one of token-file and certificate";
                return Err(self.wrong("grants", format!("that of {name:?}"), allowed));
            }
        };
        if (role == Role::Agent) == services.is_empty() {
            let allowed = "at least one for an agent, none for others";
            return Err(self.wrong("grants.services", format!("{services:?}"), allowed));
        }
        Ok(Grant { name, role, services, proof })
    }

    fn wrong(&self, field: &'static str, value: String, allowed: &'static str) -> ConfigError {
        ConfigError::Value { path: self.path.to_owned(), field, value, allowed }
    }
}

/// More rows than fit into the memory of any machine.
const COUNT_MAX: usize = 100_000_000;

/// A time such as `25ms`, `10s`, `15m`, `2h` or `7d`.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let unit = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit);
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(millis)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_defaults_but_for_its_folder() {
        let parse = |text| AnalysisConfig::parse(text, Path::new("onus.yaml"));
        let config = parse("data: /var/lib/onus").unwrap();
        assert_eq!(config.listen.to_string(), "127.0.0.1:7480");
        assert_eq!(config.limits, Limits::default());
        let text = "data: x\nlisten: 0.0.0.0:0\nminute: 5s\nlimits:\n  edges: 7\n  windows: 2d\n";
        let config = parse(text).unwrap();
        assert_eq!(config.listen.port(), 0);
        assert_eq!((config.minute.as_secs(), config.limits.edges), (5, 7));
        assert_eq!(config.limits.windows.as_secs(), 2 * 86_400);
    }

    #[test]
    fn a_wrong_value_is_named_with_what_would_be_right() {
        for (text, begins) in [
            ("", "understand onus.yaml: "),
            ("data: x\nport: 1\n", "understand onus.yaml: "),
            ("data: x\nminute: 2\n", "understand onus.yaml: "),
            (
                "data: x\nminute: 2w\n",
                "understand onus.yaml: minute is \"2w\"; allowed is 1s to 1h",
            ),
            (
                "data: x\nminute: 100ms\n",
                "understand onus.yaml: minute is \"100ms\"; allowed is 1s to 1h",
            ),
            (
                "data: x\nlimits: {edges: 0}\n",
                "understand onus.yaml: limits.edges is 0; allowed is 1 to 100000000",
            ),
        ] {
            let error = AnalysisConfig::parse(text, Path::new("onus.yaml")).unwrap_err();
            assert!(error.to_string().starts_with(begins), "{text:?}: {error}");
        }
    }
}
