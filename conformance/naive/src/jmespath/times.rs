//! Functions of time (docs/spec/jmespath.md §11).

use kpvm_semantics::FunctionError;
use kpvm_semantics::duration;
use kpvm_semantics::layout;
use kpvm_semantics::time::Time;

use super::evaluate::{Datum, Evaluated};
use crate::failure::Failure;

const RFC3339: &str = "2006-01-02T15:04:05Z07:00";
const SECOND: i128 = 1_000_000_000;
/// Seconds from the year 1 to 1970.
const YEAR_ONE: i128 = 62_135_596_800;

fn time(layout: &str, text: &str) -> Result<Time, Failure> {
    layout::parse(layout, text).map_err(Failure::Error)
}

fn span(text: &str) -> Result<i64, Failure> {
    duration::parse_or_problem(text).map_err(|error| match error {
        FunctionError::Failed(text) => Failure::Error(text),
        FunctionError::Refused(_) => Failure::NotDone("a duration"),
    })
}

pub(super) fn call(name: &str, arguments: &[&str]) -> Evaluated {
    let text = |at: usize| arguments.get(at).copied().unwrap_or_default();
    let (first, second) = (text(0), text(1));
    let answer = |text: String| Ok(Datum::Json(text.into()));
    let truth = |value: bool| Ok(Datum::Json(value.into()));
    match name {
        "time_since" => {
            let layout = if first.is_empty() { RFC3339 } else { first };
            let start = time(layout, second)?;
            if text(2).is_empty() {
                return Err(Failure::NotDone("the clock"));
            }
            answer(duration::format(time(layout, text(2))?.since(start)))
        }
        "time_diff" => {
            let start = time(RFC3339, first)?;
            answer(duration::format(time(RFC3339, second)?.since(start)))
        }
        "time_add" => {
            let start = time(RFC3339, first)?;
            answer(start.with_nanoseconds(span(second)?).text())
        }
        "time_utc" => answer(time(RFC3339, first)?.shown_at(0).text()),
        "time_parse" => match first.parse::<i64>() {
            Ok(_) => match second.parse::<i64>() {
                Ok(seconds) => answer(Time::from_seconds(seconds).text()),
                Err(error) => {
                    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
                    let reason = match error.kind() {
                        PosOverflow | NegOverflow => "value out of range",
                        _ => "invalid syntax",
                    };
                    let quoted = layout::quote(second.as_bytes());
                    Err(Failure::error(format!(
                        "strconv.ParseInt: parsing {quoted}: {reason}"
                    )))
                }
            },
            Err(_) => answer(time(first, second)?.text()),
        },
        "time_to_cron" => {
            let time = time(RFC3339, first)?;
            let civil = time.civil();
            let seconds = time.nanoseconds.div_euclid(SECOND) + i128::from(time.offset);
            // 1970-01-01 was a Thursday.
            let weekday = (seconds.div_euclid(86_400) + 4).rem_euclid(7);
            answer(format!(
                "{} {} {} {} {weekday}",
                civil.clock / 60 % 60,
                civil.clock / 3600,
                civil.day,
                civil.month
            ))
        }
        "time_before" => {
            let start = time(RFC3339, first)?;
            truth(start.nanoseconds < time(RFC3339, second)?.nanoseconds)
        }
        "time_after" => {
            let start = time(RFC3339, first)?;
            truth(start.nanoseconds > time(RFC3339, second)?.nanoseconds)
        }
        "time_between" => {
            let middle = time(RFC3339, first)?.nanoseconds;
            let start = time(RFC3339, second)?.nanoseconds;
            let end = time(RFC3339, text(2))?.nanoseconds;
            truth(start < middle && middle < end)
        }
        "time_truncate" => {
            let time = time(RFC3339, first)?;
            let step = i128::from(span(second)?);
            if step <= 0 {
                return answer(time.text());
            }
            let since_year_one = time.nanoseconds + YEAR_ONE * SECOND;
            let rest = since_year_one.rem_euclid(step);
            let truncated = Time {
                nanoseconds: time.nanoseconds - rest,
                offset: time.offset,
            };
            answer(truncated.text())
        }
        _ => Err(Failure::NotDone("the clock")),
    }
}
