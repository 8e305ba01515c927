//! What a process has used, as the kernel says.

use std::fs;
use std::io;

/// What a process has used since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Time on a CPU in nanoseconds, exact.
    pub(crate) cpu_ns: u64,
    /// Ticks in its own code, sampled: good for the share only.
    pub(crate) user_ticks: u64,
    /// Ticks in the kernel, sampled.
    pub(crate) system_ticks: u64,
    /// How often a thread went to sleep.
    pub(crate) voluntary_switches: u64,
}

impl Usage {
    /// All threads of a process together.
    ///
    /// # Errors
    ///
    /// Where there is no such process, or its files say something else than Linux writes.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let mut usage = Self::default();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        (usage.user_ticks, usage.system_ticks) = ticks(&stat).ok_or_else(|| odd("stat"))?;
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let task = task?.path();
            // A thread may end between the list and the look at it.
            let Ok(schedstat) = fs::read_to_string(task.join("schedstat")) else { continue };
            let Ok(status) = fs::read_to_string(task.join("status")) else { continue };
            usage.cpu_ns += on_cpu_ns(&schedstat).ok_or_else(|| odd("schedstat"))?;
            let switches = field(&status, "voluntary_ctxt_switches:");
            usage.voluntary_switches += switches.ok_or_else(|| odd("status"))?;
        }
        Ok(usage)
    }

    /// What was used between two looks.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            user_ticks: self.user_ticks.saturating_sub(before.user_ticks),
            system_ticks: self.system_ticks.saturating_sub(before.system_ticks),
            voluntary_switches: self.voluntary_switches.saturating_sub(before.voluntary_switches),
        }
    }
}

/// Memory of a process that is in RAM, in MB of 1024 * 1024 bytes.
pub(crate) fn resident_mb(pid: u32) -> io::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kilobytes = field(&status, "VmRSS:").ok_or_else(|| odd("status"))?;
    Ok(kilobytes as f64 / 1024.0)
}

/// The first number of `schedstat`: time on a CPU.
fn on_cpu_ns(schedstat: &str) -> Option<u64> {
    let mut numbers = schedstat.split_ascii_whitespace().map(str::parse::<u64>);
    let first = numbers.next()?.ok()?;
    // Time waited, and time slices: with fewer it is another file.
    (numbers.by_ref().take(2).filter(Result::is_ok).count() == 2).then_some(first)
}

/// `utime` and `stime` of `stat`, the 14th and 15th field. The second is the name of the program in
/// parentheses, which may contain anything.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// A number of `status` by its name.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn odd(file: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{file} of a process is not as expected"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedstat_is_time_waited_and_slices() {
        fn check(text: &str, expected: Option<u64>) {
            assert_eq!(on_cpu_ns(text), expected, "{text:?}");
        }
        check("1234567890 42 7\n", Some(1_234_567_890));
        check("0 0 0\n", Some(0));
        check("18446744073709551615 0 0\n", Some(u64::MAX));
        check("12 13\n", None);
        check("x 13 14\n", None);
        check("", None);
    }

    #[test]
    fn a_name_may_contain_what_separates_fields() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 110 42 15 16 20 0 1";
        assert_eq!(ticks(&format!("7 (envoy) {rest}")), Some((110, 42)));
        assert_eq!(ticks(&format!("7 (a b) c) {rest}")), Some((110, 42)));
        assert_eq!(ticks("7 (envoy) S 1 2"), None);
        assert_eq!(ticks("7 envoy"), None);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status =
            "nonvoluntary_ctxt_switches:\t3\nvoluntary_ctxt_switches:\t9\nVmRSS:\t  20480 kB\n";
        assert_eq!(field(status, "voluntary_ctxt_switches:"), Some(9));
        assert_eq!(field(status, "VmRSS:"), Some(20_480));
        assert_eq!(field(status, "VmSwap:"), None);
    }

    #[test]
    fn what_a_process_uses_grows() {
        let mut busy = std::process::Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("a shell is there");
        let first = Usage::of(busy.id()).unwrap();
        // Each look takes some microseconds, so this ends in seconds.
        let mut looks = (0..100_000).map(|_| Usage::of(busy.id()).unwrap());
        let grown = looks.find(|usage| usage.since(first).cpu_ns > 1_000_000);
        let resident_mb = resident_mb(busy.id());
        busy.kill().unwrap();
        busy.wait().unwrap();
        let grown = grown.expect("a busy loop uses a CPU");
        assert_eq!(first.since(grown), Usage::default());
        assert!(resident_mb.unwrap() > 0.1);
        assert!(Usage::of(u32::MAX).is_err());
    }
}
