//! Who asks, and whether they may.

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::problem::Refusal;
use crate::access::{Role, Who};
use crate::engine::Analysis;
use crate::shard::Shard;
use crate::tls::Peer;

impl FromRequestParts<Analysis> for Who {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, analysis: &Analysis) -> Result<Self, Refusal> {
        let token = parts.headers.get(AUTHORIZATION).map(|value| {
            let text = value.to_str().unwrap_or_default();
            text.strip_prefix("Bearer ").unwrap_or_default().trim()
        });
        let peer = parts.extensions.get::<ConnectInfo<Peer>>();
        let certified = peer.map_or(&[][..], |ConnectInfo(peer)| &peer.names);
        analysis.access().who(token, certified).ok_or_else(|| match token {
            Some(_) => Refusal::unauthorized("the token is not known here"),
            None => Refusal::unauthorized("a token is missing: `authorization: Bearer …`"),
        })
    }
}

impl Who {
    /// Refuses whoever has a lesser role.
    pub(crate) fn must_be(&self, role: Role) -> Result<(), Refusal> {
        if self.role >= role {
            return Ok(());
        }
        let (name, own, needed) = (&self.name, self.role.as_str(), role.as_str());
        Err(Refusal::forbidden(format!("{name} has the role {own}; this needs {needed}")))
    }

    /// Refuses an agent that reports for somebody else.
    pub(crate) fn must_speak_for(&self, service: &str) -> Result<(), Refusal> {
        if self.speaks_for(service) {
            return Ok(());
        }
        let name = &self.name;
        Err(Refusal::forbidden(format!("{name} does not speak for the service {service:?}")))
    }

    /// Refuses an agent that asks of somebody else.
    pub(crate) fn must_read(&self, service: &str) -> Result<(), Refusal> {
        if self.may_read(service) {
            return Ok(());
        }
        let name = &self.name;
        Err(Refusal::forbidden(format!("{name} may not read of the service {service:?}")))
    }
}

impl Analysis {
    /// The analyses that have the other callers of the mesh.
    pub(crate) fn elsewhere(&self) -> Vec<String> {
        self.config().shard.as_ref().map(Shard::others).unwrap_or_default()
    }

    /// Sends whoever asks for a service of another analysis there.
    pub(crate) fn must_own(&self, service: &str, path: &str) -> Result<(), Refusal> {
        let elsewhere = self.config().shard.as_ref().and_then(|shard| shard.elsewhere(service));
        match elsewhere {
            Some(address) => Err(Refusal::elsewhere(address, path)),
            None => Ok(()),
        }
    }
}
