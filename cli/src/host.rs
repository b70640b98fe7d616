//! What rules may learn from the process: the time and randomness.
//!
//! The clock and the operating system's random numbers come in; a [`Host`] leaves.
//! Data from a cluster, a registry or the network is never asked for: a context entry
//! that needs some makes its rule an error.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kpvm::host::{ExternalQuery, Host, Timestamp};
use serde_json::Value;

/// The process as a host.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessHost;

impl Host for ProcessHost {
    /// In UTC, so that reports do not depend on the local time zone.
    fn now(&mut self) -> Option<Timestamp> {
        let now = clock();
        Some(Timestamp {
            seconds: i64::try_from(now.as_secs()).ok()?,
            nanoseconds: now.subsec_nanos(),
            offset_seconds: 0,
        })
    }

    fn random(&mut self) -> Option<u64> {
        getrandom::u64().ok()
    }

    fn fetch(&mut self, _query: &ExternalQuery<'_>) -> Result<Option<Value>, String> {
        Ok(None)
    }
}

/// The time that a report contains: of the clock, or of the customary variable
/// `SOURCE_DATE_EPOCH` for outputs that come out the same each time. Rules never see it: a
/// verdict must not depend on who set a variable.
pub fn report_time() -> Duration {
    let fixed = std::env::var("SOURCE_DATE_EPOCH")
        .ok()
        .and_then(|text| text.parse().ok())
        .map(Duration::from_secs);
    fixed.unwrap_or_else(clock)
}

fn clock() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}
