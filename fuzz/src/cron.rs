//! `time_to_cron`: the schedule of a time, against the time's own calendar.

use std::str::from_utf8;

use kpvm::document::Numbers;
use kpvm::engine::{Bundle, ExpressionSession};
use kpvm_compiler::expression::compile_expression;
use kpvm_semantics::layout::{RFC3339, parse};
use serde_json::json;
use std::sync::OnceLock;

use crate::target::Target;
use crate::text::texts;

/// The target.
pub const TARGET: Target = Target {
    name: "cron",
    run,
    seeds,
    words: &[
        "2023-01-02T",
        "03:04:05",
        "Z",
        "+01:00",
        "-23:59",
        ".5",
        "0000-",
        "9999-12-31",
        "02-29",
    ],
    max_bytes: 64,
};

/// Runs the harness.
pub fn run(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    static BUNDLE: OnceLock<Bundle<'static>> = OnceLock::new();
    let bundle = BUNDLE.get_or_init(|| {
        let bytes = compile_expression("time_to_cron(@)").expect("an expression");
        Bundle::load(bytes).expect("a compiled bundle loads")
    });
    let mut session = ExpressionSession::new(bundle);
    session
        .set_input(&json!(text), Numbers::Exact)
        .expect("room");
    let answer = session.evaluate(0).map(|answer| answer.to_value());
    match (parse(RFC3339, text), answer) {
        (Ok(time), Ok(answer)) => {
            let answer = answer.expect("a text");
            let fields: Vec<i64> = answer
                .as_str()
                .expect("a text")
                .split(' ')
                .map(|field| field.parse().expect("a number"))
                .collect();
            let [minute, hour, day, month, weekday] = fields[..] else {
                panic!("{answer} has not five fields");
            };
            // The text itself has the local fields.
            let local = |range: std::ops::Range<usize>| {
                text.get(range)
                    .and_then(|digits| digits.parse::<i64>().ok())
            };
            assert_eq!(
                (Some(month), Some(day)),
                (local(5..7), local(8..10)),
                "{text}"
            );
            if let (Some(written), Some(':')) = (local(11..13), text.chars().nth(13)) {
                assert_eq!((hour, Some(minute)), (written, local(14..16)), "{text}");
            }
            // Zeller's congruence, with Sunday as 1.
            let year = local(0..4).expect("a year");
            let (month, year) = if month < 3 {
                (month + 12, year - 1)
            } else {
                (month, year)
            };
            let zeller = (day + 13 * (month + 1) / 5 + year + year.div_euclid(4)
                - year.div_euclid(100)
                + year.div_euclid(400))
            .rem_euclid(7);
            assert_eq!((weekday + 1) % 7, zeller, "{text}");
            assert!(time.text().len() >= 20);
        }
        (Err(_), Err(_)) => {}
        (time, answer) => panic!("{time:?} and {answer:?}"),
    }
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "2023-01-02T03:04:05Z",
        "2024-02-29T23:59:59+01:00",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-12:00",
        "2023-01-02T03:04:05.123456789Z",
        "2023-13-02T03:04:05Z",
        "2023-01-02 03:04:05",
    ])
}
