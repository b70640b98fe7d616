//! Report writers: what they write is read back by a reader of the format.

use kpvm_cli::place::Place;
use kpvm_cli::report::entry::{Entries, Entry, Level, Notice, RuleFacts, demand};
use kpvm_cli::report::section::Sections;
use kpvm_cli::report::{github, junit, markdown, sarif};
use kpvm_cli::scan::{Outcome, Summary};
use quick_junit::Report;
use serde_json::Value;

use crate::target::Target;
use crate::text::texts;

/// The target.
pub const TARGET: Target = Target {
    name: "report",
    run,
    seeds,
    words: &[
        "]]>",
        "<failure>",
        "&amp;",
        "&#0;",
        "|",
        "`",
        "```",
        "\\|",
        "[a](b)",
        "<script>",
        "::error file=x::",
        "%0A",
        "\r\n",
        "\u{1b}[2J",
        "\u{202e}",
        "\u{fffe}",
        "\u{0}",
        "\u{2028}",
        "**",
        "_",
        "~~",
        "\n\n",
        "/spec/containers/0/",
        "\u{e0041}",
        "#1",
        "@user",
    ],
    max_bytes: 1 << 10,
};

const OUTCOMES: [Outcome; 5] = [
    Outcome::Pass,
    Outcome::Fail,
    Outcome::Warn,
    Outcome::Error,
    Outcome::Skip,
];

/// Texts between `0xFF` bytes, used in turn for everything that a report shows.
pub fn run(input: &[u8]) {
    let texts: Vec<String> = input
        .split(|byte| *byte == 0xFF)
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect();
    let text = |number: usize| texts[number % texts.len()].as_str();
    let place = Place {
        file: text(6).to_owned(),
        line: 1 + input.len() as u32 % 7,
        column: 1,
        end_column: input.len().is_multiple_of(2).then_some(9),
    };
    let entry = |number: usize| Entry {
        group: text(number).into(),
        rule: format!("{}/{}", text(number + 1), text(number + 2)),
        object: text(number + 3).into(),
        object_id: format!("{number} {}", text(number + 3)).into(),
        outcome: OUTCOMES[number % 5],
        severity: Some("high"),
        message: text(number + 4).into(),
        path: text(number + 5),
        found: text(number + 1),
        place: (!number.is_multiple_of(3)).then_some(&place),
        related: vec![demand(&place)],
    };
    let list: Vec<Entry<'_>> = (0..texts.len().min(10)).map(entry).collect();
    let count = |wanted: Outcome| list.iter().filter(|entry| entry.outcome == wanted).count();
    let counts = OUTCOMES.map(count);
    let mut summary = Summary::default();
    list.iter().for_each(|entry| summary.add(entry.outcome));
    let entries = Entries {
        rules: vec![RuleFacts {
            id: format!("{}/{}", text(1), text(2)),
            title: Some(text(0)),
            description: Some(text(4)),
            category: Some(text(5)),
            severity: Some("low"),
        }],
        entries: list,
        notices: vec![Notice {
            level: Level::Warning,
            file: text(6).into(),
            position: Some((1, 1)),
            message: text(4).into(),
        }],
        summary,
    };
    check_junit(&entries, counts);
    check_sarif(&entries, counts);
    check_github(&entries);
    check_markdown(&entries);
}

fn check_junit(entries: &Entries<'_>, [_, fail, warn, error, skip]: [usize; 5]) {
    let mut out = Vec::new();
    junit::write(entries, &mut out).expect("written to memory");
    let text = String::from_utf8(out).expect("UTF-8");
    let report =
        Report::deserialize_from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!((report.failures, report.errors), (fail, error), "{text}");
    // A notice of a warning is skipped too.
    assert_eq!(report.skipped, warn + skip + 1, "{text}");
    assert_eq!(report.tests, entries.entries.len() + 1);
    let forbidden = |character: char| matches!(character, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    assert!(!text.contains(forbidden), "{text}");
}

fn check_sarif(entries: &Entries<'_>, [_, fail, warn, error, _]: [usize; 5]) {
    let mut out = Vec::new();
    sarif::write(entries, &mut out).expect("written to memory");
    let document: Value = serde_json::from_slice(&out).expect("JSON");
    let run = &document["runs"][0];
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), fail + warn + error);
    for result in results {
        if let Some(index) = result["ruleIndex"].as_u64() {
            assert_eq!(
                run["tool"]["driver"]["rules"][index as usize]["id"],
                result["ruleId"]
            );
        }
    }
}

fn check_github(entries: &Entries<'_>) {
    let mut out = Vec::new();
    github::write(entries, &mut out).expect("written to memory");
    let text = String::from_utf8(out).expect("UTF-8");
    for line in text.lines() {
        let rest = line
            .strip_prefix("::error ")
            .or(line.strip_prefix("::warning "));
        let rest = rest
            .or(line.strip_prefix("::error"))
            .or(line.strip_prefix("::warning"));
        let (properties, _) = rest
            .expect("a command")
            .split_once("::")
            .expect("a message");
        for property in properties
            .split(',')
            .filter(|property| !property.is_empty())
        {
            let (name, value) = property.split_once('=').expect("a property");
            assert!(
                ["file", "line", "col", "endColumn", "title"].contains(&name),
                "{line}"
            );
            assert!(!value.is_empty(), "{line}");
        }
        assert!(!line.contains(['\r', '\u{1b}', '\u{202e}']), "{line}");
    }
}

fn check_markdown(entries: &Entries<'_>) {
    let mut out = Vec::new();
    let mut rows = Sections::default();
    rows.add(markdown::section(&entries.entries), "")
        .expect("kept in memory");
    markdown::write(entries, &mut rows, &mut out).expect("written to memory");
    let text = String::from_utf8(out).expect("UTF-8");
    let rows = text.lines().filter(|line| line.starts_with('|'));
    for row in rows {
        let columns = row.replace("\\|", "").matches('|').count() - 1;
        assert!((3..=6).contains(&columns), "{text}");
    }
    assert!(!text.contains("<script"), "{text}");
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = texts(&[
        "text",
        "a|b `c` <script>alert(1)</script> [a](b)",
        "]]> & \u{1b}[2J \u{0}",
        "::error file=x::y %0A\r\n",
        "",
    ]);
    let many = [&b"group\xffrule\xffPod a/b\xffthe message | has ]]> all\xff/spec/\xffpolicy.yaml\xff\xff\xfe\xffx"[..]];
    seeds.extend(many.map(<[u8]>::to_vec));
    seeds
}
