//! NDJSON input with more objects than one chunk: `kpvm eval` reports for each object what
//! it reports for it alone, in the order of the lines.

use std::fmt::Write;

use crate::common::{Done, Files};

const POLICY: &str = "\
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: need-team, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  rules:
    - name: team
      match: {any: [{resources: {kinds: [Pod], namespaces: [default, shop]}}]}
      validate:
        message: Say the team.
        pattern: {metadata: {labels: {team: '?*'}}}
";

/// Number of lines; every tenth is something other than a Pod that passes.
const LINES: usize = 4000;

/// The lines: a Pod that fails, one without namespace, one with null labels, a list of two,
/// one in another namespace, something that is not an object, and Pods that pass.
fn lines() -> String {
    let padding = "x".repeat(900);
    let mut text = String::new();
    for number in 0..LINES {
        let metadata = |more: &str| {
            format!("{{\"name\":\"p{number}\",{more}\"annotations\":{{\"a\":\"{padding}\"}}}}")
        };
        let pod = |more: &str| {
            let metadata = metadata(more);
            format!("{{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{metadata}}}")
        };
        let good = pod("\"namespace\":\"shop\",\"labels\":{\"team\":\"a\"},");
        let line = match number % 60 {
            10 => pod("\"namespace\":\"shop\","),
            20 => pod("\"labels\":{\"team\":\"a\"},"),
            30 => pod("\"namespace\":\"shop\",\"labels\":null,"),
            40 => format!("{{\"kind\":\"List\",\"items\":[{good},{good}]}}"),
            50 => pod("\"namespace\":\"elsewhere\","),
            59 if number < 60 => "{\"kind\":".into(),
            _ => good,
        };
        writeln!(text, "{line}").unwrap();
    }
    text
}

/// Number of lines with that position among sixty.
fn so_many(place: usize) -> usize {
    (0..LINES).filter(|number| number % 60 == place).count()
}

fn places(done: &Done, name: &str) -> Vec<usize> {
    let begin = format!("{name}:");
    let after = done.out.split(&begin).skip(1);
    after
        .map(|rest| rest.split(':').next().unwrap().parse().unwrap())
        .collect()
}

#[test]
fn lines_are_judged_in_order_whatever_their_number() {
    let text = lines();
    assert!(text.len() > 3 << 20, "several chunks: {}", text.len());
    let files = Files::new("lines", &[("policy.yaml", POLICY), ("pods.ndjson", &text)]);
    let compiled = files.run("kpc", &["compile", "policy.yaml", "-o", "p.kpb"]);
    assert_eq!(compiled.code, 0, "{}", compiled.err);
    let from_file = files.run("kpvm", &["eval", "p.kpb", "pods.ndjson"]);
    let from_pipe = files.run_with_input("kpvm", &["eval", "p.kpb", "-"], &text);
    for (done, name) in [(&from_file, "pods.ndjson"), (&from_pipe, "<stdin>")] {
        // Only the broken line could not be used.
        assert_eq!(done.code, 2, "{}", done.err);
        assert!(done.err.contains(&format!("{name}:60:")), "{}", done.err);
        assert!(
            done.err.contains("1 input could not be used"),
            "{}",
            done.err
        );
        let failing = so_many(10) + so_many(30);
        // A list counts twice, those in another namespace are ignored, one line is broken.
        let passing = LINES + so_many(40) - failing - so_many(50) - 1;
        let counts = format!("pass: {passing}, fail: {failing}, warn: 0, error: 0, skip: 0\n");
        assert!(done.out.ends_with(&counts), "{}", done.out);
        // Each message is a group, with the lines in order.
        for place in [10, 30] {
            let wrong = (0..LINES).filter(|number| number % 60 == place);
            let expected: Vec<usize> = wrong.map(|number| number + 1).collect();
            let mut found = places(done, name);
            found.retain(|line| line % 60 == place + 1);
            assert_eq!(found, expected);
        }
        assert_eq!(places(done, name).len(), failing);
    }
    assert_eq!(
        from_file.out.replace("pods.ndjson", "<stdin>"),
        from_pipe.out
    );
}

#[test]
fn what_is_no_ndjson_is_read_as_before() {
    let mut text = String::new();
    while text.len() < 2 << 20 {
        let padding = "y".repeat(100_000);
        let pod = format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: a, annotations: {{a: {padding}}}}}\n"
        );
        text.push_str(&pod);
    }
    let files = Files::new("no-lines", &[("policy.yaml", POLICY)]);
    files.run("kpc", &["compile", "policy.yaml", "-o", "p.kpb"]);
    let done = files.run_with_input("kpvm", &["eval", "p.kpb", "-"], &text);
    assert_eq!(done.code, 1, "{}", done.err);
    let counts = format!("fail: {}, ", text.matches("kind: Pod").count());
    assert!(done.out.contains(&counts), "{}", done.out);
}
