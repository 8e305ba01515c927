//! The scenarios that come with the command.

/// The text of a shipped scenario, by name.
#[must_use]
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Every shipped scenario: its name and text.
pub const SHIPPED: &[(&str, &str)] = &[("chain", include_str!("../../../scenarios/chain.yaml"))];
