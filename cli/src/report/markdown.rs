//! Markdown tables: for the summary of a GitHub job (`$GITHUB_STEP_SUMMARY`), a comment, a
//! wiki. Passed results are only counted.

use std::io::{self, BufRead, Write};

use crate::report::entry::{Entries, Entry, Level};
use crate::report::section::{Key, Section, Sections};
use crate::scan::{Outcome, Summary};
use crate::text::{clean_text, count, shortened};

/// A GitHub job summary is limited to 1 MiB; further rows are only counted.
const ROWS: usize = 1_000;
/// Characters of a message that are shown.
const CHARACTERS: usize = 400;

/// Rows of one chunk of the input.
pub fn section(entries: &[Entry<'_>]) -> Section {
    let shown = |entry: &&Entry<'_>| !matches!(entry.outcome, Outcome::Pass | Outcome::Skip);
    let entries: Vec<&Entry<'_>> = entries.iter().filter(shown).collect();
    let rows = entries.iter().take(ROWS).map(|entry| row(entry));
    Section {
        key: Key::All,
        text: rows.collect::<String>().into_bytes(),
        items: entries.len(),
        summary: Summary::default(),
    }
}

/// Writes the document with the rows of all chunks.
pub fn write(entries: &Entries<'_>, rows: &mut Sections, out: &mut dyn Write) -> io::Result<()> {
    let summary = entries.summary;
    writeln!(out, "## kpvm: {}\n", headline(entries))?;
    writeln!(out, "| pass | fail | warn | error | skip |")?;
    writeln!(out, "| ---: | ---: | ---: | ---: | ---: |")?;
    writeln!(
        out,
        "| {} | {} | {} | {} | {} |",
        summary.pass, summary.fail, summary.warn, summary.error, summary.skip
    )?;
    let count_of_rows = rows.items();
    if count_of_rows > 0 {
        writeln!(
            out,
            "\n| result | rule | severity | object | message | place |"
        )?;
        writeln!(out, "| --- | --- | --- | --- | --- | --- |")?;
    }
    for row in rows.read()?.lines().take(ROWS) {
        writeln!(out, "{}", row?)?;
    }
    if let Some(more) = count_of_rows.checked_sub(ROWS).filter(|more| *more > 0) {
        writeln!(out, "\n{} are not shown.", count(more, "more result"))?;
    }
    write_notices(entries, out)
}

fn headline(entries: &Entries<'_>) -> String {
    let summary = entries.summary;
    let parts = [
        (summary.fail, "failure"),
        (summary.error, "error"),
        (summary.warn, "warning"),
    ];
    let parts = parts.into_iter().filter(|(number, _)| *number > 0);
    let parts: Vec<String> = parts.map(|(number, noun)| count(number, noun)).collect();
    if !parts.is_empty() {
        parts.join(", ")
    } else if summary.total() == 0 {
        "no rule applied".to_owned()
    } else {
        "nothing failed".to_owned()
    }
}

/// One row; contains no line break.
fn row(entry: &Entry<'_>) -> String {
    let place = entry.place.map(|place| code(&place.to_string()));
    let mut message = escaped(&shortened(&entry.message, CHARACTERS));
    if !entry.found.is_empty() {
        message.push_str("<br>found ");
        message.push_str(&code(&shortened(entry.found, CHARACTERS)));
    }
    format!(
        "| {} | {} | {} | {} | {message} | {} |\n",
        entry.outcome.as_str(),
        code(&entry.rule),
        entry.severity.unwrap_or(""),
        code(&entry.object),
        place.unwrap_or_default()
    )
}

fn write_notices(entries: &Entries<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (level, title) in [
        (Level::Error, "Could not be used"),
        (Level::Warning, "Left out"),
    ] {
        let notices = entries.notices.iter();
        let notices: Vec<_> = notices.filter(|notice| notice.level == level).collect();
        if !notices.is_empty() {
            writeln!(out, "\n### {title}: {}\n", notices.len())?;
        }
        for notice in notices {
            let place = match notice.position {
                Some((line, column)) => format!("{}:{line}:{column}", notice.file),
                None => notice.file.to_string(),
            };
            let message = escaped(&shortened(&notice.message, CHARACTERS));
            writeln!(out, "- {}: {message}", code(&place))?;
        }
    }
    Ok(())
}

/// Escapes markup and joins the text into one line.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in clean_text(text).chars() {
        match character {
            '\n' => out.push_str("<br>"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A comment would mention the user of that name.
            '@' => out.push_str("&#64;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '$' => {
                out.push('\\');
                out.push(character);
            }
            other => out.push(other),
        }
    }
    // An address would become a link.
    out.replace("://", ":\\//")
}

/// Text as code. Uses HTML because backquotes in the text would end Markdown code.
fn code(text: &str) -> String {
    format!("<code>{}</code>", escaped(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        for (text, expected) in [
            ("plain, text.", "plain, text."),
            ("a|b", "a\\|b"),
            ("a\nb", "a<br>b"),
            ("<script>&", "&lt;script&gt;&amp;"),
            ("*a* _b_ `c` ~d~", "\\*a\\* \\_b\\_ \\`c\\` \\~d\\~"),
            ("![x](http://y)", "!\\[x\\](http:\\//y)"),
            ("@octocat #1", "&#64;octocat \\#1"),
            ("\u{1b}[2J\u{202e}", "\\\\u{1b}\\[2J\\\\u{202e}"),
            ("é 🎈", "é 🎈"),
        ] {
            assert_eq!(escaped(text), expected, "{text:?}");
        }
    }
}
