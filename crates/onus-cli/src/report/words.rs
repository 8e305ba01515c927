//! What both forms of the report say.

use onus_api::{Incident, Prevention};

/// `2026-11-30 08:05` in UTC.
pub(super) fn time(millis: u64) -> String {
    let minutes = millis / 60_000;
    let (days, minute) = (minutes / 1_440, minutes % 1_440);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", minute / 60, minute % 60)
}

/// Year, month and day, so many days after the first of January 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted from the first of March of year 0, so that a leap day is the last of its year.
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// The interval and what is likely within it.
pub(super) fn interval(prevention: &Prevention) -> String {
    let Prevention { independent, persistent, mixture } = *prevention;
    let (low, high) = (independent.min(persistent).max(0.0), independent.max(persistent).max(0.0));
    format!("{} ({} to {})", count(mixture.clamp(low, high)), count(low), count(high))
}

/// A count with its thousands apart.
pub(super) fn count(count: f64) -> String {
    // The sum of nothing is -0, which people take for a mistake.
    let digits = format!("{:.0}", count.max(0.0).abs());
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

/// The lines above the tables.
pub(super) fn summary(incident: &Incident) -> Vec<(&'static str, String)> {
    let failed: u64 = incident.minutes.iter().map(|minute| minute.failed).sum();
    let suppressed: u64 = incident.minutes.iter().map(|minute| minute.suppressed).sum();
    let span = match (incident.minutes.first(), incident.minutes.last()) {
        (Some(first), Some(last)) => {
            format!("{} to {} UTC", time(first.at), time(last.at + 60_000))
        }
        (None, _) | (_, None) => "nothing failed".to_owned(),
    };
    let wrong = &incident.false_suppression;
    let cost = match wrong.tried {
        0 => "not known: none was made all the same, as a probe or while observing".to_owned(),
        tried => format!(
            "{} of {} that were made all the same did ({:.1} %; 90 % interval {:.1} % to {:.1} %)",
            wrong.succeeded,
            tried,
            100.0 * wrong.succeeded as f64 / tried as f64,
            100.0 * wrong.interval.0,
            100.0 * wrong.interval.1,
        ),
    };
    let mut lines = Vec::from([
        ("Failures", span),
        ("Origin", incident.origin.clone().unwrap_or_else(|| "unknown".to_owned())),
        ("Failed calls", count(failed as f64)),
        ("Retries suppressed", count(suppressed as f64)),
        ("Retries that direct callers did not make", count(incident.direct)),
        ("Requests prevented in all of the mesh", interval(&incident.total)),
        ("Would suppressed retries have succeeded", cost),
    ]);
    lines.extend(incident.missing.iter().map(|what| ("Not in these figures", what.clone())));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_leap_years_and_turns_of_years() {
        for (millis, text) in [
            (0, "1970-01-01 00:00"),
            (951_782_400_000, "2000-02-29 00:00"),
            (1_709_164_800_000, "2024-02-29 00:00"),
            (1_735_689_599_000, "2024-12-31 23:59"),
            (1_735_689_600_000, "2025-01-01 00:00"),
            (4_107_542_400_000, "2100-03-01 00:00"),
        ] {
            assert_eq!(time(millis), text);
        }
    }

    #[test]
    fn an_interval_has_what_is_likely_within_it() {
        for (independent, persistent, mixture, text) in [
            (100.0, 9_500_000.0, 5_000.4, "5,000 (100 to 9,500,000)"),
            (300.0, 200.0, 250.0, "250 (200 to 300)"),
            (-5.0, 10.0, -1.0, "0 (0 to 10)"),
            (0.0, 10.0, 20.0, "10 (0 to 10)"),
            (-0.0, -0.0, -0.0, "0 (0 to 0)"),
        ] {
            assert_eq!(interval(&Prevention { independent, persistent, mixture }), text);
        }
    }
}
