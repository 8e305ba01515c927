//! Settings from the environment: `ONUS_INBOUND_LISTEN` is `inbound.listen`. They win over the file.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ConfigFile, ProxyConfigError};

/// What the environment says of settings.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// By the path of the setting.
    said: BTreeMap<Vec<String>, Said>,
    unknown: Vec<String>,
}

/// A variable.
#[derive(Clone, Debug)]
struct Said {
    name: String,
    text: String,
    /// Whether the setting is a text, so that `17` is one too.
    is_text: bool,
}

impl Overrides {
    /// Those of this process.
    #[must_use]
    pub fn from_env() -> Self {
        // What is no text is no setting.
        Self::new(std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }))
    }

    /// Those of these variables.
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let settings = settings();
        let mut overrides = Self::default();
        let mut ours: Vec<_> =
            variables.into_iter().filter(|(name, _)| name.starts_with(PREFIX)).collect();
        ours.sort();
        for (name, value) in ours {
            match settings.get(&name) {
                Some((path, is_text)) => {
                    let said = Said { name, text: value, is_text: *is_text };
                    overrides.said.insert(path.clone(), said);
                }
                None if is_of_others(&name) => {}
                None => overrides.unknown.push(name),
            }
        }
        overrides
    }

    /// Variables that look like settings and are none.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.unknown
    }

    /// Reads the text of a file, and takes over what the variables say.
    pub(super) fn read(&self, text: &str) -> Result<ConfigFile, ProxyConfigError> {
        let service = self.said.get(&["service".to_owned()][..]).map(|said| &said.text);
        let file = match service {
            // All else has a default, so a file for many services need not name one.
            Some(name) if !text.lines().any(|line| line.starts_with("service:")) => {
                ConfigFile::parse(&format!("{text}\nservice: {}\n", Value::from(&**name)))?
            }
            Some(_) | None => ConfigFile::parse(text)?,
        };
        let whole = serde_json::to_value(&file).map_err(|error| malformed(&error))?;
        // Two variables may make one part, so what they say is judged together.
        let without = |left_out: Option<&Vec<String>>| {
            let mut whole = whole.clone();
            for (path, said) in self.said.iter().filter(|(path, _)| Some(*path) != left_out) {
                set(&mut whole, path, said.value());
            }
            serde_json::from_value::<ConfigFile>(whole)
        };
        let all = without(None).map(|mut all| {
            all.places = file.places;
            self.said.iter().for_each(|(path, said)| all.places.of_variable(path, &said.name));
            all
        });
        all.map_err(|error| {
            let why = error.to_string();
            let culprit = self.said.iter().find(|(path, _)| without(Some(path)).is_ok());
            match culprit.or_else(|| self.said.first_key_value()) {
                Some((_, Said { name, text, .. })) => {
                    ProxyConfigError::Variable { name: name.clone(), value: text.clone(), why }
                }
                None => ProxyConfigError::Malformed(why),
            }
        })
    }

    /// Where the value at `path` of the file `text` comes from.
    fn source(&self, path: &[String], file: &Value) -> String {
        if let Some(said) = self.said.get(path) {
            return said.name.clone();
        }
        let mut at = file;
        for key in path {
            match at.get(key) {
                Some(value) => at = value,
                None => return "default".to_owned(),
            }
        }
        "file".to_owned()
    }

    /// A file as it is shown, each value with where it comes from.
    pub(super) fn explain(&self, shown: &str, text: &str) -> String {
        let file = serde_saphyr::from_str::<Value>(text).unwrap_or_default();
        let mut explained = String::new();
        let mut path: Vec<(usize, String)> = Vec::new();
        for line in shown.lines() {
            explained.push_str(line);
            let indent = line.len() - line.trim_start().len();
            let entry = line.trim_start();
            if let Some((key, value)) = entry.split_once(':').filter(|_| !entry.starts_with("- ")) {
                path.retain(|(at, _)| *at < indent);
                path.push((indent, key.trim_matches(['"', '\'']).to_owned()));
                let keys: Vec<String> = path.iter().map(|(_, key)| key.clone()).collect();
                let is_list = !value.is_empty() || file_has_list(&file, &keys);
                if is_list {
                    explained.push_str(&format!("  # {}", self.source(&keys, &file)));
                }
            }
            explained.push('\n');
        }
        explained
    }
}

impl Said {
    fn value(&self) -> Value {
        let text = || Value::from(&*self.text);
        if self.is_text {
            text()
        } else {
            serde_saphyr::from_str(&self.text).unwrap_or_else(|_| text())
        }
    }
}

fn file_has_list(file: &Value, path: &[String]) -> bool {
    path.iter().try_fold(file, |at, key| at.get(key)).is_some_and(Value::is_array)
}

fn malformed(error: &serde_json::Error) -> ProxyConfigError {
    ProxyConfigError::Malformed(error.to_string())
}

fn set(at: &mut Value, path: &[String], value: Value) {
    let Some((key, rest)) = path.split_first() else { return };
    if !at.is_object() {
        *at = Value::Object(serde_json::Map::new());
    }
    let Value::Object(fields) = at else { return };
    match rest {
        [] => drop(fields.insert(key.clone(), value)),
        [..] => set(fields.entry(key.clone()).or_insert(Value::Null), rest, value),
    }
}

/// All settings but those of callees, which have names of their own, by their variables; and
/// whether each is a text.
fn settings() -> Settings {
    let schema = schemars::schema_for!(ConfigFile).to_value();
    let mut settings = BTreeMap::new();
    collect(&schema, &schema, &mut Vec::new(), &mut settings);
    settings
}

