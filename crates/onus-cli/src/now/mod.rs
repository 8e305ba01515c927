//! `onus now`: the first minute of an incident on one screen.

mod figures;
mod screen;
mod source;

use self::figures::Figures;
use crate::analysis::{block_on, json, watch};
use crate::cli::{NowOptions, Output};

pub(crate) fn run(options: &NowOptions) -> anyhow::Result<()> {
    watch(options.watch, options.output, || {
        let (snapshot, source, age) = block_on(source::first(options))?;
        let figures = Figures::of(&snapshot, source, age);
        Ok(match options.output {
            Output::Table => screen::render(&figures),
            Output::Json => json(&figures)?,
        })
    })
}
