//! Looks at the watched switch file: what a host that opens it found, so that it can tell whether
//! the file has changed.

use std::io::{self, ErrorKind, Read};
use std::time::SystemTime;

use crate::switch::SwitchFile;

/// What a look at the switch file found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwitchLook {
    /// There is none.
    Missing,
    /// It is there and cannot be read.
    Unreadable(String),
    /// It has this text.
    Text {
        /// The text.
        text: String,
        /// When it was written, where the file system knows.
        written: Option<SystemTime>,
    },
}

/// The longest file that is read; a switch file has a few lines.
const SIZE_MAX: u64 = 64 * 1024;

impl SwitchLook {
    /// Reads the file that the host has opened, and that was written then.
    pub fn at(opened: io::Result<(impl Read, Option<SystemTime>)>) -> Self {
        let read = opened.and_then(|(file, written)| {
            let mut text = String::new();
            file.take(SIZE_MAX + 1).read_to_string(&mut text)?;
            Ok((text, written))
        });
        match read {
            Ok((text, _)) if text.len() as u64 > SIZE_MAX => {
                Self::Unreadable(format!("more than {SIZE_MAX} bytes"))
            }
            Ok((text, written)) => Self::Text { text, written },
            Err(error) if error.kind() == ErrorKind::NotFound => Self::Missing,
            Err(error) => Self::Unreadable(error.to_string()),
        }
    }

    /// The file as the agent takes it; `now` is the time of the wall.
    #[must_use]
    pub fn file(&self, now: SystemTime) -> SwitchFile<'_> {
        match self {
            Self::Missing => SwitchFile::Missing,
            Self::Unreadable(_) => SwitchFile::Unreadable,
            Self::Text { text, written } => {
                // A file of the future, or of a file system without times, is new.
                let age = written.and_then(|written| now.duration_since(written).ok());
                SwitchFile::Says { text, age: age.unwrap_or_default() }
            }
        }
    }

    /// Why it cannot be read.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Unreadable(error) => Some(error),
            Self::Missing | Self::Text { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_a_look_finds_and_what_the_agent_is_told() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        let said = |text, seconds| SwitchFile::Says { text, age: Duration::from_secs(seconds) };
        let before = |seconds| Some(now - Duration::from_secs(seconds));
        let large = [b'#'; SIZE_MAX as usize + 1];
        for (bytes, written, file, error) in [
            (&b"mode: off"[..], before(7), said("mode: off", 7), None),
            (b"", None, said("", 0), None),
            (b"", Some(now + Duration::from_secs(5)), said("", 0), None),
            (
                b"\xff",
                before(7),
                SwitchFile::Unreadable,
                Some("stream did not contain valid UTF-8"),
            ),
            (&large, before(7), SwitchFile::Unreadable, Some("more than 65536 bytes")),
        ] {
            let look = SwitchLook::at(Ok((bytes, written)));
            assert_eq!((look.file(now), look.error()), (file, error));
        }
        let at_most = SwitchLook::at(Ok((&large[1..], None)));
        assert_eq!(at_most.error(), None);
        let failed = |kind: ErrorKind| SwitchLook::at(Err::<(&[u8], _), _>(kind.into()));
        assert_eq!(failed(ErrorKind::NotFound), SwitchLook::Missing);
        assert_eq!(failed(ErrorKind::NotFound).file(now), SwitchFile::Missing);
        assert_eq!(failed(ErrorKind::PermissionDenied).error(), Some("permission denied"));
    }
}
