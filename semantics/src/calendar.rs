//! The proleptic Gregorian calendar: converts between dates and days since 1970.

/// Seconds of a day.
pub const DAY: i64 = 86_400;

/// Days from 0000-03-01 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;

/// Whether the year has a 29 February.
pub fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Number of days of a month, counted from 1.
pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // In years that begin in March, the leap day is the last day of the year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let years = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    years + (153 * month + 2) / 5 + day - 1 - DAYS_TO_1970
}

/// A date and time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// The year; may be negative.
    pub year: i64,
    /// From 1 to 12.
    pub month: i64,
    /// From 1.
    pub day: i64,
    /// Seconds since midnight.
    pub clock: i64,
    /// From Sunday, which is 0.
    pub weekday: i64,
    /// From 1 January, which is 0.
    pub day_of_year: i64,
}

/// The date and time of day of seconds since 1970.
pub fn civil(seconds: i64) -> Civil {
    let (days, clock) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let shifted = days + DAYS_TO_1970;
    // A cycle of 400 years has 146,097 days.
    let (cycle, of_cycle) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let of = (of_cycle - of_cycle / 1_460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * of + of / 4 - of / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = of + cycle * 400 + i64::from(month <= 2);
    Civil {
        year,
        month,
        day: of_year - (153 * shifted_month + 2) / 5 + 1,
        clock,
        weekday: (days + 4).rem_euclid(7),
        day_of_year: days - days_from_civil(year, 1, 1),
    }
}
