//! Names as numbers: each is kept once, however many edges have it.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use onus_api::OTHER;

/// A name in [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(u32);

/// The longest name that is kept.
pub(crate) const NAME_MAX: usize = 256;

/// Names that were seen. It is bounded by whoever adds names only with rows that have a bound.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: HashMap<Arc<str>, Name, RandomState>,
    names: Vec<Arc<str>>,
}

impl Names {
    pub(crate) fn find(&self, name: &str) -> Option<Name> {
        self.numbers.get(name).copied()
    }

    pub(crate) fn intern(&mut self, name: &str) -> Name {
        if let Some(known) = self.find(name) {
            return known;
        }
        let number = Name(self.names.len() as u32);
        let name: Arc<str> = name.into();
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    pub(crate) fn name(&self, Name(number): Name) -> &Arc<str> {
        &self.names[number as usize]
    }
}

/// The name as it is kept: one that is too long, or has characters that no terminal and no label
/// should see, is one of the others.
pub(crate) fn clean(name: &str) -> &str {
    let hostile = name.len() > NAME_MAX || name.chars().any(is_hostile);
    if hostile { OTHER } else { name }
}

/// Controls, and the marks that turn the direction of a line round.
fn is_hostile(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_is_one_of_the_others() {
        let long = "n".repeat(NAME_MAX + 1);
        for (name, kept) in [
            ("GET /pay/{id}", "GET /pay/{id}"),
            ("", ""),
            ("\u{e9}t\u{e9}", "\u{e9}t\u{e9}"),
            ("a\nb", OTHER),
            ("\u{1b}[31mred", OTHER),
            ("a\u{202e}b", OTHER),
            ("\0", OTHER),
            (&long, OTHER),
            (&long[1..], &long[1..]),
        ] {
            assert_eq!(clean(name), kept, "{name:?}");
        }
    }
}
