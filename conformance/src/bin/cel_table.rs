//! The table of CEL expressions: `cel_table` compares kpvm with the recorded answers,
//! `cel_table --ask PEER` with those that `benches/peers/bin/cel-oracle` gives to generated
//! expressions, `--record FILE` writes these down. `--all` shows every difference.

#![allow(clippy::print_stdout, clippy::print_stderr)] // a harness talks to people

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use kpvm_conformance::cel_table::{
    Difference, Found, OBJECT, Outcome, Outcomes, Row, differences, generate, read_rows, recorded,
    violations,
};
use serde_json::{Value, json};

/// Differences shown of each kind.
const SHOWN: usize = 20;

fn main() -> ExitCode {
    let (mut peer, mut read, mut file, mut shown) = (None, None, None, SHOWN);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--ask" => peer = arguments.next().map(PathBuf::from),
            "--read" => read = arguments.next().map(PathBuf::from),
            "--record" => file = arguments.next().map(PathBuf::from),
            "--all" => shown = usize::MAX,
            _ => {
                eprintln!("usage: cel_table [--ask PEER | --read FILE] [--record FILE] [--all]");
                return ExitCode::from(2);
            }
        }
    }
    let rows = match (&peer, &read) {
        (Some(peer), _) => ask(peer, generate::expressions()),
        (None, Some(file)) => kpvm_golden::read_file(file)
            .and_then(|text| read_rows(&text))
            .map_err(|error| error.to_string()),
        (None, None) => recorded().map_err(|error| error.to_string()),
    };
    let rows = match rows {
        Ok(rows) => rows,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if let Some(file) = file {
        let lines = rows.iter().map(|row| json!(row).to_string() + "\n");
        if let Err(error) = std::fs::write(&file, lines.collect::<String>()) {
            eprintln!("{}: {error}", file.display());
            return ExitCode::from(2);
        }
    }
    match compare(&rows, shown) {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Answers of the peer.
fn ask(peer: &PathBuf, expressions: Vec<String>) -> Result<Vec<Row>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", peer.display());
    let mut child = Command::new(peer)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let object: Value = serde_json::from_str(OBJECT).map_err(|error| error.to_string())?;
    let mut input = String::new();
    for (index, expression) in expressions.iter().enumerate() {
        let question = match index {
            0 => json!({"object": object, "expression": expression}),
            _ => json!({"expression": expression}),
        };
        input.push_str(&question.to_string());
        input.push('\n');
    }
    let stdin = child.stdin.take();
    let writer = std::thread::spawn(move || -> std::io::Result<()> {
        match stdin {
            Some(mut stdin) => stdin.write_all(input.as_bytes()),
            None => Ok(()),
        }
    });
    let mut rows = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        for (line, expression) in BufReader::new(stdout).lines().zip(expressions) {
            let line = line.map_err(failed)?;
            let outcomes: Outcomes =
                serde_json::from_str(&line).map_err(|error| error.to_string())?;
            rows.push(Row {
                expression,
                outcomes,
            });
        }
    }
    writer
        .join()
        .map_err(|_| "the writer panicked".to_owned())?
        .map_err(failed)?;
    child.wait().map_err(failed)?;
    Ok(rows)
}

/// Prints the differences; returns the number of those that are not as the list says.
fn compare(rows: &[Row], shown: usize) -> usize {
    let found = differences(rows);
    for difference in [Difference::Status, Difference::Message] {
        let of_kind: Vec<&Found<'_>> = found
            .iter()
            .filter(|found| found.difference == difference)
            .collect();
        for found in of_kind.iter().take(shown) {
            println!("{} ({})", found.row.expression, found.kind);
            println!("    {}", text(found.theirs));
            println!("    {}", text(&found.ours));
        }
        println!(
            "{difference:?}: {} of {} answers differ",
            of_kind.len(),
            rows.len() * 2
        );
    }
    let violations = violations(&found);
    for violation in violations.iter().take(shown) {
        println!("{violation}");
    }
    println!("{} are not as listed", violations.len());
    violations.len()
}

fn text(outcome: &Outcome) -> String {
    format!(
        "{}: {}",
        outcome.status,
        outcome.message.replace('\n', "\\n")
    )
}
