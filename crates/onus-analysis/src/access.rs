//! Who may do what: tokens with roles, and the services that an agent speaks for.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

/// What somebody may do; each role may do all that those before it may, but for agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reports for its services and reads their classes, and nothing else.
    Agent,
    /// Reads.
    Viewer,
    /// Sets overrides and shields.
    Operator,
    /// Switches modes, and takes backups.
    Admin,
}

impl Role {
    /// The spelling everywhere.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

/// A token, its owner, and what it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Who has it, for the audit log.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The services that an agent speaks for: names, or `prefix/*`, or `*`.
    pub services: Vec<String>,
    /// How its owner is known.
    pub proof: Proof,
}

/// How somebody is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// By the text of this file, which is read again when it changes.
    TokenFile(PathBuf),
    /// By a name in the client's certificate, that a trusted authority has signed: a DNS name or
    /// a URI such as `spiffe://mesh/ns/shop/sa/checkout`.
    Certificate(String),
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) name: String,
    pub(crate) role: Role,
    services: Vec<String>,
}

impl Who {
    /// Whether it speaks for a service; whoever runs the mesh speaks for all of them.
    pub(crate) fn speaks_for(&self, service: &str) -> bool {
        let covers = |pattern: &String| match pattern.strip_suffix('*') {
            Some(prefix) => service.starts_with(prefix),
            None => pattern == service,
        };
        match self.role {
            Role::Agent => self.services.iter().any(covers),
            Role::Admin => true,
            Role::Viewer | Role::Operator => false,
        }
    }

    /// Whether it may read of a service: agents know their own.
    pub(crate) fn may_read(&self, service: &str) -> bool {
        self.role != Role::Agent || self.speaks_for(service)
    }
}

/// All grants, with their tokens as they are on disk.
#[derive(Debug)]
pub(crate) struct Access {
    grants: Vec<Grant>,
    tokens: RwLock<Vec<Option<String>>>,
}

/// The longest token that is read.
const TOKEN_MAX: u64 = 4096;

impl Access {
    /// Without any grant everybody may do everything: for loopback, and said in the log.
    pub(crate) fn new(grants: Vec<Grant>) -> Self {
        let access = Self { grants, tokens: RwLock::default() };
        access.read_again();
        access
    }

    pub(crate) fn is_open(&self) -> bool {
        self.grants.is_empty()
    }

    /// Reads the tokens again. A file that cannot be read leaves nobody in by an old token.
    pub(crate) fn read_again(&self) {
        let read = |grant: &Grant| match &grant.proof {
            Proof::Certificate(_) => None,
            Proof::TokenFile(path) => {
                let token = token_in(path);
                if let Err(why) = &token {
                    tracing::warn!(name = grant.name, path = %path.display(), why, "onus analysis: a token cannot be read, and lets nobody in");
                }
                token.ok()
            }
        };
        let tokens = self.grants.iter().map(read).collect();
        *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = tokens;
    }

    /// Who asks with this token, on a connection whose certificate has these names.
    pub(crate) fn who(&self, token: Option<&str>, certified: &[String]) -> Option<Who> {
        if self.is_open() {
            let services = Vec::from(["*".to_owned()]);
            return Some(Who { name: "anybody".to_owned(), role: Role::Admin, services });
        }
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let proves = |(grant, kept): &(&Grant, &Option<String>)| match &grant.proof {
            Proof::Certificate(name) => token.is_none() && certified.contains(name),
            Proof::TokenFile(_) => match (token, kept) {
                (Some(token), Some(kept)) => same(token.as_bytes(), kept.as_bytes()),
                (Some(_), None) | (None, Some(_) | None) => false,
            },
        };
        let (grant, _) = self.grants.iter().zip(tokens.iter()).find(proves)?;
        let Grant { name, role, services, proof: _ } = grant.clone();
        Some(Who { name, role, services })
    }
}

pub(crate) fn token_in(path: &Path) -> Result<String, String> {
    let length = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > TOKEN_MAX {
        return Err(format!("{length} bytes; allowed is up to {TOKEN_MAX}"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    match text.trim() {
        short if short.len() < 16 => Err("fewer than 16 characters".to_owned()),
        token => Ok(token.to_owned()),
    }
}

/// Compares in a time that tells only of the length.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other));
    one.len() == other.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_speaks_for_its_services_only() {
        let who = |role, services: &[&str]| Who {
            name: "x".to_owned(),
            role,
            services: services.iter().map(|&service| service.to_owned()).collect(),
        };
        for (role, services, service, speaks) in [
            (Role::Agent, &["checkout"][..], "checkout", true),
            (Role::Agent, &["checkout"], "checkout2", false),
            (Role::Agent, &["shop/*"], "shop/checkout", true),
            (Role::Agent, &["shop/*"], "shopping", false),
            (Role::Agent, &["*"], "anything", true),
            (Role::Agent, &[], "checkout", false),
            (Role::Viewer, &["*"], "checkout", false),
            (Role::Operator, &["*"], "checkout", false),
            (Role::Admin, &[], "checkout", true),
        ] {
            assert_eq!(who(role, services).speaks_for(service), speaks, "{role:?} {services:?}");
        }
    }

    #[test]
    fn tokens_are_compared_whole() {
        for (one, other, is) in
            [("abc", "abc", true), ("abc", "abx", false), ("abc", "ab", false), ("", "", true)]
        {
            assert_eq!(same(one.as_bytes(), other.as_bytes()), is, "{one} {other}");
        }
    }
}
