//! Which lines a reader wants.

use super::Line;

/// What a line must be; all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    service: Option<String>,
    edge: Option<Edge>,
    status: Option<Status>,
    retry: Option<String>,
    origin: Option<String>,
}

/// A callee, with a method and the beginning of a path where these are said.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Edge {
    callee: String,
    method: Option<String>,
    path: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// There was no answer.
    None,
    Http(u16),
    /// 5 for 500 to 599.
    Class(u16),
    Grpc(u16),
}

impl Filter {
    /// Reads the query of a request.
    pub(crate) fn parse(query: &str) -> Result<Self, String> {
        let mut filter = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value).ok_or_else(|| format!("{value:?} is no text"))?;
            match name {
                "service" => filter.service = Some(value),
                "edge" => filter.edge = Some(edge(&value)),
                "status" => {
                    let known = "503, 5xx, grpc-14 or none";
                    let read = status(&value);
                    filter.status = Some(read.ok_or_else(|| {
                        format!("the status {value:?} is not known; allowed is one like {known}")
                    })?);
                }
                "retry" if ["open", "closed"].contains(&&*value) => filter.retry = Some(value),
                "retry" => return Err(format!("retry is {value:?}; allowed is open or closed")),
                "origin" => filter.origin = Some(value),
                _ => {
                    return Err(format!(
                        "{name:?} is no filter; one of service, edge, status, retry, origin"
                    ));
                }
            }
        }
        Ok(filter)
    }

    pub(super) fn passes(&self, line: &Line) -> bool {
        let same =
            |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| wanted == is);
        same(&self.service, &line.service)
            && same(&self.retry, line.retry)
            && same(&self.origin, &line.origin)
            && self.status.is_none_or(|status| status.is_of(line))
            && self.edge.as_ref().is_none_or(|edge| edge.is_of(line))
    }
}

impl Status {
    fn is_of(self, line: &Line) -> bool {
        match self {
            Self::None => line.status == 0,
            Self::Http(status) => line.status == status,
            Self::Class(class) => line.status / 100 == class,
            Self::Grpc(code) => line.grpc_status == Some(code),
        }
    }
}

impl Edge {
    fn is_of(&self, line: &Line) -> bool {
        *self.callee == *line.callee
            && self.method.as_ref().is_none_or(|method| *method == line.method)
            && self.path.as_ref().is_none_or(|path| line.path.starts_with(path.as_str()))
    }
}

fn edge(text: &str) -> Edge {
    let mut words = text.split_whitespace();
    let mut edge =
        Edge { callee: words.next().unwrap_or_default().to_owned(), method: None, path: None };
    for word in words {
        match word.starts_with('/') {
            true => edge.path = Some(word.to_owned()),
            false => edge.method = Some(word.to_owned()),
        }
    }
    edge
}

fn status(text: &str) -> Option<Status> {
    if text == "none" {
        return Some(Status::None);
    }
    if let Some(code) = text.strip_prefix("grpc-") {
        return code.parse().ok().filter(|code| *code <= 16).map(Status::Grpc);
    }
    if let Some(class) = text.strip_suffix("xx") {
        return class.parse().ok().filter(|class| (1..=5).contains(class)).map(Status::Class);
    }
    text.parse().ok().filter(|status| (100..=599).contains(status)).map(Status::Http)
}

/// A value of a query without its percent signs.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, passes: bool) {
        let line = Line {
            at: 0,
            service: "shop/web".into(),
            callee: "shop/pay".into(),
            instance: String::new(),
            attempt: 2,
            method: "POST".to_owned(),
            path: "/charge/17".to_owned(),
            status: 503,
            grpc_status: Some(14),
            ms: 1,
            retry: "open",
            cause: "self",
            origin: "shop/pay".to_owned(),
            hops: 0,
            error: String::new(),
        };
        assert_eq!(Filter::parse(query).unwrap().passes(&line), passes, "{query}");
    }

    #[test]
    fn a_line_is_all_that_is_asked_for() {
        for (query, passes) in [
            ("", true),
            ("service=shop/web", true),
            ("service=shop%2Fweb&retry=open&origin=shop/pay", true),
            ("service=shop/pay", false),
            ("edge=shop/pay", true),
            ("edge=shop/pay+POST", true),
            ("edge=shop/pay%20POST%20/charge", true),
            ("edge=shop/pay+/charge", true),
            ("edge=shop/pay+GET", false),
            ("edge=shop/pay+/refund", false),
            ("edge=shop", false),
            ("status=503", true),
            ("status=5xx", true),
            ("status=grpc-14", true),
            ("status=grpc-13", false),
            ("status=4xx", false),
            ("status=none", false),
            ("retry=closed", false),
            ("origin=shop/db", false),
        ] {
            check(query, passes);
        }
        for query in ["status=loud", "status=grpc-17", "retry=yes", "callee=b", "origin=%f", "x"] {
            assert!(Filter::parse(query).is_err(), "{query}");
        }
    }
}
