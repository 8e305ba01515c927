//! Mode and shield, and who may set them: watched file > admin > analysis > what the service was
//! built with.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use onus_core::{Mode, SHIELD_DEFAULT, Share, Shield, Timestamp};

use crate::edges::lock;

/// Who sets a switch; the later one wins over the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The dependency analysis, for the whole mesh.
    Analysis,
    /// A person, through the admin interface.
    Admin,
    /// A person, through the watched file.
    File,
}

impl Source {
    const ALL: [Self; 3] = [Self::Analysis, Self::Admin, Self::File];

    /// The spelling in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Analysis => "analysis",
            Self::Admin => "admin",
            Self::File => "file",
        }
    }
}

/// What one source says; nothing unless it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// The mode.
    pub mode: Option<Mode>,
    /// How long the shield holds from the moment of switching; zero takes it down, whatever weaker
    /// sources say.
    pub shield: Option<Duration>,
    /// Who switched, for the log.
    pub who: String,
    /// Why, for the log.
    pub why: String,
}

/// The watched switch file, as the host that reads it found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchFile<'a> {
    /// There is none, which says nothing.
    Missing,
    /// It is there and cannot be read; what was in force stays in force.
    Unreadable,
    /// It has this text, which was written `age` ago: its shield holds from then on, in every
    /// process alike, also in one that starts later.
    Says {
        /// The text; see [`Switches::parse`].
        text: &'a str,
        /// How long ago it was written.
        age: Duration,
    },
}

impl<'a> SwitchFile<'a> {
    /// A file that has just been written.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self::Says { text, age: Duration::ZERO }
    }

    /// What it says; `None` where it cannot be read.
    pub(crate) fn switches(self) -> Result<Option<Switches>, SwitchError> {
        match self {
            Self::Missing => Ok(Some(Switches::default())),
            Self::Unreadable => Ok(None),
            Self::Says { text, age } => {
                let mut switches = Switches::parse(text)?;
                // A shield whose time is over says nothing; only `off` takes others down.
                switches.shield = switches
                    .shield
                    .filter(|&time| time.is_zero() || time > age)
                    .map(|time| time.saturating_sub(age));
                Ok(Some(switches))
            }
        }
    }
}

/// A switch text that cannot be meant; what was in force stays in force.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}; allowed is {allowed}")]
pub struct SwitchError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub allowed: &'static str,
}

const ALLOWED_KEYS: &str = "mode, shield, who or why";
const ALLOWED_MODES: &str = "off, observe, enforce, or enforce with a share such as 25%";
const ALLOWED_SHIELDS: &str = "off, on (15m), or a time from 1s to 24h such as 90s, 15m or 2h";
const SHIELD_MAX: Duration = Duration::from_secs(24 * 3600);

impl Switches {
    /// Reads the text of a switch file. Each line is empty, a `#` comment or `key: value`:
    ///
    /// ```text
    /// mode: enforce 25%   # off, observe, enforce, or enforce with a share
    /// shield: 15m         # off, on, or how long from when the file was written
    /// who: alice
    /// why: incident 42
    /// ```
    ///
    /// # Errors
    ///
    /// The first line that cannot be meant.
    pub fn parse(text: &str) -> Result<Self, SwitchError> {
        let mut switches = Self::default();
        let mut seen = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let wrong =
                |problem: String, allowed| SwitchError { line: line_number, problem, allowed };
            let content = line.split('#').next().unwrap_or_default().trim();
            if content.is_empty() {
                continue;
            }
            let Some((key, value)) = content.split_once(':') else {
                return Err(wrong(format!("{content:?} is not `key: value`"), ALLOWED_KEYS));
            };
            let (key, value) = (key.trim(), value.trim());
            if seen.contains(&key) {
                return Err(wrong(format!("{key} is said twice"), "one line for each key"));
            }
            seen.push(key);
            match key {
                "mode" => {
                    let mode = parse_mode(value)
                        .ok_or_else(|| wrong(format!("mode is {value:?}"), ALLOWED_MODES))?;
                    switches.mode = Some(mode);
                }
                "shield" => {
                    let shield = parse_shield(value)
                        .ok_or_else(|| wrong(format!("shield is {value:?}"), ALLOWED_SHIELDS))?;
                    switches.shield = Some(shield);
                }
                "who" => value.clone_into(&mut switches.who),
                "why" => value.clone_into(&mut switches.why),
                other => return Err(wrong(format!("unknown key {other:?}"), ALLOWED_KEYS)),
            }
        }
        Ok(switches)
    }

    /// With words of a length that a metric can carry.
    fn shortened(&self) -> Self {
        let short = |text: &str| text.chars().take(WORDS_MAX).collect();
        Self { who: short(&self.who), why: short(&self.why), ..self.clone() }
    }
}

