//! JSON as printed by Kyverno's command line: numbers and escapes of Go's `encoding/json`
//! (docs/spec/cli.md §11).

use std::io::{self, Write};

use kpvm_semantics::number::format_json_float;
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

/// Writes a value, on one line or indented by two spaces.
///
/// # Errors
/// Fails if the writer fails.
pub fn write(value: &Value, compact: bool, out: &mut dyn Write) -> io::Result<()> {
    let written = if compact {
        let formatter = Go(CompactFormatter);
        value.serialize(&mut Serializer::with_formatter(out, formatter))
    } else {
        let formatter = Go(PrettyFormatter::new());
        value.serialize(&mut Serializer::with_formatter(out, formatter))
    };
    written.map_err(io::Error::from)
}

/// A layout with Go's numbers and texts.
struct Go<F>(F);

/// Characters that Go escapes although JSON allows them.
const ESCAPED: [char; 5] = ['<', '>', '&', '\u{2028}', '\u{2029}'];

type Out<'w, W> = &'w mut W;

impl<F: Formatter> Formatter for Go<F> {
    fn write_f64<W: ?Sized + Write>(&mut self, out: Out<'_, W>, value: f64) -> io::Result<()> {
        let mut text = String::new();
        format_json_float(value, &mut text);
        out.write_all(text.as_bytes())
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: Out<'_, W>,
        text: &str,
    ) -> io::Result<()> {
        for piece in text.split_inclusive(ESCAPED) {
            let plain = piece.trim_end_matches(ESCAPED);
            out.write_all(plain.as_bytes())?;
            for character in piece.chars().skip(plain.chars().count()) {
                write!(out, "\\u{:04x}", u32::from(character))?;
            }
        }
        Ok(())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: Out<'_, W>) -> io::Result<()> {
        self.0.begin_array(out)
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: Out<'_, W>) -> io::Result<()> {
        self.0.end_array(out)
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        out: Out<'_, W>,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, out: Out<'_, W>) -> io::Result<()> {
        self.0.end_array_value(out)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: Out<'_, W>) -> io::Result<()> {
        self.0.begin_object(out)
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: Out<'_, W>) -> io::Result<()> {
        self.0.end_object(out)
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        out: Out<'_, W>,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: Out<'_, W>) -> io::Result<()> {
        self.0.begin_object_value(out)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, out: Out<'_, W>) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(value: &Value, compact: bool) -> String {
        let mut out = Vec::new();
        write(value, compact, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_and_escapes() {
        for (value, expected) in [
            (json!(2.0), "2"),
            (json!(1e21), "1e+21"),
            (json!(1e-7), "1e-7"),
            (json!("<a> & b"), "\"\\u003ca\\u003e \\u0026 b\""),
            (json!("\u{2028}é\n\""), "\"\\u2028é\\n\\\"\""),
            (
                json!({"b": [], "a": {"<": null}}),
                "{\"a\":{\"\\u003c\":null},\"b\":[]}",
            ),
        ] {
            assert_eq!(written(&value, true), expected);
        }
        assert_eq!(
            written(&json!({"a": [1, {}]}), false),
            "{\n  \"a\": [\n    1,\n    {}\n  ]\n}"
        );
    }
}
