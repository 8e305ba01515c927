//! `onus config`: what is typed for the sidecar.

use std::io::Write;

use onus_proxy::{ConfigFile, ProxyConfig};

use crate::cli::{ConfigCommand, ConfigOptions};

/// Checks, shows or explains a configuration.
pub(crate) fn run(options: &ConfigOptions) -> anyhow::Result<()> {
    let text = match &options.command {
        ConfigCommand::Validate { file } => {
            ProxyConfig::new(ConfigFile::read(file)?)?;
            return Ok(());
        }
        ConfigCommand::Show { file } => {
            let file = ConfigFile::read(file)?;
            ProxyConfig::new(file.clone())?;
            file.show()?
        }
        ConfigCommand::Example => ConfigFile::example().to_owned(),
        ConfigCommand::Schema => ConfigFile::schema(),
    };
    Ok(anstream::stdout().write_all(text.as_bytes())?)
}
