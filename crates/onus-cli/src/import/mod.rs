//! `onus config import`: a configuration of the sidecar from the retries of others. What it cannot
//! say is told with its place.

mod callees;
mod calls;
mod errors;
mod retry;
mod yaml;

use std::io::Write;

use anyhow::Context;
use onus_proxy::{ConfigFile, ProxyConfig};
use onus_retry_config::{Place, Why};

use self::callees::Callees;
use crate::audit::retry_config;
use crate::cli::ImportOptions;
use crate::exit::Exit;

/// Something that is not in the result, or not as it was.
struct Lost {
    place: Place,
    why: String,
}

/// Reads the files, and writes what they come to.
pub(crate) fn run(options: &ImportOptions) -> anyhow::Result<Exit> {
    let (config, _) = retry_config(&options.files)?;
    let mut callees = Callees::new(options);
    callees.take(&config);
    let Callees { callees, mut lost, .. } = callees;
    lost.extend(config.unread.into_iter().map(|unread| {
        let why = match unread.why {
            Why::UnknownCondition(word) => format!("the condition `{word}` is not known"),
            why @ (Why::Syntax(_)
            | Why::TooLarge { .. }
            | Why::NothingKnown
            | Why::UnknownKind
            | Why::UnknownField
            | Why::NotA { .. }
            | Why::Missing(_)
            | Why::NotFollowed(_)
            | Why::Unattached(_)) => why.to_string(),
        };
        Lost { place: unread.place, why }
    }));
    lost.sort_by(|one, other| (&one.place, &one.why).cmp(&(&other.place, &other.why)));
    lost.dedup_by(|one, other| one.place == other.place && one.why == other.why);

    let text = yaml::write(options, &callees);
    // What is written is checked before anybody uses it.
    ConfigFile::parse(&text).and_then(ProxyConfig::new)?;
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("write the configuration")?;
    for Lost { place, why } in &lost {
        anstream::eprintln!("not carried over: {place}: {why}");
    }
    if lost.is_empty() { Ok(Exit::Done) } else { Ok(Exit::Incomplete) }
}