/// Reads a mode as people write it: `off`, `observe`, `enforce`, or `enforce 25%`.
#[must_use]
pub fn parse_mode(text: &str) -> Option<Mode> {
    match text {
        "off" => Some(Mode::Off),
        "observe" => Some(Mode::Observe),
        "enforce" => Some(Mode::ENFORCE),
        _ => {
            let percent = text.strip_prefix("enforce")?.trim().strip_suffix('%')?;
            Share::percent(percent.trim().parse().ok()?).map(Mode::Enforce)
        }
    }
}

fn parse_shield(text: &str) -> Option<Duration> {
    let time = match text {
        "off" => return Some(Duration::ZERO),
        "on" => SHIELD_DEFAULT,
        _ => {
            let unit = text.char_indices().last()?.0;
            let (number, unit) = text.split_at(unit);
            let seconds = match unit {
                "s" => 1,
                "m" => 60,
                "h" => 3600,
                _ => return None,
            };
            Duration::from_secs(number.trim().parse::<u64>().ok()?.checked_mul(seconds)?)
        }
    };
    (time >= Duration::from_secs(1) && time <= SHIELD_MAX).then_some(time)
}

/// The switches of a service: what each source said, and what follows, read without a lock.
#[derive(Debug)]
pub(crate) struct Switchboard {
    said: Mutex<Words>,
    /// The mode in force, as a number; see [`mode_to_bits`].
    mode: AtomicU32,
    /// When the shield in force ends, in nanoseconds; zero for none.
    shield_until: AtomicU64,
}

/// What was said of mode and shield, and by whom.
#[derive(Debug)]
struct Words {
    /// By whoever built the agent.
    built: Mode,
    /// By each source.
    by: [Option<Said>; 3],
}

#[derive(Debug)]
struct Said {
    switches: Switches,
    /// When the shield ends that this source put up.
    shield_until: Option<Timestamp>,
}

impl Said {
    fn takes_shield_down(&self) -> bool {
        self.switches.shield == Some(Duration::ZERO)
    }
}

/// The most characters of who switched and why that are kept for metrics.
const WORDS_MAX: usize = 128;

