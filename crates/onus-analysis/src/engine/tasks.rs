//! What goes on beside requests: ends, the overrides file, minutes of a PromQL store.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Analysis, Job, Shared};
use crate::clock::Millis;
use crate::overrides_file::{self, Watched};
use crate::promql::{BACK_MAX, Source};

/// Wakes the engine when something ends that operators have said, so that agents are told in time.
pub(super) async fn end_in_time(shared: Weak<Shared>) {
    loop {
        let Some(analysis) = shared.upgrade() else { return };
        let mut changes = analysis.changes.subscribe();
        let now = Millis::now();
        let next = analysis.book().said.next_end(now);
        let jobs = analysis.jobs.clone();
        drop(analysis);
        let end = async {
            match next {
                Some(end) => {
                    tokio::time::sleep(Duration::from_millis(end.saturating_sub(now))).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = end => if jobs.send(Job::End(Millis::now())).await.is_err() { return },
        }
    }
}

/// Lets the overrides of the file hold that the configuration names; where it names none, none of
/// an earlier one does.
pub(super) async fn follow_overrides(shared: Weak<Shared>) {
    let path = shared.upgrade().and_then(|shared| shared.config.overrides.clone());
    let by = path.as_ref().map_or_else(
        || "a configuration without an overrides file".to_owned(),
        |path| path.display().to_string(),
    );
    let mut watched = path.map(Watched::new);
    loop {
        let looked = tokio::task::spawn_blocking(move || {
            let look = watched.as_mut().map_or(Some(Ok(Vec::new())), Watched::look);
            (watched, look)
        });
        let Ok((back, look)) = looked.await else { return };
        watched = back;
        let Some(analysis) = shared.upgrade().map(Analysis) else { return };
        let mut done = true;
        match look {
            None => {}
            Some(Ok(asked)) => {
                let changes = {
                    let overrides = &analysis.book().said.overrides;
                    overrides_file::changes(overrides, asked, Millis::now())
                };
                let held = match changes {
                    Ok(changes) if changes.is_empty() => Ok(()),
                    Ok(changes) => {
                        analysis.change(changes, by.clone()).await.map_err(|why| format!("{why:?}"))
                    }
                    Err(why) => Err(why),
                };
                done = held.is_ok();
                if let Err(why) = held {
                    tracing::warn!(why, "onus analysis: the overrides of the file do not hold yet");
                }
                analysis.0.overrides_file_usable.store(true, Ordering::Relaxed);
            }
            Some(Err(error)) => {
                let why = error.with_causes();
                tracing::error!(
                    why,
                    "onus analysis: the overrides file cannot be used; what it said before holds"
                );
                analysis.0.overrides_file_usable.store(false, Ordering::Relaxed);
            }
        }
        drop(analysis);
        match &mut watched {
            None if done => return,
            Some(watched) if !done => watched.forget(),
            None | Some(_) => {}
        }
        tokio::time::sleep(overrides_file::LOOK).await;
    }
}

/// Reads minutes back from a PromQL store for as long as the analysis runs.
pub(super) async fn follow(source: Source, shared: Weak<Shared>) {
    let mut done = None;
    loop {
        let Some(analysis) = shared.upgrade().map(Analysis) else { return };
        let last = source.last(Millis::now());
        // After a restart it goes on where it was, but not from the beginning of time.
        let before = *done.get_or_insert_with(|| analysis.book().last_promql_minute());
        let first =
            if before == 0 { last } else { (before + 1).max(last.saturating_sub(BACK_MAX)) };
        for number in first..=last {
            match analysis.take_minute(&source, number).await {
                Ok(()) => done = Some(number),
                Err(why) => {
                    tracing::warn!(
                        why,
                        number,
                        "onus analysis: a minute cannot be read from the store; it is read later"
                    );
                    break;
                }
            }
        }
        let pause = analysis.config().minute / 4;
        drop(analysis);
        tokio::time::sleep(pause).await;
    }
}
