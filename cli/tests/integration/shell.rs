//! Output for shells: completions, manual pages, version.

use std::process::Command;

use crate::common::Files;

/// docs/spec/cli.md §11.
#[test]
fn version_in_the_form_of_kyverno() {
    let files = Files::new("version", &[]);
    for program in ["kpc", "kpvm"] {
        let text = files.run(program, &["version"]).out;
        let keys: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split(": ").next())
            .collect();
        assert_eq!(keys, ["Version", "Time", "Git commit ID"]);
        let json = files.run(program, &["version", "-o", "json"]).out;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
        assert!(json["time"].is_string() && json["gitCommitId"].is_string());
        let yaml = files.run(program, &["version", "-o", "yaml"]).out;
        let keys: Vec<&str> = yaml
            .lines()
            .filter_map(|line| line.split(':').next())
            .collect();
        assert_eq!(keys, ["version", "time", "gitCommitId"]);
    }
}

#[test]
fn completions_know_every_command_and_the_forms_of_reports() {
    let files = Files::new("completion", &[]);
    for shell in ["bash", "zsh", "fish", "powershell", "elvish", "nushell"] {
        let kpvm = files.run("kpvm", &["completion", shell]);
        assert_eq!((kpvm.code, kpvm.err.as_str()), (0, ""));
        for part in ["apply", "eval", "completion", "output-format"] {
            assert!(kpvm.out.contains(part), "{shell} has no {part}");
        }
        // The generators for these two do not support values.
        let has_values = !["powershell", "elvish"].contains(&shell);
        assert_eq!(kpvm.out.contains("sarif"), has_values, "{shell}");
        let kpc = files.run("kpc", &["completion", shell]).out;
        assert!(kpc.contains("compile") && !kpc.contains("sarif"), "{shell}");
    }
    assert_eq!(files.run("kpvm", &["completion", "tcsh"]).code, 2);
}

/// A script with a syntax error would break the shell that reads it.
#[test]
fn bash_reads_its_completions() {
    let files = Files::new("completion-bash", &[]);
    let script = files.run("kpvm", &["completion", "bash"]).out;
    std::fs::write(files.0.join("script"), script).unwrap();
    let complete = "source ./script && COMP_WORDS=(kpvm ap) COMP_CWORD=1 && _kpvm kpvm ap kpvm && echo \"${COMPREPLY[@]}\"";
    match Command::new("bash")
        .args(["-c", complete])
        .current_dir(&files.0)
        .output()
    {
        Ok(output) => {
            let found = String::from_utf8(output.stdout).unwrap();
            assert_eq!(
                found,
                "apply\n",
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Err(error) => println!("skipped: no bash ({error})"),
    }
}

#[test]
fn manual_pages_are_printed_and_written() {
    let files = Files::new("man", &[("man/kpvm.1", "old")]);
    let page = files.run("kpvm", &["man"]).out;
    assert!(
        page.contains(".TH kpvm 1") && page.contains("kpvm\\-apply(1)"),
        "{page}"
    );
    for (program, expected) in [
        (
            "kpc",
            "kpc-check.1 kpc-compile.1 kpc-completion.1 kpc-disasm.1 kpc-inspect.1 kpc-jp-function.1 \
             kpc-jp-parse.1 kpc-jp-query.1 kpc-jp.1 kpc-man.1 kpc-vap.1 kpc-verify.1 kpc-version.1 kpc-webhooks.1 kpc.1",
        ),
        (
            "kpvm",
            "kpvm-apply.1 kpvm-completion.1 kpvm-eval.1 kpvm-limits.1 kpvm-man.1 kpvm-test.1 kpvm-version.1 kpvm.1",
        ),
    ] {
        let done = files.run(program, &["man", "--output", "man"]);
        assert_eq!((done.code, done.out.as_str()), (0, ""), "{}", done.err);
        let entries = std::fs::read_dir(files.0.join("man")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(program)).collect();
        names.sort();
        assert_eq!(names.join(" "), expected);
    }
    let written = std::fs::read_to_string(files.0.join("man/kpvm.1")).unwrap();
    assert_eq!(written, page);
    let apply = std::fs::read_to_string(files.0.join("man/kpvm-apply.1")).unwrap();
    assert!(
        apply.contains("kpvm apply") && apply.contains("output\\-format"),
        "{apply}"
    );
}
