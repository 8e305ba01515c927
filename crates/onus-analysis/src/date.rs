//! Points in time as people type them: `2030-12-31`, or `2030-12-31T18:00:00Z` (RFC 3339, UTC).

use crate::clock::Millis;

pub(crate) fn parse(text: &str) -> Option<Millis> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, time.strip_suffix(['Z', 'z'])?),
        None => (text, "00:00:00"),
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let in_range = year >= 1970 && hour < 24 && minute < 60 && second < 60;
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let length = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !in_range || !(1..=length).contains(&day) {
        return None;
    }
    // Years begin in March, so that the day that some of them lack is their last.
    let years = if month > 2 { year } else { year - 1 };
    let months = (month + 9) % 12;
    let days = 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day;
    let since_1970 = days.checked_sub(719_469)?;
    Some(Millis((((since_1970 * 24 + hour) * 60 + minute) * 60 + second) * 1000))
}

/// A point in time as it is typed.
pub(crate) fn show(time: Millis) -> String {
    let seconds = time.0 / 1000;
    let [hour, minute, second] = [seconds / 3600 % 24, seconds / 60 % 60, seconds % 60];
    // Days since the first of March of the year 0, in cycles of 400 years.
    let days = seconds / 86_400 + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    let year = 400 * cycle + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Numbers of so many digits each.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(between);
    let mut numbers = [0; 3];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits)?;
        *number = part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("1970-01-01", Some(0)),
            ("1970-01-02T00:00:01Z", Some(86_401)),
            ("2000-02-29", Some(951_782_400)),
            ("2001-09-09T01:46:40Z", Some(1_000_000_000)),
            ("2024-12-31T23:59:59Z", Some(1_735_689_599)),
            ("2100-03-01", Some(4_107_542_400)),
            ("2100-02-29", None),
            ("2027-02-29", None),
            ("2027-13-01", None),
            ("2027-00-01", None),
            ("2027-04-31", None),
            ("1969-12-31", None),
            ("2027-01-01T24:00:00Z", None),
            ("2027-01-01T10:00:00", None),
            ("2027-01-01T10:00Z", None),
            ("2027-1-1", None),
            ("2027-01-01-01", None),
            ("+027-01-01", None),
            ("tomorrow", None),
        ] {
            let time = seconds.map(|seconds: u64| Millis(seconds * 1000));
            assert_eq!(parse(text), time, "{text}");
            if let Some(time) = time {
                let shown = show(time);
                assert!(shown.starts_with(text) && parse(&shown) == Some(time), "{text}: {shown}");
            }
        }
        // Each day of the years in which leap years have their exceptions.
        for day in (10_957..11_688).chain(47_482..48_213) {
            let time = Millis(day * 86_400_000);
            assert_eq!(parse(&show(time)), Some(time), "{day}");
        }
    }
}
