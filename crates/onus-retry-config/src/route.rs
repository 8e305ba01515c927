//! Which calls a policy is for.

use std::fmt;

use crate::cursor::Cursor;

/// Which calls a policy is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// What people read: its name, path or method.
    pub label: String,
    /// The methods of HTTP it is limited to; empty: all.
    pub methods: Vec<String>,
    /// The gRPC methods it is limited to, as `Service/Method`; empty: all, or no gRPC.
    pub grpc_methods: Vec<String>,
    /// What a call has to be, any of these; empty: anything.
    pub matches: Vec<Match>,
}

/// What a call has to be, all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Its method of HTTP; any without this.
    pub method: Option<String>,
    /// Its path; any without this.
    pub path: Option<Path>,
    /// What else it must have, which is only named, such as `headers`.
    pub also: Vec<String>,
}

/// A set of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    /// This one.
    Exact(String),
    /// All whose first segments are these.
    Segments(String),
    /// All that begin with this text, in the middle of a segment too.
    Prefix(String),
    /// What a pattern says, of which nothing is known here.
    Pattern(String),
}

impl Match {
    /// Names the fields that are none of `known`, as what else a call must have.
    pub(crate) fn also(&mut self, at: &Cursor<'_>, known: &[&str]) {
        let fields = at.entries().into_iter().map(|(field, _)| field);
        self.also.extend(fields.filter(|field| !known.contains(field)).map(str::to_owned));
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(path) | Self::Pattern(path) => formatter.write_str(path),
            Self::Segments(path) | Self::Prefix(path) => write!(formatter, "{path}*"),
        }
    }
}
