//! What a filter is told in its `filter_config`, as typed and as meant.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use http::HeaderName;
use onus_agent::wire::{REQUEST_ID, TRACEPARENT};
use onus_agent::{AgentConfig, EdgeClass, Mode, RetryPolicy, parse_mode};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};

/// The configuration of a filter. Filters of one service share what they remember, so the
/// configurations of all of them must be the same.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FilterConfig {
    /// Which filter a Wasm plugin is, `inbound` or `outbound`, where Envoy does not say on which side
    /// of the application its listener is. The filters of the dynamic module have it in their name.
    pub filter: Option<String>,
    /// The name of the service beside this Envoy, `namespace/name` where namespaces exist; what the
    /// environment says unless given.
    pub service: Option<String>,
    /// `off`, `observe` (default), `enforce`, or `enforce 25%`.
    #[serde(deserialize_with = "mode_text")]
    pub mode: String,
    /// A file that switches mode and shield while Envoy runs; only for the dynamic module.
    pub switch_file: Option<String>,
    /// Whether an error whose blamed calls met only silence stays claimed.
    pub silent_claims: bool,
    /// Whether the callers are outside of the trust boundary.
    pub untrusted_callers: bool,
    /// A second name under which claims are read and written.
    pub claim_alias: Option<String>,
    /// Headers that the application hands on and that identify a request where it does not hand on
    /// `tracestate`.
    pub ids: Vec<String>,
    /// What is said about callees, by the name of their cluster.
    pub callees: BTreeMap<String, CalleeConfig>,
}

/// On which side of the application a filter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Before it.
    Inbound,
    /// Behind it.
    Outbound,
}

impl Direction {
    /// The side on which Envoy says that a listener is: 1 before the application, 2 behind it.
    #[must_use]
    pub const fn of_listener(direction: u64) -> Option<Self> {
        match direction {
            1 => Some(Self::Inbound),
            2 => Some(Self::Outbound),
            _ => None,
        }
    }
}

/// What is said about a callee.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    deny_unknown_fields,
    default,
    expecting = "fields such as class"
)]
pub struct CalleeConfig {
    /// The service that the cluster stands for, if that is not in its name.
    pub name: Option<String>,
    /// Whether it is outside of the trust boundary.
    pub untrusted: bool,
    /// Whether this service fails when the callee does: `fail-close` or `fail-open`; learnt unless
    /// given.
    pub class: Option<String>,
    /// What limits Envoy's retries beside its own policy; needs the filter `attempt` in the router.
    pub retry: Option<RetryConfig>,
}

/// What limits the retries that Envoy makes of a call. Envoy's policy says whether it makes any.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    deny_unknown_fields,
    default,
    expecting = "fields such as attempts"
)]
pub struct RetryConfig {
    /// The most attempts, 1 to 10.
    pub attempts: u32,
    /// Retries per hundred calls, 0 to 100.
    pub budget_percent: u32,
    /// Retries per second that are allowed whatever the traffic, 0 to 1,000.
    pub budget_min_per_second: u32,
    /// Whether only calls that ended ok fill the budget, or all calls do.
    pub budget_from_successes: bool,
    /// Whether fewer retries are made where few of them succeed.
    pub gate: bool,
    /// Whether a few suppressed retries are made after all, to measure what suppression costs.
    pub probes: bool,
    /// Whether the head of a gRPC answer waits for the first message or the trailers, so that a
    /// status in trailers can still be retried.
    pub hold_grpc: bool,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            attempts: 3,
            budget_percent: 50,
            budget_min_per_second: 1,
            budget_from_successes: true,
            gate: true,
            probes: true,
            hold_grpc: false,
        }
    }
}

impl RetryConfig {
    fn policy(&self) -> RetryPolicy {
        // The preset from which every combination can be reached. Envoy's own policy says which
        // methods and errors may be sent again.
        let mut policy = RetryPolicy::articles(self.attempts)
            .budget_percent(self.budget_percent)
            .budget_min_per_second(self.budget_min_per_second)
            .backoff(Duration::ZERO, Duration::ZERO)
            .unsafe_methods();
        if self.budget_from_successes {
            policy = policy.budget_from_successes();
        }
        if self.gate {
            policy = policy.gate();
        }
        if !self.probes {
            policy = policy.no_probes();
        }
        policy
    }
}

