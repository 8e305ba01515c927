//! The token that says which service this is.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use http::HeaderValue;

use super::ReportError;

/// Where the token is.
#[derive(Clone)]
pub(crate) enum Token {
    Said(String),
    In(PathBuf),
}

impl Token {
    /// As it stands in a request, from what the file says now.
    pub(crate) fn authorization(&self) -> Result<HeaderValue, ReportError> {
        let token = match self {
            Self::Said(token) => token.clone(),
            Self::In(path) => fs::read_to_string(path)
                .map_err(|source| ReportError::TokenFile { path: path.clone(), source })?,
        };
        let token = token.trim();
        let value = HeaderValue::try_from(format!("Bearer {token}"));
        let mut value = value.ok().filter(|_| !token.is_empty()).ok_or(ReportError::Token)?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Whether it may be another one by now.
    pub(crate) fn may_change(&self) -> bool {
        match self {
            Self::Said(_) => false,
            Self::In(_) => true,
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(_) => f.write_str("Said(..)"),
            Self::In(path) => f.debug_tuple("In").field(path).finish(),
        }
    }
}
