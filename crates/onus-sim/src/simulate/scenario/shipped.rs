//! The scenarios that come with the command.

/// The text of a shipped scenario, by name.
#[must_use]
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Every shipped scenario: its name and text.
pub const SHIPPED: &[(&str, &str)] = &[
    ("chain", include_str!("../../../scenarios/chain.yaml")),
    ("availability", include_str!("../../../scenarios/availability.yaml")),
    ("no-claims", include_str!("../../../scenarios/no-claims.yaml")),
    ("no-claims-twice", include_str!("../../../scenarios/no-claims-twice.yaml")),
    ("context-loss", include_str!("../../../scenarios/context-loss.yaml")),
    ("at-least-once", include_str!("../../../scenarios/at-least-once.yaml")),
    ("coincidence", include_str!("../../../scenarios/coincidence.yaml")),
    ("independent", include_str!("../../../scenarios/independent.yaml")),
    ("flaky-leaf", include_str!("../../../scenarios/flaky-leaf.yaml")),
    ("retries-help", include_str!("../../../scenarios/retries-help.yaml")),
    ("hot-shard", include_str!("../../../scenarios/hot-shard.yaml")),
    ("large-fleet", include_str!("../../../scenarios/large-fleet.yaml")),
    ("overload", include_str!("../../../scenarios/overload.yaml")),
    ("hang", include_str!("../../../scenarios/hang.yaml")),
    ("hang-hot-keys", include_str!("../../../scenarios/hang-hot-keys.yaml")),
    ("sick-instance", include_str!("../../../scenarios/sick-instance.yaml")),
    ("deploy", include_str!("../../../scenarios/deploy.yaml")),
    ("incident-2025-11-18", include_str!("../../../scenarios/incident-2025-11-18.yaml")),
    ("eager-client", include_str!("../../../scenarios/eager-client.yaml")),
];