/// A configuration that cannot be meant.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is not the JSON or YAML of a [`FilterConfig`].
    #[error("{field} is not what is allowed: {source}")]
    Json {
        /// The field, such as `callees.payments.retry.attempts`.
        field: String,
        /// What is wrong with it. It is part of the text, as nobody prints the causes.
        source: serde_json::Error,
    },
    /// A field that means nothing here.
    #[error("{field} is given; allowed is none {why}")]
    Unused {
        /// The field.
        field: String,
        /// For whom it means nothing, and why.
        why: &'static str,
    },
    /// It is something else altogether.
    #[error(
        "filter_config is no JSON object; allowed is a google.protobuf.Struct for the dynamic \
         module, and a google.protobuf.StringValue with JSON in it for either"
    )]
    NoObject,
    /// A field has a value that is not allowed.
    #[error("{field} is {value:?}; allowed is {allowed}")]
    Field {
        /// The field.
        field: String,
        /// What was typed.
        value: String,
        /// What would be right.
        allowed: &'static str,
    },
    /// Nobody says what the service is called.
    #[error(
        "service is not given; allowed is a name such as shop/checkout, here or in the environment \
         variable ONUS_SERVICE"
    )]
    NoService,
    /// The filter is none that there is.
    #[error("{field} is {value:?}; allowed is {allowed}")]
    Filter {
        /// Where it is said.
        field: &'static str,
        /// What was typed.
        value: String,
        /// What would be right.
        allowed: &'static str,
    },
    /// What the agent refuses.
    #[error(transparent)]
    Agent(#[from] onus_agent::ConfigError),
}

impl Default for FilterConfig {
    fn default() -> Self {
        Self {
            filter: None,
            service: None,
            mode: "observe".to_owned(),
            switch_file: None,
            silent_claims: false,
            untrusted_callers: false,
            claim_alias: None,
            ids: vec![TRACEPARENT.to_string(), REQUEST_ID.to_string()],
            callees: BTreeMap::new(),
        }
    }
}

impl FilterConfig {
    /// Reads the JSON form in which Envoy hands a `google.protobuf.Struct` over; nothing at all is
    /// every default.
    ///
    /// # Errors
    ///
    /// The first field that is unknown or of a wrong type.
    pub fn parse(text: &[u8]) -> Result<Self, ConfigError> {
        match text.trim_ascii().first() {
            None => return Ok(Self::default()),
            Some(b'{') => {}
            Some(_) => return Err(ConfigError::NoObject),
        }
        let whole = |source| ConfigError::Json { field: "filter_config".to_owned(), source };
        let mut json = serde_json::Deserializer::from_slice(text);
        let config = serde_path_to_error::deserialize(&mut json).map_err(|error| {
            // Where the text is broken, the path ends before that.
            if !error.inner().is_data() {
                return whole(error.into_inner());
            }
            let field = error.path().to_string();
            ConfigError::Json { field, source: error.into_inner() }
        })?;
        json.end().map_err(whole)?;
        Ok(config)
    }

    /// Checks what a filter of the dynamic module is told.
    ///
    /// # Errors
    ///
    /// What only a plugin is told.
    pub fn for_module(&self) -> Result<(), ConfigError> {
        match &self.filter {
            None => Ok(()),
            Some(_) => {
                Err(unused("filter", "for the module, whose filters have it in filter_name"))
            }
        }
    }

    /// Which filter a plugin is, if the configuration says. What is left is the same for both filters.
    ///
    /// # Errors
    ///
    /// A name of no filter, and what a plugin cannot do.
    pub fn for_plugin(&mut self) -> Result<Option<Direction>, ConfigError> {
        if self.switch_file.is_some() {
            let why = "for a plugin, which reads no files: its configuration is its switch";
            return Err(unused("switch-file", why));
        }
        if self.ids != Self::default().ids {
            return Err(unused("ids", "for a plugin, which finds requests by their token alone"));
        }
        let watched = self.callees.iter().find(|(_, callee)| callee.retry.is_some());
        if let Some((cluster, _)) = watched {
            let field = format!("callees.{cluster}.retry");
            return Err(unused(field, "for a plugin, which has no filter of attempts"));
        }
        let Some(value) = self.filter.take() else { return Ok(None) };
        match value.as_str() {
            "inbound" => Ok(Some(Direction::Inbound)),
            "outbound" => Ok(Some(Direction::Outbound)),
            _ => {
                Err(ConfigError::Filter { field: "filter", value, allowed: "inbound or outbound" })
            }
        }
    }

