//! Times by layout: a time that was read prints as a text that reads as the same time.

use kpvm_semantics::layout::{RFC3339, parse};

use crate::target::Target;
use crate::text::{lines, texts};

/// The target.
pub const TARGET: Target = Target {
    name: "layout",
    run,
    seeds,
    words: &[
        "2006", "06", "01", "1", "Jan", "January", "02", "_2", "2", "002", "__2", "15", "03", "3",
        "04", "4", "05", "5", ".000", ".999", ",000", "PM", "pm", "MST", "Z0700", "Z07:00",
        "-0700", "-07:00", "-07", "Z070000", "Mon", "Monday", "T", "UTC", "+01:00", "\n",
    ],
    max_bytes: 256,
};

/// The first line is the layout, the rest the time.
pub fn run(input: &[u8]) {
    let Some([layout, text]) = lines::<2>(input) else {
        return;
    };
    let Ok(time) = parse(layout, text) else {
        return;
    };
    let second = 1_000_000_000;
    let civil = time.civil();
    assert!(
        (1..=12).contains(&civil.month) && (1..=31).contains(&civil.day),
        "{text}"
    );
    assert_eq!(time.since(time), 0);
    let shown = time.text();
    let Ok(again) = parse(RFC3339, &shown) else {
        // Offsets of more than a day and years beyond 9999 are printed, but not read.
        assert!(
            time.offset.abs() >= 86_400 || !(0..=9999).contains(&civil.year),
            "{shown}"
        );
        return;
    };
    if time.offset % 60 == 0 {
        let (expected, found) = (
            time.nanoseconds.div_euclid(second),
            again.nanoseconds.div_euclid(second),
        );
        assert_eq!(expected, found, "{shown}");
    }
    assert_eq!(again.text(), shown);
}

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "2006-01-02T15:04:05Z07:00\n2023-01-02T03:04:05+01:00",
        "Mon, 02 Jan 2006 15:04:05 MST\nMon, 02 Jan 2023 03:04:05 UTC",
        "Jan _2 15:04:05.000\nFeb  3 04:05:06.789",
        "2006-002\n2024-366",
        "3:04PM\n12:30AM",
        "02/01/06 03:04:05 -0700\n31/12/99 11:59:59 -2359",
        "January 2, 2006\nMarch 31, 2001",
        "2006-01-02 15:04:05.999999999 -0700 MST\n2023-01-02 03:04:05.5 +0100 CET",
    ])
}
