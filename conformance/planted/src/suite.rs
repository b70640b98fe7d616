//! Builds the test programs of the copy once, and runs them with one bug switched on.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A test program.
pub struct Program {
    pub path: PathBuf,
    /// Where cargo would run it.
    pub folder: PathBuf,
    pub name: String,
    /// How long it took without a bug.
    pub usual: Duration,
}

/// What came of a build.
pub enum Built {
    Programs(Vec<Program>),
    /// The build failed at these places: file and line.
    Errors(Vec<(String, usize)>),
}

/// How a run of the test programs ended.
pub enum End {
    Survived,
    /// The name of the program and of the first test that failed.
    Caught(String),
}

/// Tests about the source text itself, which differs in the copy.
const OF_THE_TEXT: [&str; 4] = ["house", "import_cycles", "steps", "allocations"];

pub fn build(copy: &Path) -> io::Result<Built> {
    let output = Command::new("cargo")
        .args(["test", "--no-run", "--message-format=json", "--workspace"])
        .args(["--exclude", "kpvm-bench"])
        .current_dir(copy)
        .env("RUSTFLAGS", "-Awarnings")
        .env("CARGO_PROFILE_TEST_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_PROFILE_TEST_DEBUG", "0")
        .stderr(Stdio::inherit())
        .output()?;
    let mut programs = Vec::new();
    let mut errors = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if message["message"]["level"] == "error" {
            for span in message["message"]["spans"].as_array().into_iter().flatten() {
                if let (Some(file), Some(line)) =
                    (span["file_name"].as_str(), span["line_start"].as_u64())
                {
                    errors.push((file.to_owned(), usize::try_from(line).unwrap_or(0)));
                }
            }
        }
        let Some(path) = message["executable"].as_str() else {
            continue;
        };
        if message["profile"]["test"] == true {
            let manifest = PathBuf::from(message["manifest_path"].as_str().unwrap_or_default());
            programs.push(Program {
                path: path.into(),
                folder: manifest.parent().unwrap_or(copy).to_owned(),
                name: format!(
                    "{}/{}",
                    message["package_id"]
                        .as_str()
                        .unwrap_or_default()
                        .rsplit(['/', '#'])
                        .nth(1)
                        .unwrap_or_default(),
                    message["target"]["name"].as_str().unwrap_or_default()
                ),
                usual: Duration::ZERO,
            });
        }
    }
    if output.status.success() {
        Ok(Built::Programs(programs))
    } else {
        Ok(Built::Errors(errors))
    }
}

/// Runs one program with the bug of this number.
///
/// # Errors
///
/// The program cannot be started.
pub fn run(program: &Program, bug: usize, limit: Duration) -> io::Result<End> {
    let log = std::env::temp_dir().join(format!("kpvm-planted-{}-{bug}", std::process::id()));
    let mut command = Command::new(&program.path);
    for topic in OF_THE_TEXT {
        command.args(["--skip", topic]);
    }
    let mut child = command
        .current_dir(&program.folder)
        .env("KPVM_PLANTED", bug.to_string())
        .env("INSTA_UPDATE", "no")
        .env(
            "INSTA_WORKSPACE_ROOT",
            program.folder.parent().unwrap_or(&program.folder),
        )
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&log)?)
        .stderr(Stdio::null())
        .spawn()?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = std::fs::read(&log).unwrap_or_default();
    std::fs::remove_file(&log)?;
    let text = String::from_utf8_lossy(&text);
    let failed = text
        .lines()
        .find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
        .unwrap_or("a crash");
    Ok(match status {
        Some(status) if status.success() => End::Survived,
        Some(_) => End::Caught(format!("{}: {failed}", program.name)),
        None => End::Caught(format!(
            "{}: no end within {} s",
            program.name,
            limit.as_secs()
        )),
    })
}