    /// The configuration of the agent.
    pub(crate) fn agent(&self) -> Result<AgentConfig, ConfigError> {
        let mut agent = AgentConfig::new(self.service.as_ref().ok_or(ConfigError::NoService)?);
        agent.mode = self.mode()?;
        if self.switch_file.as_ref().is_some_and(String::is_empty) {
            return Err(field("switch-file", "", "the path of a file"));
        }
        agent.silent_claims = self.silent_claims;
        agent.untrusted_callers = self.untrusted_callers;
        agent.claim_alias = match &self.claim_alias {
            None => None,
            Some(alias) => Some(header("claim-alias", alias)?),
        };
        for (cluster, callee) in &self.callees {
            if let Some(name) = callee.name.as_ref().filter(|name| !AgentConfig::is_name(name)) {
                let named = format!("callees.{cluster}.name");
                return Err(field(&named, name, "1 to 128 printable ASCII characters"));
            }
            let of_cluster = || crate::callee::of_cluster(cluster).into_owned();
            let name = callee.name.clone().unwrap_or_else(of_cluster);
            if callee.untrusted {
                agent.untrusted(&name);
            }
            if let Some(retry) = &callee.retry {
                agent.retry(&name, retry.policy());
            }
            if let Some(class) = &callee.class {
                agent.override_class(&name, parse_class(cluster, class)?);
            }
        }
        Ok(agent)
    }

    fn mode(&self) -> Result<Mode, ConfigError> {
        const ALLOWED: &str = "off, observe, enforce, or enforce with a share such as 25%";
        parse_mode(&self.mode).ok_or_else(|| field("mode", &self.mode, ALLOWED))
    }

    /// The headers that identify a request.
    pub(crate) fn id_headers(&self) -> Result<Vec<HeaderName>, ConfigError> {
        self.ids.iter().map(|id| header("ids", id)).collect()
    }
}

/// The text of a mode. Envoy's YAML takes a bare `off` for a boolean.
fn mode_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Text;
    impl Visitor<'_> for Text {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("off, observe, enforce, or enforce with a share such as 25%")
        }

        fn visit_str<E>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_bool<E: de::Error>(self, on: bool) -> Result<String, E> {
            match on {
                false => Ok("off".to_owned()),
                true => Err(E::invalid_type(de::Unexpected::Bool(true), &self)),
            }
        }
    }
    deserializer.deserialize_any(Text)
}

fn unused(field: impl Into<String>, why: &'static str) -> ConfigError {
    ConfigError::Unused { field: field.into(), why }
}

fn field(field: &str, value: &str, allowed: &'static str) -> ConfigError {
    ConfigError::Field { field: field.to_owned(), value: value.to_owned(), allowed }
}

fn header(named: &str, text: &str) -> Result<HeaderName, ConfigError> {
    let wrong = |_| field(named, text, "the name of a header");
    HeaderName::from_bytes(text.as_bytes()).map_err(wrong)
}

fn parse_class(cluster: &str, class: &str) -> Result<EdgeClass, ConfigError> {
    [EdgeClass::FailClose, EdgeClass::FailOpen]
        .into_iter()
        .find(|known| known.as_str() == class)
        .ok_or_else(|| field(&format!("callees.{cluster}.class"), class, "fail-close or fail-open"))
}

#[cfg(test)]
mod tests {
    use onus_agent::Timestamp;

    use super::*;
    use crate::hub::Hub;

    fn read(text: &str) -> Result<AgentConfig, ConfigError> {
        let config = FilterConfig::parse(text.as_bytes())?;
        Hub::new().service(config.clone(), 0, Timestamp::ZERO)?;
        config.agent()
    }