impl Switchboard {
    pub(crate) fn new(built: Mode) -> Self {
        Self {
            said: Mutex::new(Words { built, by: Default::default() }),
            mode: AtomicU32::new(mode_to_bits(built)),
            shield_until: AtomicU64::new(0),
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        mode_from_bits(self.mode.load(Ordering::Relaxed))
    }

    pub(crate) fn shield_holds(&self, now: Timestamp) -> bool {
        let until = self.shield_until.load(Ordering::Relaxed);
        Shield::until(Timestamp::from_nanos(until)).holds(now)
    }

    /// When the shield in force ends, in nanoseconds; zero for none.
    pub(crate) fn shield_until(&self) -> Timestamp {
        Timestamp::from_nanos(self.shield_until.load(Ordering::Relaxed))
    }

    /// Replaces all that `source` said; whether it said or says anything. A shield that any source
    /// holds up stays up until its end, unless a stronger one takes it down.
    pub(crate) fn set(&self, source: Source, switches: &Switches, now: Timestamp) -> bool {
        let mut said = lock(&self.said);
        let says = (*switches != Switches::default()).then(|| Said {
            switches: switches.shortened(),
            shield_until: switches.shield.map(|time| now.saturating_add(time)),
        });
        let spoke = said.by[source as usize].is_some() || says.is_some();
        said.by[source as usize] = says;
        self.follow(&said);
        spoke
    }

    /// Replaces the mode where no source says another.
    pub(crate) fn build_anew(&self, built: Mode) {
        let mut said = lock(&self.said);
        said.built = built;
        self.follow(&said);
    }

    fn follow(&self, said: &Words) {
        let strongest = said.by.iter().rev().flatten().find_map(|said| said.switches.mode);
        let mode = strongest.unwrap_or(said.built);
        let strongest_first = said.by.iter().rev().flatten();
        let standing = strongest_first.take_while(|said| !said.takes_shield_down());
        let shield = standing.filter_map(|said| said.shield_until).max().unwrap_or_default();
        self.mode.store(mode_to_bits(mode), Ordering::Relaxed);
        self.shield_until.store(shield.as_nanos(), Ordering::Relaxed);
    }

    /// What each source says that says anything.
    pub(crate) fn said(&self) -> Vec<(Source, Switches)> {
        let said = lock(&self.said);
        let sources = Source::ALL.into_iter().zip(said.by.iter());
        sources
            .filter_map(|(source, said)| Some((source, said.as_ref()?.switches.clone())))
            .collect()
    }
}

const OFF: u32 = u32::MAX;
const OBSERVE: u32 = u32::MAX - 1;

/// A mode in one atomic: two marks, or the enforce share.
pub(crate) fn mode_to_bits(mode: Mode) -> u32 {
    match mode {
        Mode::Off => OFF,
        Mode::Observe => OBSERVE,
        Mode::Enforce(share) => share.basis_points() as u32 / 100,
    }
}

pub(crate) fn mode_from_bits(bits: u32) -> Mode {
    match bits {
        OFF => Mode::Off,
        OBSERVE => Mode::Observe,
        percent => {
            let share = u8::try_from(percent).ok().and_then(Share::percent);
            Mode::Enforce(share.unwrap_or(Share::ALL))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(percent: u8) -> Mode {
        Mode::Enforce(Share::percent(percent).unwrap())
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn the_text_says_mode_shield_and_reason() {
        let text = "# incident\n\nmode: enforce 25%  # slowly\nshield: 90s\nwho: alice\nwhy: db\n";
        let expected = Switches {
            mode: Some(share(25)),
            shield: Some(Duration::from_secs(90)),
            who: "alice".into(),
            why: "db".into(),
        };
        assert_eq!(Switches::parse(text), Ok(expected));
        for (text, mode, shield) in [
            ("", None, None),
            ("mode: off", Some(Mode::Off), None),
            ("mode: observe", Some(Mode::Observe), None),
            ("mode:enforce", Some(Mode::ENFORCE), None),
            ("mode: enforce 0%", Some(share(0)), None),
            ("shield: off", None, Some(0)),
            ("shield: on", None, Some(900)),
            ("shield: 2h", None, Some(7200)),
        ] {
            let switches = Switches::parse(text).unwrap();
            assert_eq!(switches.mode, mode, "{text}");
            assert_eq!(switches.shield, shield.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn a_wrong_line_is_named_with_what_would_be_right() {
        for (text, message) in [
            (
                "mode off",
                "line 1: \"mode off\" is not `key: value`; allowed is mode, shield, who or why",
            ),
            ("\nmod: off", "line 2: unknown key \"mod\"; allowed is mode, shield, who or why"),
            (
                "mode: off\nmode: enforce",
                "line 2: mode is said twice; allowed is one line for each key",
            ),
            (
                "mode: enforce 101%",
                "line 1: mode is \"enforce 101%\"; allowed is off, observe, enforce, or enforce \
                 with a share such as 25%",
            ),
            (
                "shield: 25h",
                "line 1: shield is \"25h\"; allowed is off, on (15m), or a time from 1s to 24h \
                 such as 90s, 15m or 2h",
            ),
            (
                "shield: \u{e9}",
                "line 1: shield is \"\u{e9}\"; allowed is off, on (15m), or a time from 1s to \
                 24h such as 90s, 15m or 2h",
            ),
        ] {
            assert_eq!(Switches::parse(text).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn file_wins_over_admin_over_analysis_over_what_was_built() {
        // [shield-3]
        let board = Switchboard::new(Mode::Observe);
        let mode = |mode| Switches { mode, ..Switches::default() };
        for (source, said, in_force) in [
            (Source::Analysis, Some(Mode::Off), Mode::Off),
            (Source::Admin, Some(share(50)), share(50)),
            (Source::Analysis, Some(Mode::ENFORCE), share(50)),
            (Source::File, Some(Mode::Off), Mode::Off),
            (Source::Admin, None, Mode::Off),
            (Source::File, None, Mode::ENFORCE),
            (Source::Analysis, None, Mode::Observe),
        ] {
            board.set(source, &mode(said), Timestamp::ZERO);
            assert_eq!(board.mode(), in_force, "{source:?} said {said:?}");
        }
    }

    #[test]
    fn the_shield_of_a_file_holds_from_when_it_was_written() {
        for (text, age, left) in [
            ("shield: 60s", 0, Some(60)),
            ("shield: 60s", 20, Some(40)),
            ("shield: 60s", 60, None),
            ("shield: 60s", 1000, None),
            ("shield: off", 1000, Some(0)),
        ] {
            let file = SwitchFile::Says { text, age: Duration::from_secs(age) };
            let shield = file.switches().unwrap().unwrap().shield;
            assert_eq!(shield, left.map(Duration::from_secs), "{text} after {age} s");
        }
        assert_eq!(SwitchFile::Missing.switches(), Ok(Some(Switches::default())));
        assert_eq!(SwitchFile::Unreadable.switches(), Ok(None));
    }

    #[test]
    fn a_shield_ends_by_itself_and_survives_the_silence_of_other_sources() {
        // [shield-2]
        let board = Switchboard::new(Mode::Off);
        assert!(!board.shield_holds(at(0)));
        let shield = Switches { shield: Some(Duration::from_secs(60)), ..Switches::default() };
        board.set(Source::Admin, &shield, at(10));
        board.set(Source::File, &Switches::default(), at(11));
        for (seconds, holds) in [(10, true), (69, true), (70, false), (1000, false)] {
            assert_eq!(board.shield_holds(at(seconds)), holds, "at {seconds} s");
        }
        board.set(Source::Admin, &Switches::default(), at(20));
        assert!(!board.shield_holds(at(20)));
    }

    #[test]
    fn a_stronger_source_takes_a_shield_down() {
        // [shield-3]
        let said = |shield: Option<u64>| Switches {
            shield: shield.map(Duration::from_secs),
            ..Switches::default()
        };
        let [analysis, admin, file] = Source::ALL;
        let board = Switchboard::new(Mode::Observe);
        for (source, shield, holds) in [
            (analysis, Some(600), true),
            (admin, Some(0), false),
            (file, Some(60), true),
            (file, None, false),
            (admin, None, true),
            (file, Some(0), false),
            (admin, Some(600), false),
            (file, None, true),
            (analysis, Some(0), true),
            (admin, None, false),
        ] {
            board.set(source, &said(shield), at(1));
            assert_eq!(board.shield_holds(at(2)), holds, "{source:?} said {shield:?}");
        }
    }

    #[test]
    fn every_mode_survives_its_atomic() {
        for mode in [Mode::Off, Mode::Observe].into_iter().chain((0..=100).map(share)) {
            assert_eq!(mode_from_bits(mode_to_bits(mode)), mode);
        }
    }
}
