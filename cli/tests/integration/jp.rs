//! `kpc jp` as a shell sees it (docs/spec/cli.md §11).

use std::io::Write;
use std::process::{Command, Stdio};

const INPUT: &str = "spec:\n  replicas: 2\n  names: [b, a]\n  html: <a>\n---\nsecond: document\n";

/// Exit code, standard output and standard error.
fn jp(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kpc"))
        .arg("jp")
        .args(arguments)
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn query_prints_each_expression_and_its_value() {
    let query = |arguments: &[&str]| {
        let arguments = [&["query", "-i", "-"], arguments].concat();
        let (code, out, err) = jp(&arguments, INPUT);
        assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
        out
    };
    assert_eq!(query(&["spec.replicas"]), "# spec.replicas\n2\n");
    assert_eq!(
        query(&["sort(spec.names)", "spec.html"]),
        "# sort(spec.names)\n[\n  \"a\",\n  \"b\"\n]\n# spec.html\n\"\\u003ca\\u003e\"\n"
    );
    assert_eq!(
        query(&["-c", "spec.names"]),
        "# spec.names\n[\"b\",\"a\"]\n"
    );
    assert_eq!(query(&["-u", "spec.html"]), "# spec.html\n<a>\n");
    // Only the first document counts.
    assert_eq!(
        query(&["second || 'none'"]),
        "# second || 'none'\n\"none\"\n"
    );
}

#[test]
fn expressions_see_the_clock_whatever_the_time_of_reports_is() {
    let query = "time_after(time_now_utc(), '2026-01-01T00:00:00Z')";
    let (code, out, _) = jp(&["query", "-u", "-i", "-", query], "{}");
    assert_eq!((code, out), (0, format!("# {query}\ntrue\n")));
}

#[test]
fn what_is_missing_is_read_from_standard_input() {
    let (code, out, err) = jp(&["query", "spec.replicas"], INPUT);
    assert_eq!((code, out.as_str()), (0, "# spec.replicas\n2\n"));
    assert_eq!(err, "note: reading the input from standard input\n");
    let (code, _, err) = jp(&["query"], "");
    assert_eq!(code, 2);
    assert_eq!(
        err,
        "error: at least one query or input object is required\n"
    );
}

#[test]
fn errors_point_at_their_place() {
    let (code, out, err) = jp(&["query", "-i", "-", "a.b..c", "spec.replicas"], INPUT);
    assert_eq!((code, out.as_str()), (1, "# a.b..c\n# spec.replicas\n2\n"));
    assert!(err.contains("--> <expression>:1:5\n"), "{err}");
    let (code, _, err) = jp(&["query", "-i", "-", "lenght(spec.names)"], INPUT);
    assert_eq!(code, 1);
    insta::assert_snapshot!(err, @r"
    error[expression-fails]: there is no function `lenght`
     --> <expression>:1:1
      |
    1 | lenght(spec.names)
      | ^^^^^^
      |
      = help: did you mean `length`?

    error: unknown function: lenght
    ");
}

#[test]
fn parse_shows_tree_and_code() {
    let (code, out, err) = jp(&["parse", "length(a[?b == 'x'].{c: d}) | @"], "");
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!(out);
}

#[test]
fn functions_are_described() {
    let (code, out, _) = jp(&["function", "join", "to_upper"], "");
    assert_eq!(code, 0);
    insta::assert_snapshot!(out, @r"
    Name: join
      Signature: join(string, array[string])
      Result:    the texts of a list with a separator between
      Note:      the separator comes first

    Name: to_upper
      Signature: to_upper(string)
      Result:    a text in upper case
    ");
    let (_, all, _) = jp(&["function"], "");
    let names = all
        .lines()
        .filter(|line| line.starts_with("Name: "))
        .count();
    assert_eq!(names, kpvm_format::signature::iter().count());
    let (code, _, err) = jp(&["function", "upper"], "");
    assert_eq!(code, 2);
    assert_eq!(
        err,
        "error: there is no function `upper`; did you mean `to_upper`?\n"
    );
}