    #[test]
    fn a_wrong_configuration_is_refused_with_the_field_and_what_is_allowed() {
        const MODES: &str = "off, observe, enforce, or enforce with a share such as 25%";
        for (text, message) in [
            ("", "service is not given; allowed is a name such as shop/checkout, here or in the environment variable ONUS_SERVICE".to_owned()),
            (r#"{"service":"a","mode":"on"}"#, format!("mode is \"on\"; allowed is {MODES}")),
            (r#"{"service":"a","mode":"enforce 200%"}"#, format!("mode is \"enforce 200%\"; allowed is {MODES}")),
            (r#"{"service":"a","mode":"observe\nshield: on"}"#, format!("mode is \"observe\\nshield: on\"; allowed is {MODES}")),
            (r#"{"service":"a","claim-alias":"no name"}"#, "claim-alias is \"no name\"; allowed is the name of a header".to_owned()),
            (r#"{"service":"a","claim-alias":"x-request-id"}"#, "claim alias \"x-request-id\" is not a name of a mesh's own; allowed is one such as x-mesh-error-claim".to_owned()),
            (r#"{"service":"a","ids":["a b"]}"#, "ids is \"a b\"; allowed is the name of a header".to_owned()),
            (r#"{"service":"a","callees":{"b":{"class":"open"}}}"#, "callees.b.class is \"open\"; allowed is fail-close or fail-open".to_owned()),
            (r#"{"service":"a","switch-file":""}"#, "switch-file is \"\"; allowed is the path of a file".to_owned()),
            (r#"{"service":"a","callees":{"b":{"name":""}}}"#, "callees.b.name is \"\"; allowed is 1 to 128 printable ASCII characters".to_owned()),
            (r#"{"service":"a\tb"}"#, "service name \"a\\tb\" is not 1 to 128 printable ASCII characters".to_owned()),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), message, "{text}");
        }
        for (text, part) in [
            (
                r#"{"service":"a","mode":true}"#,
                "mode is not what is allowed: invalid type: boolean `true`, expected off, observe",
            ),
            (
                r#"{"name":"a"}"#,
                "unknown field `name`, expected one of `filter`, `service`, `mode`",
            ),
            (
                r#"{"callees":{"b":{"x":1}}}"#,
                "unknown field `x`, expected one of `name`, `untrusted`, `class`",
            ),
            (
                r#"{"callees":{"outbound|80||b.shop.svc":{"retry":{"attempts":"3"}}}}"#,
                "callees.outbound|80||b.shop.svc.retry.attempts is not what is allowed: invalid type: \
                 string \"3\", expected u32",
            ),
            (
                r#"{"callees":{"b":"x"}}"#,
                "callees.b is not what is allowed: invalid type: string \"x\", expected fields such as class",
            ),
            (r#"{"ids":["a",5]}"#, "ids[1] is not what is allowed: invalid type: integer `5`"),
            (r#"{"service":"a"} x"#, "filter_config is not what is allowed: trailing characters"),
            (r#"{"service":"a""#, "filter_config is not what is allowed: EOF while parsing"),
            ("service: a", "filter_config is no JSON object; allowed is a google.protobuf.Struct"),
            ("{service: a}", "key must be a string at line 1 column 2"),
        ] {
            let message = read(text).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn what_means_nothing_to_a_host_is_refused_there() {
        let read = |text: &str| FilterConfig::parse(text.as_bytes()).unwrap();
        for (text, plugin, module) in [
            (r#"{"service":"a","ids":["traceparent","x-request-id"]}"#, "", ""),
            (r#"{"filter":"inbound"}"#, "", "filter"),
            (r#"{"filter":"both"}"#, "filter", "filter"),
            (r#"{"switch-file":"/etc/onus/switch"}"#, "switch-file", ""),
            (r#"{"ids":["x-mesh-id"]}"#, "ids", ""),
            (r#"{"callees":{"b":{"retry":{}}}}"#, "callees.b.retry", ""),
            (r#"{"callees":{"b":{"class":"fail-open"}}}"#, "", ""),
        ] {
            let said = |result: Result<(), ConfigError>| {
                let text = result.err().map(|error| error.to_string()).unwrap_or_default();
                text.split(" is ").next().unwrap().to_owned()
            };
            assert_eq!(said(read(text).for_plugin().map(drop)), plugin, "plugin: {text}");
            assert_eq!(said(read(text).for_module()), module, "module: {text}");
        }
    }

    #[test]
    fn limits_on_retries_are_those_of_a_policy_unless_typed() {
        let text = |policy: RetryPolicy| format!("{policy:?}");
        let base =
            |policy: RetryPolicy| policy.backoff(Duration::ZERO, Duration::ZERO).unsafe_methods();
        for (typed, meant) in [
            ("{}", RetryPolicy::recommended()),
            (r#"{"attempts":2}"#, RetryPolicy::attempts(2)),
            (
                r#"{"budget-percent":10,"budget-from-successes":false,"gate":false}"#,
                RetryPolicy::articles(3),
            ),
            (
                r#"{"gate":false}"#,
                RetryPolicy::articles(3).budget_percent(50).budget_from_successes(),
            ),
            (
                r#"{"budget-from-successes":false}"#,
                RetryPolicy::articles(3).budget_percent(50).gate(),
            ),
            (r#"{"probes":false}"#, RetryPolicy::recommended().no_probes()),
        ] {
            let retry: RetryConfig = serde_json::from_str(typed).unwrap();
            assert_eq!(text(retry.policy()), text(base(meant)), "{typed}");
        }
    }

    #[test]
    fn what_is_typed_is_what_is_meant() {
        let read = |text: &str| read(text).unwrap();
        let plain = read(r#"{"service":"a"}"#);
        assert_eq!((plain.mode, plain.silent_claims), (Mode::Observe, false));
        assert_eq!(read(r#"{"service":"a","mode":false}"#).mode, Mode::Off);
        assert_eq!(read(r#"{"service":"a","mode":"off"}"#).mode, Mode::Off);
        assert_eq!(read(r#"{"service":"a","mode":"enforce"}"#).mode, Mode::ENFORCE);
        let all = read(
            r#"{"service":"a","silent-claims":true,"untrusted-callers":true,"claim-alias":"x-mesh-claim"}"#,
        );
        assert!(all.silent_claims && all.untrusted_callers);
        assert_eq!(all.claim_alias.as_ref().map(HeaderName::as_str), Some("x-mesh-claim"));
    }
}
