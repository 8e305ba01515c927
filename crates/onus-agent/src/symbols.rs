//! Names as numbers: methods, routes and services, interned once and bounded, as every map is.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use http::Method;

/// A table of names. Readers never wait; a name that is known costs one lookup without an
/// allocation.
pub struct Symbols {
    numbers: papaya::HashMap<Arc<str>, Symbol, foldhash::fast::RandomState>,
    /// The names by number, in chunks that are made when they are needed.
    chunks: Box<[OnceLock<Box<Chunk>>]>,
    /// What stands for a symbol of another table.
    other: Arc<str>,
    /// How many names there are; raised after a name is in place.
    len: AtomicU32,
    max: u32,
    refused: AtomicU64,
    /// Held by whoever adds a name.
    adding: Mutex<()>,
}

/// A name in a [`Symbols`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(u32);

impl Symbol {
    /// No name; the empty text.
    pub const NONE: Self = Self(0);
    /// Every name that the table has no room for, `__other__`.
    pub const OTHER: Self = Self(1);
}

/// The longest name; longer ones are [`Symbol::OTHER`], or a stranger could fill the memory with
/// few names.
pub const NAME_MAX: usize = 256;

impl Symbols {
    /// A table for `max` names beside the standard HTTP methods.
    #[must_use]
    pub fn new(max: usize) -> Self {
        let max = PREDEFINED.len().saturating_add(max).min(u32::MAX as usize);
        let symbols = Self {
            numbers: papaya::HashMap::default(),
            chunks: (0..max.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect(),
            other: Arc::from("__other__"),
            len: AtomicU32::new(0),
            max: max as u32,
            refused: AtomicU64::new(0),
            adding: Mutex::new(()),
        };
        for name in PREDEFINED {
            symbols.add(name);
        }
        symbols
    }

    /// The number of `name`; [`Symbol::OTHER`], counted, for one that finds no room.
    #[must_use]
    pub fn intern(&self, name: &str) -> Symbol {
        match self.numbers.pin().get(name) {
            Some(&symbol) => symbol,
            None => self.add(name),
        }
    }

    /// The number of a method; the standard ones are known without a lookup. Others are not added:
    /// strangers choose them.
    #[inline]
    #[must_use]
    pub fn intern_method(&self, method: &Method) -> Symbol {
        match *method {
            Method::GET => Symbol(2),
            Method::HEAD => Symbol(3),
            Method::POST => Symbol(4),
            Method::PUT => Symbol(5),
            Method::DELETE => Symbol(6),
            Method::CONNECT => Symbol(7),
            Method::OPTIONS => Symbol(8),
            Method::TRACE => Symbol(9),
            Method::PATCH => Symbol(10),
            _ => self.numbers.pin().get(method.as_str()).copied().unwrap_or(Symbol::OTHER),
        }
    }

    /// The text of a symbol of this table; `__other__` for one of another table.
    #[must_use]
    pub fn name(&self, symbol: Symbol) -> &Arc<str> {
        self.slot(symbol).unwrap_or(&self.other)
    }

    /// How often a name found no room.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn slot(&self, Symbol(number): Symbol) -> Option<&Arc<str>> {
        let number = number as usize;
        self.chunks.get(number / CHUNK)?.get()?[number % CHUNK].get()
    }

    #[cold]
    fn add(&self, name: &str) -> Symbol {
        // Looked at before the lock: an attacker who makes up names must not stop the others.
        if name.len() > NAME_MAX || self.len.load(Ordering::Relaxed) >= self.max {
            return self.refuse();
        }
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let numbers = self.numbers.pin();
        if let Some(&symbol) = numbers.get(name) {
            return symbol;
        }
        let number = self.len.load(Ordering::Relaxed);
        let Some(chunk) = self.chunks.get(number as usize / CHUNK).filter(|_| number < self.max)
        else {
            return self.refuse();
        };
        let chunk = chunk.get_or_init(|| Box::new([const { OnceLock::new() }; CHUNK]));
        let name = chunk[number as usize % CHUNK].get_or_init(|| Arc::from(name));
        // The name is in place before anyone can find its number.
        numbers.insert(Arc::clone(name), Symbol(number));
        self.len.store(number + 1, Ordering::Relaxed);
        Symbol(number)
    }

    fn refuse(&self) -> Symbol {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Symbol::OTHER
    }
}

impl fmt::Debug for Symbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.len.load(Ordering::Relaxed);
        f.debug_struct("Symbols").field("len", &len).field("max", &self.max).finish_non_exhaustive()
    }
}

/// What a service offers: an HTTP method on a route template, or a gRPC method; never a raw path
/// (protocol §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Procedure {
    /// The HTTP method; [`Symbol::NONE`] for gRPC.
    pub method: Symbol,
    /// The route template, [`Symbol::NONE`] where none is known; for gRPC `/package.Service/Method`.
    pub route: Symbol,
}

impl Procedure {
    /// No procedure: what a call has as its caller that is made for no request.
    pub const NONE: Self = Self { method: Symbol::NONE, route: Symbol::NONE };
    /// What all procedures share that a table has no room for.
    pub const OTHER: Self = Self { method: Symbol::NONE, route: Symbol::OTHER };

