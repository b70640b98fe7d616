//! Machine and date of a table.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// One sentence: date, processor, number of its threads, compiler.
pub(crate) fn describe() -> String {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let threads = std::thread::available_parallelism().map_or(0, usize::from);
    let compiler = Command::new("rustc").arg("--version").output();
    let compiler = compiler.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    );
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let (year, month, day) = date(now.map_or(0, |now| now.as_secs() / 86_400) as i64);
    format!(
        "Measured {year:04}-{month:02}-{day:02} on {threads} threads of {} ({} {}), {compiler}, no flags for the processor.",
        model.trim(),
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}

/// The civil date of a number of days since 1970.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}
