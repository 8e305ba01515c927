//! The families of the service as a whole: mode, shield, and how full its tables are.

use std::fmt;
use std::sync::atomic::Ordering;

use onus_core::{Mode, Share, Timestamp};

use super::family::Page;
use crate::agent::Agent;

pub(super) fn encode(agent: &Agent, now: Timestamp, page: &mut Page<'_>) -> fmt::Result {
    mode(agent, page)?;
    switches(agent, now, page)?;
    tables(agent, now, page)?;
    let help = "Faults inside Onus; the request passed unchanged each time.";
    page.counters("onus_faults", help)?.add(&[("service", &**agent.service())], agent.faults.get())
}

fn mode(agent: &Agent, page: &mut Page<'_>) -> fmt::Result {
    let service = &**agent.service();
    let in_force = agent.mode();
    let help = "1 for the mode in force, 0 for the others.";
    let mut family = page.gauges("onus_mode", help)?;
    for mode in [Mode::Off, Mode::Observe, Mode::ENFORCE] {
        let is = f64::from(u8::from(mode.as_str() == in_force.as_str()));
        family.add(&[("service", service), ("mode", mode.as_str())], is)?;
    }
    let help = "The share of requests for which claims decide.";
    let share = match in_force {
        Mode::Off | Mode::Observe => 0.0,
        Mode::Enforce(share) => {
            f64::from(share.basis_points()) / f64::from(Share::ALL.basis_points())
        }
    };
    page.gauges("onus_enforce_share_ratio", help)?.add(&[("service", service)], share)
}

fn switches(agent: &Agent, now: Timestamp, page: &mut Page<'_>) -> fmt::Result {
    let service = &**agent.service();
    let help = "How much longer the shield holds; 0 without one.";
    page.gauges("onus_shield_seconds_left", help)?
        .add(&[("service", service)], agent.shield_left(now).as_secs_f64())?;
    let help = "1 while the switch file cannot be read, or says what cannot be meant.";
    let refused = agent.switch_file_refused.load(Ordering::Relaxed);
    page.gauges("onus_switch_file_refused", help)?
        .add(&[("service", service)], f64::from(u8::from(refused)))?;
    let help = "What each source says of mode and shield, who said so and why.";
    let mut family = page.infos("onus_switch", help)?;
    for (source, said) in agent.switches().said() {
        let shield = said.shield.map(|time| time.as_secs().to_string()).unwrap_or_default();
        family.add(&[
            ("service", service),
            ("source", source.as_str()),
            ("mode", said.mode.map_or("", Mode::as_str)),
            ("shield_seconds", &shield),
            ("who", &said.who),
            ("why", &said.why),
        ])?;
    }
    Ok(())
}

fn tables(agent: &Agent, now: Timestamp, page: &mut Page<'_>) -> fmt::Result {
    let service = &**agent.service();
    agent.correlator().forget(now);
    let occupancy = agent.correlator().occupancy();
    let help = "What found no room in a bounded table; no request is lost by it.";
    let mut family = page.counters("onus_overflows", help)?;
    for (table, count) in [
        ("edges", agent.edge_table().overflows.get()),
        ("procedures", agent.procedures().overflows.get()),
        ("names", agent.symbols().refused()),
        ("requests", occupancy.refused),
        ("ids", occupancy.unlisted),
        ("calls", agent.overflowing.calls.get()),
        ("failed-calls", agent.overflowing.failed_calls.get()),
    ] {
        family.add(&[("service", service), ("table", table)], count)?;
    }
    let help = "Calls whose ids several requests have, so that they are tied to none.";
    page.counters("onus_ambiguous_calls", help)?
        .add(&[("service", service)], agent.ambiguous.get())?;
    let help = "Requests of untrusted callers whose headers of Onus, or vetoes, were taken out.";
    page.counters("onus_forged_requests", help)?
        .add(&[("service", service)], agent.forged.get())?;
    let help = "Live requests and their ids, by which calls are tied to requests.";
    let mut family = page.gauges("onus_correlation_entries", help)?;
    for (table, entries) in [("requests", occupancy.live), ("ids", occupancy.ids)] {
        family.add(&[("service", service), ("table", table)], entries as f64)?;
    }
    Ok(())
}