type Settings = BTreeMap<String, (Vec<String>, bool)>;

fn collect(schema: &Value, at: &Value, path: &mut Vec<String>, settings: &mut Settings) {
    let optional = at.get("anyOf").and_then(|any| any.get(0)).unwrap_or(at);
    let named = optional.get("$ref").and_then(Value::as_str);
    let at =
        named.and_then(|name| schema.pointer(name.trim_start_matches('#'))).unwrap_or(optional);
    let Some(fields) = at.get("properties").and_then(Value::as_object) else {
        let name = path.join("_").replace('-', "_").to_uppercase();
        let is_text = match at.get("type") {
            Some(Value::Array(types)) => types.iter().any(|one| one == "string"),
            Some(one) => one == "string",
            None => at.get("oneOf").is_some(),
        };
        settings.insert(format!("{PREFIX}{name}"), (path.clone(), is_text));
        return;
    };
    for (key, field) in fields.iter().filter(|(key, _)| *key != "callees") {
        path.push(key.clone());
        collect(schema, field, path, settings);
        path.pop();
    }
}

/// Variables of the command's options, and those that Kubernetes makes of services whose names begin
/// with `onus`.
fn is_of_others(name: &str) -> bool {
    let options = ["ONUS_TOKEN", "ONUS_AUTHORITIES", "ONUS_PROMQL"];
    let tests = ["ONUS_PEERS", "ONUS_DATA", "ONUS_ENVOY"];
    options.iter().chain(&tests).any(|own| name.starts_with(own))
        || name == "ONUS_ANALYSIS"
        || name.contains("_SERVICE_")
        || name.ends_with("_PORT")
        || name.contains("_PORT_")
}

const PREFIX: &str = "ONUS_";

#[cfg(test)]
mod tests {
    use super::*;

    fn overrides(variables: &[(&str, &str)]) -> Overrides {
        let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Overrides::new(owned)
    }

    #[test]
    fn a_variable_wins_over_the_file_and_says_so() {
        let text = "service: a\nmode: enforce\nlimits: {requests: 7, idle-timeout: 1m}\n";
        let overrides = overrides(&[
            ("ONUS_SERVICE", "17"),
            ("ONUS_MODE", "enforce 25%"),
            ("ONUS_LIMITS_IDLE_TIMEOUT", "2m"),
            ("ONUS_CORRELATION_IDS", "[a, b]"),
            ("ONUS_INBOUND_FORWARDING_X_FORWARDED", "true"),
            ("ONUS_WORKERS", "2"),
            ("ONUS_ANALYSIS_PORT_7480_TCP_ADDR", "10.0.0.1"),
            ("ONUS_ANALYSIS", "http://onus-analysis:7480"),
            ("ONUS_ANALYSIS_URL", "http://a:7480"),
            ("ONUS_ANALYSIS_INTERVAL", "1s"),
            ("ONUS_ANALYSIS_UR", "http://a:7480"),
            ("ONUS_MODUS", "off"),
            ("HOME", "/"),
        ]);
        assert_eq!(overrides.unknown(), ["ONUS_ANALYSIS_UR", "ONUS_MODUS"]);
        let file = overrides.read(text).unwrap();
        let explained = overrides.explain(&file.show().unwrap(), text);
        for line in [
            "mode: enforce 25%  # ONUS_MODE",
            "  requests: 7  # file",
            "  idle-timeout: 2m  # ONUS_LIMITS_IDLE_TIMEOUT",
            "  header-timeout: 10s  # default",
            "    x-forwarded: true  # ONUS_INBOUND_FORWARDING_X_FORWARDED",
            "  url: http://a:7480  # ONUS_ANALYSIS_URL",
            "  interval: 1s  # ONUS_ANALYSIS_INTERVAL",
            "workers: 2  # ONUS_WORKERS",
        ] {
            assert!(explained.lines().any(|shown| shown == line), "{line} is not in\n{explained}");
        }
        assert_eq!(
            (&*file.service, &file.correlation.ids[..]),
            ("17", &["a".into(), "b".into()][..])
        );
        // What is explained can be used as it is.
        assert_eq!(ConfigFile::parse(&explained).unwrap().show().unwrap(), file.show().unwrap());
    }

    #[test]
    fn a_file_for_many_services_need_not_name_one() {
        let named = overrides(&[("ONUS_SERVICE", "shop/pay")]);
        assert_eq!(named.read("mode: off\n").unwrap().service, "shop/pay");
        assert_eq!(named.read("").unwrap().service, "shop/pay");
        assert!(overrides(&[]).read("mode: off\n").is_err());
    }

    #[test]
    fn a_part_that_the_file_leaves_out_can_be_made() {
        let tls = [("ONUS_INBOUND_TLS_CERTIFICATE", "/c"), ("ONUS_INBOUND_TLS_KEY", "/k")];
        let file = overrides(&tls).read("service: a\n");
        assert_eq!(file.unwrap().inbound.tls.unwrap().key.to_str(), Some("/k"));
    }

    #[test]
    fn a_value_that_is_none_is_named_with_its_variable() {
        for (name, value, why) in [
            ("ONUS_MODE", "loud", "\"loud\" is no mode"),
            ("ONUS_LIMITS_REQUESTS", "many", "invalid type"),
            ("ONUS_INBOUND_LISTEN", "nowhere", "socket address"),
        ] {
            let error = overrides(&[(name, value)]).read("service: a\n").unwrap_err().to_string();
            assert!(error.contains(&format!("{name} is {value:?}")), "{error}");
            assert!(error.contains(why), "{error}");
        }
    }
}
