//! Runs programs on files written by a test.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Result of a program.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// A directory with files, removed at the end of the test.
pub(crate) struct Files(pub(crate) PathBuf);

impl Files {
    pub(crate) fn new(test: &str, files: &[(&str, &str)]) -> Self {
        // Tests of several modules run in parallel, and some have the same name.
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("{test}-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        for (name, text) in files {
            let file = path.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Self(path)
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Done {
        self.run_with_input(program, arguments, "")
    }

    pub(crate) fn run_with_input(&self, program: &str, arguments: &[&str], input: &str) -> Done {
        let program = match program {
            "kpc" => env!("CARGO_BIN_EXE_kpc"),
            _ => env!("CARGO_BIN_EXE_kpvm"),
        };
        let mut child = Command::new(program)
            .args(arguments)
            .current_dir(&self.0)
            .env("SOURCE_DATE_EPOCH", "1700000000")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that does not read its input closes it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Done {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
