//! What is typed for a proxy.

use std::error::Error;

use onus_proxy::{ConfigFile, ProxyConfig};

/// What is said of a configuration, with its cause.
fn refused(yaml: &str) -> String {
    let error = ConfigFile::parse(yaml).and_then(ProxyConfig::new).unwrap_err();
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[test]
fn the_example_is_sound_and_says_the_defaults() {
    let example = ConfigFile::parse(ConfigFile::example()).unwrap();
    ProxyConfig::new(example.clone()).unwrap();
    let mut shown = example;
    shown.callees.clear();
    shown.switch_file = None;
    shown.inbound.routes.clear();
    let least = ConfigFile::parse("service: shop/checkout").unwrap();
    assert_eq!(shown.show().unwrap(), least.show().unwrap());
}

#[test]
fn what_is_shown_is_read_as_the_same() {
    let example = ConfigFile::parse(ConfigFile::example()).unwrap();
    let shown = example.show().unwrap();
    let again = ConfigFile::parse(&shown).unwrap();
    assert_eq!(again.show().unwrap(), shown);
    ProxyConfig::new(again).unwrap();
}

#[test]
fn an_analysis_has_the_defaults_that_the_example_says() {
    let (_, block) = ConfigFile::example().split_once("# analysis:\n").unwrap();
    let lines = block.lines().map_while(|line| line.strip_prefix('#'));
    let said: String =
        lines.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect();
    let example = ConfigFile::parse(&format!("service: a\nanalysis:\n{said}")).unwrap();
    let mut least = ConfigFile::parse("service: a\nanalysis: {url: \"http://a:7480\"}").unwrap();
    ProxyConfig::new(least.clone()).unwrap();
    let (example, least) = (example.analysis.unwrap(), least.analysis.take().unwrap());
    assert_eq!((example.interval, example.staleness), (least.interval, least.staleness));
    assert_eq!((least.token_file, least.state_file), (None, None));
}

#[test]
fn every_setting_of_the_schema_is_in_the_example() {
    let schema: serde_json::Value = serde_json::from_str(&ConfigFile::schema()).unwrap();
    let mut settings = Vec::new();
    collect(&schema, &mut settings);
    let missing: Vec<_> = settings
        .into_iter()
        .filter(|setting| !ConfigFile::example().contains(&format!("{setting}:")))
        // The example declares a layer that is known.
        .filter(|setting| setting != "claim-alias")
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_schema_for_editors_is_that_of_the_file() {
    let shipped = include_str!("../../../../docs/onus.schema.json");
    assert_eq!(
        shipped,
        ConfigFile::schema(),
        "write it anew: onus config schema > docs/onus.schema.json"
    );
}

/// The names of all properties.
fn collect(schema: &serde_json::Value, settings: &mut Vec<String>) {
    match schema {
        serde_json::Value::Object(fields) => {
            if let Some(serde_json::Value::Object(properties)) = fields.get("properties") {
                settings.extend(properties.keys().cloned());
            }
            fields.values().for_each(|value| collect(value, settings));
        }
        serde_json::Value::Array(values) => {
            values.iter().for_each(|value| collect(value, settings))
        }
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_) => {}
    }
}

#[test]
fn a_mistake_is_shown_where_it_is() {
    let says = refused("service: a\nmode: observe\nlimits:\n  header-timeout: soon\n");
    for part in [
        "line 4",
        "column 19",
        "header-timeout: soon",
        "^",
        "\"soon\" is no span of time; one like 25ms, 8s or 15m",
    ] {
        assert!(says.contains(part), "{part} is not in\n{says}");
    }
    let says = refused("service: a\nmodus: observe\n");
    for part in ["line 2", "unknown field", "modus", "mode"] {
        assert!(says.contains(part), "{part} is not in\n{says}");
    }
}

#[test]
fn what_makes_no_sense_is_told_with_its_line() {
    let callee = "service: a\ncallees:\n  shop/b.c:\n    address: b:80\n";
    for (yaml, says) in [
        ("service: a\n\nworkers: 0\n".to_owned(), "workers is \"0\"; allowed is 1 to 256 (line 3)"),
        ("service: a\nlimits:\n  requests: 0\n".to_owned(), "allowed is 1 to 1000000 (line 3)"),
        (format!("{callee}    retry:\n      attempts: 0\n"), "allowed is 1 to 10 (line 5)"),
        (
            format!("{callee}    procedures:\n      POST: {{attempts: 0}}\n"),
            "attempts is 0; allowed is 1 to 10 (line 3)",
        ),
        (format!("{callee}    retries:\n      made-by: below\n"), "as `like` (line 5)"),
        (format!("{callee}    tls: {{ca: /nowhere}}\n"), "shop/b.c.tls (line 5): read /nowhere"),
    ] {
        let said = refused(&yaml);
        assert!(said.contains(says), "{says}\nis not in\n{said}");
    }
}

#[test]
fn what_makes_no_sense_is_named_with_what_would() {
    let with = |callee: &str| format!("service: a\ncallees: {{b: {{{callee}}}}}");
    let at = "address: \"b:80\", ";
    let analysis = |more| format!("service: a\nanalysis: {{url: \"http://a:7480\", {more}}}");
    for (yaml, says) in [
        (
            "service: \"\"".to_owned(),
            "service name \"\" is not 1 to 128 printable ASCII characters",
        ),
        (with("address: b"), "callees.b.address is \"b\"; allowed is one name with a port"),
        (with("address: [b:80, c:80]"), "callees.b.address is \"b:80, c:80\"; allowed is one name"),
        (
            with(&format!("{at}retry: {{attempts: 0}}")),
            "use the configuration: retry policy for b: attempts is 0; allowed is 1 to 10",
        ),
        (
            with(&format!("{at}routes: [\"a/{{x}}\"]")),
            "callees.b.routes is \"a/{x}\"; allowed is a template such as /pay/{id}",
        ),
        (
            with(&format!("{at}retry: {{attempts: 2, no-budget: true, budget: {{percent: 1}}}}")),
            "callees.b.retry.no-budget is \"true\"; allowed is one of budget and no-budget",
        ),
        (
            with(&format!(
                "{at}retries: {{made-by: below, like: istio-default}}, retry: {{attempts: 2}}"
            )),
            "a retry policy for b, whose retries are declared to be made elsewhere",
        ),
        (
            with(&format!("{at}retries: {{made-by: below}}")),
            "callees.b.retries.attempts is missing; allowed is 2 to 100, or a known layer",
        ),
        (
            with(&format!("{at}routes: [\"/a/{{x}}\", \"/a/{{y}}\"]")),
            "callees.b.routes is \"/a/{y}\"; allowed is a template such as /pay/{id}",
        ),
        (
            "service: a\ninbound: {app: \"127.0.0.1:7460\"}".to_owned(),
            "inbound.app is \"127.0.0.1:7460\"; allowed is any address but those where this proxy",
        ),
        (
            with("address: \"localhost:7461\""),
            "callees.b.address is \"127.0.0.1:7461\"; allowed is any address but those where this",
        ),
        (
            "service: a\noutbound: {forwarding: {trusted: [\"10.0.0.0/40\"]}}".to_owned(),
            "outbound.forwarding.trusted is \"10.0.0.0/40\"; allowed is a network such as",
        ),
        (
            "service: a\nanalysis: {url: \"onus-analysis\"}".to_owned(),
            "analysis.url is \"onus-analysis\"; allowed is http:// with a host and a port",
        ),
        (
            "service: a\nanalysis: {url: \"https://a:7480\"}".to_owned(),
            "analysis.url is \"https://a:7480\"; allowed is http:// with a host and a port, such as \
             http://onus-analysis:7480, or https:// with analysis.ca",
        ),
        (
            analysis("token-file: /nowhere/token"),
            "analysis.token-file is /nowhere/token, which cannot be read (line 2): No such file",
        ),
        (
            analysis("token-file: /dev/null"),
            "analysis.token-file is \"/dev/null\"; allowed is a file with a token of printable ASCII",
        ),
        (analysis("ca: /nowhere/ca"), "analysis.ca (line 2): /nowhere/ca: "),
        (
            analysis("certificate: /nowhere/crt"),
            "analysis.key is missing; allowed is a certificate and its key, or none of them",
        ),
        (
            analysis("certificate: /nowhere/crt, key: /nowhere/key"),
            "analysis.certificate (line 2): /nowhere/crt",
        ),
        (analysis("interval: 100ms"), "analysis.interval is \"100ms\"; allowed is 1s to 5m"),
        (analysis("staleness: 0s"), "analysis.staleness is \"0ms\"; allowed is 1s to 720h"),
        ("service: a\nworkers: 0".to_owned(), "workers is \"0\"; allowed is 1 to 256"),
        (
            "service: a\nlimits: {headers: 1}".to_owned(),
            "limits.headers is \"1\"; allowed is 10 to 10000",
        ),
        (
            "service: a\nlimits: {idle-timeout: 1ms}".to_owned(),
            "limits.idle-timeout is \"1ms\"; allowed is 10ms to 24h",
        ),
        (
            "service: a\ncorrelation: {ids: [\"a b\"]}".to_owned(),
            "correlation.ids is \"a b\"; allowed is the name of a header",
        ),
    ] {
        let said = refused(&yaml);
        assert!(said.contains(says), "{says}\nis not in\n{said}");
    }
}
