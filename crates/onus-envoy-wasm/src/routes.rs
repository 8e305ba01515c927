//! Names of routes, which cost more to ask Envoy for than all else that a filter does.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

/// The names of the routes of a plugin's listener, each kept for a moment under what its requests have
/// in common: method, host and path. Routes that differ by less, as by another header, are told apart
/// no better than that.
pub(crate) struct Routes {
    /// Strangers choose the paths, so each plugin hashes in its own way.
    hasher: FixedState,
    names: RefCell<HashMap<Request, String, FixedState>>,
}

/// What a request has in common with others on its route, as a number.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Request(u64);

/// The most names that are kept; further ones are asked for each time.
const NAMES_MAX: usize = 1_024;

impl Routes {
    /// No names. `seed` are random bits.
    pub(crate) fn new(seed: u64) -> Self {
        Self { hasher: FixedState::with_seed(seed), names: RefCell::default() }
    }

    /// The request with this line as well.
    pub(crate) fn with_line(&self, request: Request, name: &[u8], value: &[u8]) -> Request {
        let value = match name {
            b":method" | b":authority" => value,
            b":path" => value.split(|&byte| byte == b'?').next().unwrap_or_default(),
            _ => return request,
        };
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(request.0);
        hasher.write(name);
        hasher.write(value);
        Request(hasher.finish())
    }

    /// The name of a request's route, as it is kept or as `ask` finds it.
    pub(crate) fn name(&self, request: Request, ask: impl FnOnce() -> String) -> String {
        if let Some(name) = self.names.borrow().get(&request) {
            return name.clone();
        }
        let name = ask();
        let mut names = self.names.borrow_mut();
        if names.len() < NAMES_MAX {
            names.insert(request, name.clone());
        }
        name
    }

    /// A moment has passed: routes may have changed.
    pub(crate) fn forget(&self) {
        self.names.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(routes: &Routes, lines: &[(&str, &str)]) -> Request {
        let with_line = |request, &(name, value): &(&str, &str)| {
            routes.with_line(request, name.as_bytes(), value.as_bytes())
        };
        lines.iter().fold(Request::default(), with_line)
    }

    fn get(routes: &Routes, path: &str) -> Request {
        request(routes, &[(":method", "GET"), (":authority", "b:80"), (":path", path)])
    }

    #[test]
    fn requests_are_told_apart_by_method_host_and_path() {
        let routes = Routes::new(1);
        let this = get(&routes, "/a");
        for (lines, is_same) in [
            ([("GET", "b:80", "/a"), ("x", "1", "")], true),
            ([("GET", "b:80", "/a?q"), ("", "", "")], true),
            ([("POST", "b:80", "/a"), ("", "", "")], false),
            ([("GET", "b:81", "/a"), ("", "", "")], false),
            ([("GET", "b:80", "/ab"), ("", "", "")], false),
            ([("GET", "b:8", "0/a"), ("", "", "")], false),
        ] {
            let [(method, host, path), (name, value, _)] = lines;
            let lines = [(":method", method), (":authority", host), (":path", path), (name, value)];
            assert_eq!(request(&routes, &lines) == this, is_same, "{lines:?}");
        }
    }

    #[test]
    fn a_name_is_asked_for_once_until_it_is_forgotten() {
        let routes = Routes::new(1);
        let (one, other) = (get(&routes, "/1"), get(&routes, "/2"));
        assert_eq!(routes.name(one, || "first".to_owned()), "first");
        assert_eq!(routes.name(one, || panic!("it is kept")), "first");
        assert_eq!(routes.name(other, || "second".to_owned()), "second");
        routes.forget();
        assert_eq!(routes.name(one, || "changed".to_owned()), "changed");
    }

    #[test]
    fn no_more_names_are_kept_than_there_is_room_for() {
        let routes = Routes::new(1);
        for number in 0..2 * NAMES_MAX {
            let request = get(&routes, &format!("/{number}"));
            assert_eq!(routes.name(request, || number.to_string()), number.to_string());
        }
        assert_eq!(routes.names.borrow().len(), NAMES_MAX);
    }
}
