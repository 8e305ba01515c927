//! `onus config`: what is typed for the sidecar and for the analysis.

use std::io::Write;
use std::path::Path;

use onus_analysis::{AnalysisConfig, AnalysisFile, ConfigError};
use onus_proxy::{ConfigFile, Overrides};

use crate::cli::{ConfigCommand, ConfigOptions, Whose};
use crate::exit::{Exit, Refused};
use crate::import;

/// Checks, shows or explains a configuration.
pub(crate) fn run(options: &ConfigOptions) -> anyhow::Result<Exit> {
    let text = match (&options.command, options.of) {
        (ConfigCommand::Validate { file }, Whose::Proxy) => {
            ConfigFile::explain(file, &Overrides::from_env()).map(|_| String::new())?
        }
        (ConfigCommand::Show { file }, Whose::Proxy) => {
            ConfigFile::explain(file, &Overrides::from_env())?
        }
        (ConfigCommand::Example, Whose::Proxy) => ConfigFile::example().to_owned(),
        (ConfigCommand::Schema, Whose::Proxy) => ConfigFile::schema(),
        (ConfigCommand::Import(options), Whose::Proxy) => return import::run(options),
        (ConfigCommand::Import(_), Whose::Analysis) => {
            let says = "there is nothing to import for the analysis".to_owned();
            return Err(Refused(says).into());
        }
        (ConfigCommand::Validate { file }, Whose::Analysis) => {
            shown_of_analysis(file).map(|_| String::new())?
        }
        (ConfigCommand::Show { file }, Whose::Analysis) => shown_of_analysis(file)?,
        (ConfigCommand::Example, Whose::Analysis) => AnalysisFile::example().to_owned(),
        (ConfigCommand::Schema, Whose::Analysis) => AnalysisFile::schema(),
    };
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(Exit::Done)
}

fn shown_of_analysis(path: &Path) -> Result<String, ConfigError> {
    let file = AnalysisFile::read(path)?;
    AnalysisConfig::of(file.clone(), path)?;
    file.show()
}
