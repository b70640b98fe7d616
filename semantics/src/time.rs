//! A point in time with its display offset, as printed by Go's `time.Time`
//! (docs/spec/jmespath.md §11).

use crate::calendar::{Civil, DAY, civil, days_from_civil, days_in_month};

const NANOSECONDS: i128 = 1_000_000_000;

/// A point in time and its display offset.
#[derive(Debug, Clone, Copy)]
pub struct Time {
    /// Nanoseconds since 1970 in UTC.
    pub nanoseconds: i128,
    /// Seconds east of UTC.
    pub offset: i64,
}

/// Whether a text has the most common RFC 3339 form, `2006-01-02T15:04:05Z`.
pub fn is_plain_rfc3339(text: &[u8]) -> bool {
    let &[
        y0,
        y1,
        y2,
        y3,
        b'-',
        m0,
        m1,
        b'-',
        d0,
        d1,
        b'T',
        h0,
        h1,
        b':',
        i0,
        i1,
        b':',
        s0,
        s1,
        b'Z',
    ] = text
    else {
        return false;
    };
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0, |number, digit| {
            let digit = i64::from(digit.wrapping_sub(b'0'));
            (digit < 10).then_some(number * 10 + digit)
        })
    };
    let parts = [
        number(&[y0, y1, y2, y3]),
        number(&[m0, m1]),
        number(&[d0, d1]),
        number(&[h0, h1]),
        number(&[i0, i1]),
        number(&[s0, s1]),
    ];
    let [
        Some(year),
        Some(month),
        Some(day),
        Some(hour),
        Some(minute),
        Some(second),
    ] = parts
    else {
        return false;
    };
    (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
}

impl Time {
    /// From a date and the seconds since midnight, both at `offset`.
    pub fn from_civil(year: i64, month: i64, day: i64, clock: i64, offset: i64) -> Time {
        let days = days_from_civil(year, month, day);
        Time {
            nanoseconds: i128::from(days * DAY + clock - offset) * NANOSECONDS,
            offset,
        }
    }

    /// The same point in time at another offset.
    pub fn shown_at(self, offset: i64) -> Time {
        Time { offset, ..self }
    }

    /// Adds nanoseconds, at the same offset.
    pub fn with_nanoseconds(self, nanoseconds: i64) -> Time {
        Time {
            nanoseconds: self.nanoseconds + i128::from(nanoseconds),
            ..self
        }
    }

    /// From seconds since 1970, at offset UTC.
    pub fn from_seconds(seconds: i64) -> Time {
        Time {
            nanoseconds: i128::from(seconds) * NANOSECONDS,
            offset: 0,
        }
    }

    /// Date and time of day at its offset.
    pub fn civil(self) -> Civil {
        let seconds = self.nanoseconds.div_euclid(NANOSECONDS) + i128::from(self.offset);
        civil(seconds.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    /// RFC 3339 without fraction.
    pub fn text(self) -> String {
        let civil = self.civil();
        let sign = if civil.year < 0 { "-" } else { "" };
        let (year, month, day) = (civil.year.abs(), civil.month, civil.day);
        let (hour, minute, second) = (civil.clock / 3600, civil.clock / 60 % 60, civil.clock % 60);
        let zone = if self.offset == 0 {
            "Z".to_owned()
        } else {
            let sign = if self.offset < 0 { '-' } else { '+' };
            let minutes = self.offset.abs() / 60;
            format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
        };
        format!("{sign}{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}")
    }

    /// Duration since `earlier`, clamped to the range of durations.
    pub fn since(self, earlier: Time) -> i64 {
        let difference = self.nanoseconds - earlier.nanoseconds;
        difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}
