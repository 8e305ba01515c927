//! `onus now`: the first minute of an incident on one screen.

mod figures;
mod screen;
mod source;

use std::thread;

use self::figures::Figures;
use crate::analysis::{block_on, json, print};
use crate::cli::{NowOptions, Output};

pub(crate) fn run(options: &NowOptions) -> anyhow::Result<()> {
    loop {
        let (snapshot, source, age) = block_on(source::first(options))?;
        let figures = Figures::of(&snapshot, source, age);
        let text = match options.output {
            Output::Table => screen::render(&figures),
            Output::Json => json(&figures)?,
        };
        if !options.watch {
            return print(&text);
        }
        // Home, the text, and whatever an earlier one has left below.
        print(&format!("\u{1b}[H\u{1b}[2J{text}"))?;
        thread::park_timeout(source::PAUSE);
    }
}
