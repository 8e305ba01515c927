//! The adversary's choices in one trace, and the next trace.

/// A tape of choices. A trace reads it from the start and writes what it has not seen yet; the
/// tape then moves on to the next trace, depth first, until there is none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    choices: Vec<Choice>,
    at: usize,
}

#[derive(Clone, Copy, Debug)]
struct Choice {
    taken: u8,
    options: u8,
}

impl Tape {
    /// A tape that takes these choices first, and 0 wherever it has none left.
    pub(crate) fn of(choices: &[u8]) -> Self {
        let choice = |&taken: &u8| Choice { taken, options: u8::MAX };
        Self { choices: choices.iter().map(choice).collect(), at: 0 }
    }

    /// Back to the first trace of all.
    pub(crate) fn clear(&mut self) {
        self.choices.clear();
        self.at = 0;
    }

    /// One of `options` choices, from 0.
    pub(crate) fn choose(&mut self, options: u8) -> u8 {
        let at = self.at;
        self.at += 1;
        match self.choices.get_mut(at) {
            Some(choice) => {
                choice.options = options;
                // A tape of another configuration may ask for what is not there.
                choice.taken.min(options - 1)
            }
            None => {
                self.choices.push(Choice { taken: 0, options });
                0
            }
        }
    }

    /// Moves to the next trace; false after the last one.
    pub(crate) fn advance(&mut self) -> bool {
        self.choices.truncate(self.at);
        self.at = 0;
        while let Some(last) = self.choices.last_mut() {
            if last.taken + 1 < last.options {
                last.taken += 1;
                return true;
            }
            self.choices.pop();
        }
        false
    }

    /// What was chosen in this trace.
    pub(crate) fn taken(&self) -> impl Iterator<Item = u8> {
        self.choices[..self.at.min(self.choices.len())].iter().map(|choice| choice.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_every_trace_once() {
        // A second choice exists only after the first was 1.
        let mut tape = Tape::default();
        let mut seen = Vec::new();
        loop {
            let first = tape.choose(2);
            let second = (first == 1).then(|| tape.choose(3));
            seen.push((first, second));
            assert_eq!(tape.taken().count(), 1 + usize::from(first));
            if !tape.advance() {
                break;
            }
        }
        assert_eq!(seen, [(0, None), (1, Some(0)), (1, Some(1)), (1, Some(2))]);
    }

    #[test]
    fn takes_what_it_was_told() {
        let mut tape = Tape::of(&[1, 0]);
        assert_eq!([tape.choose(2), tape.choose(2), tape.choose(2)], [1, 0, 0]);
    }
}
