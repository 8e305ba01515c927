//! `onus analysis`: runs the dependency analysis until it is told to end.

use std::path::Path;

use onus_analysis::{Analysis, AnalysisConfig, Server};

use super::backup::backup;
use super::block_on;
use crate::cli::{AnalysisCommand, AnalysisOptions};
use crate::exit::Refused;

pub(crate) fn run(options: &AnalysisOptions) -> anyhow::Result<()> {
    if let Some(AnalysisCommand::Backup { file, server }) = &options.command {
        return backup(file, server);
    }
    // The parser asks for one where there is no command.
    let path = options.config.as_deref().unwrap_or_else(|| Path::new(""));
    let mut config = AnalysisConfig::read(path).map_err(|error| Refused(error.with_causes()))?;
    if let Some(listen) = options.listen {
        config.listen = listen;
    }
    block_on(async {
        let analysis = Analysis::start(config)?;
        let server = Server::bind(analysis.clone()).await?;
        // On standard error, as every log line: whoever starts it with port 0 reads it there.
        anstream::eprintln!(
            "onus analysis: listening on {}://{}",
            server.scheme(),
            server.address()?
        );
        server.serve(end()).await?;
        analysis.finish().await;
        Ok(())
    })
}

/// SIGTERM or an interrupt.
async fn end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    }
    #[cfg(not(unix))]
    let _ = tokio::signal::ctrl_c().await;
}