    /// An HTTP method on a route template, where one is known.
    #[inline]
    #[must_use]
    pub fn http(symbols: &Symbols, method: &Method, route: Option<&str>) -> Self {
        let route = route.map_or(Symbol::NONE, |route| symbols.intern(route));
        Self { method: symbols.intern_method(method), route }
    }

    /// A gRPC method by its path, `/package.Service/Method`.
    #[must_use]
    pub fn grpc(symbols: &Symbols, path: &str) -> Self {
        Self { method: Symbol::NONE, route: symbols.intern(path) }
    }

    /// The text in logs and metrics: `GET /pay/{id}`, `GET` without a route, `/pkg.Service/Method`.
    #[must_use]
    pub fn display(self, symbols: &Symbols) -> impl fmt::Display + '_ {
        fmt::from_fn(move |f| {
            let method = symbols.name(self.method);
            let route = symbols.name(self.route);
            let space = if method.is_empty() || route.is_empty() { "" } else { " " };
            write!(f, "{method}{space}{route}")
        })
    }
}

/// The symbols that every table has, in the order of their numbers.
const PREDEFINED: [&str; 11] = [
    "",
    "__other__",
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "PATCH",
];

/// 6 KiB of names at a time.
const CHUNK: usize = 256;

type Chunk = [OnceLock<Arc<str>>; CHUNK];

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn a_name_has_one_number_and_a_number_its_name() {
        let symbols = Symbols::new(1000);
        let names: Vec<_> = (0..1000).map(|n| format!("/route/{n}")).collect();
        let numbers: Vec<_> = names.iter().map(|name| symbols.intern(name)).collect();
        for (name, &symbol) in names.iter().zip(&numbers) {
            assert_eq!(symbols.intern(name), symbol);
            assert_eq!(&**symbols.name(symbol), name);
        }
        let mut distinct = numbers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 1000);
        assert_eq!(symbols.refused(), 0);
    }

    #[test]
    fn what_every_table_has() {
        let symbols = Symbols::new(0);
        for (name, symbol) in [("", Symbol::NONE), ("__other__", Symbol::OTHER)] {
            assert_eq!(symbols.intern(name), symbol);
            assert_eq!(&**symbols.name(symbol), name);
        }
        for method in [
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::DELETE,
            Method::CONNECT,
            Method::OPTIONS,
            Method::TRACE,
            Method::PATCH,
        ] {
            let symbol = symbols.intern_method(&method);
            assert_eq!(symbols.intern(method.as_str()), symbol);
            assert_eq!(&**symbols.name(symbol), method.as_str());
        }
        assert_eq!(symbols.refused(), 0);
    }

    #[test]
    fn a_full_table_answers_other() {
        // [fault-2]
        let symbols = Symbols::new(2);
        let known = [symbols.intern("a"), symbols.intern("b")];
        assert!(!known.contains(&Symbol::OTHER));
        for (refused, name) in [(1, "c"), (2, "d"), (3, "c")] {
            assert_eq!(symbols.intern(name), Symbol::OTHER);
            assert_eq!(symbols.refused(), refused);
        }
        assert_eq!([symbols.intern("a"), symbols.intern("b")], known);
        assert_eq!(&**symbols.name(Symbol(u32::MAX)), "__other__");
    }

    #[test]
    fn a_long_name_is_other() {
        let symbols = Symbols::new(2);
        assert_eq!(symbols.intern(&"n".repeat(NAME_MAX + 1)), Symbol::OTHER);
        assert_ne!(symbols.intern(&"n".repeat(NAME_MAX)), Symbol::OTHER);
        assert_eq!(symbols.refused(), 1);
    }

    #[test]
    fn threads_agree() {
        const NAMES: usize = 5_000;
        let symbols = Symbols::new(NAMES);
        let start = Barrier::new(2);
        let numbers = || {
            start.wait();
            (0..NAMES).map(|n| symbols.intern(&n.to_string())).collect::<Vec<_>>()
        };
        let (one, two) = thread::scope(|scope| {
            let threads = (scope.spawn(numbers), scope.spawn(numbers));
            (threads.0.join().unwrap(), threads.1.join().unwrap())
        });
        assert_eq!(one, two);
        for (n, &symbol) in one.iter().enumerate() {
            assert_eq!(**symbols.name(symbol), *n.to_string());
        }
        assert_eq!(symbols.refused(), 0);
    }

    #[test]
    fn procedures_as_people_read_them() {
        // [term-1]
        let symbols = Symbols::new(10);
        let check = |procedure: Procedure, text: &str| {
            assert_eq!(procedure.display(&symbols).to_string(), text);
        };
        check(Procedure::http(&symbols, &Method::GET, Some("/pay/{id}")), "GET /pay/{id}");
        check(Procedure::http(&symbols, &Method::GET, None), "GET");
        check(Procedure::grpc(&symbols, "/pkg.Service/Method"), "/pkg.Service/Method");
        let other = Procedure { method: Symbol(4), route: Symbol::OTHER };
        check(other, "POST __other__");
        check(Procedure::OTHER, "__other__");
        check(Procedure::NONE, "");
        let purge = Method::from_bytes(b"PURGE").unwrap();
        check(Procedure::http(&symbols, &purge, Some("/")), "__other__ /");
        // A method that a policy names is known.
        let _ = symbols.intern("PURGE");
        check(Procedure::http(&symbols, &purge, Some("/")), "PURGE /");
    }
}
