//! Walking over a map or list that is not read: a visitor is told of the values at its
//! spots, of everything else only the syntax is checked. Nothing is built.
//!
//! As in [`super::skip`], whatever is unusual is not accepted: it is read instead.

use kpvm_format::symbol::{SymbolId, SymbolTable, short_key_hash};

use super::node::Kind;
use super::scan::{Chunk, plain_end, space};
use super::skip::{Skipped, byte_at, number, skip, string, word};
use kpvm_semantics::pattern_string::Scalar;

/// The deepest nesting of maps and lists that a visitor looks into.
const MAX_DEPTH: usize = 64;

/// Who is told of values. Spots are numbers of the visitor's own.
pub(crate) trait Visitor {
    /// The spot under a key of the map at a spot, and the key's bit among those of the map.
    fn under(&self, map: u32, key: SymbolId) -> Option<(u32, u64)>;
    /// The spot of the items of the list at a spot.
    fn item(&mut self, list: u32) -> Option<u32>;
    /// A number, text, boolean or null. An integer is exact.
    fn scalar(&mut self, spot: u32, value: Scalar<'_>);
    /// A map or list begins; whether to look inside.
    fn begin(&mut self, spot: u32, kind: Kind) -> bool;
    /// A map that was looked into ends; the bits of the keys that were there.
    fn end_map(&mut self, spot: u32, seen: u64);
}

/// A map or list around the place.
#[derive(Debug, Clone, Copy)]
struct Level {
    spot: u32,
    is_map: bool,
    seen: u64,
}

/// Walks over the map or list whose bracket is before `at` and that is not empty; its
/// first member begins at `at`. `None` when it may be malformed, or has at a spot what
/// has to be read to be understood: a text with escapes, a key that stands there twice, a
/// number that is no short integer.
pub(crate) fn walk<V: Visitor>(
    input: &[u8],
    mut at: usize,
    is_map: bool,
    spot: u32,
    symbols: &SymbolTable<'_>,
    visitor: &mut V,
) -> Option<Skipped> {
    let kind = if is_map { Kind::Map } else { Kind::List };
    if !visitor.begin(spot, kind) {
        return skip(input, at, is_map);
    }
    let mut levels: [Level; MAX_DEPTH] = [Level {
        spot: 0,
        is_map: false,
        seen: 0,
    }; MAX_DEPTH];
    let mut level = Level {
        spot,
        is_map,
        seen: 0,
    };
    let (mut depth, mut deepest, mut values) = (1, 1, 0);
    loop {
        // A member begins.
        let spot = if level.is_map {
            let (value, key) = key(input, at, symbols)?;
            at = value;
            match key.and_then(|key| visitor.under(level.spot, key)) {
                Some((spot, bit)) => {
                    if level.seen & bit != 0 {
                        return None;
                    }
                    level.seen |= bit;
                    Some(spot)
                }
                None => None,
            }
        } else {
            visitor.item(level.spot)
        };
        values += 1;
        let byte = byte_at(input, at);
        match byte {
            b'"' => {
                let end = match spot {
                    None => string(input, at + 1)?,
                    Some(spot) => {
                        let end = plain_end(input, at + 1);
                        let text = input.get(at + 1..end)?;
                        if byte_at(input, end) != b'"' {
                            return None;
                        }
                        visitor.scalar(spot, Scalar::String(std::str::from_utf8(text).ok()?));
                        end + 1
                    }
                };
                at = end;
            }
            b'{' | b'[' => {
                let is_map = byte == b'{';
                let kind = if is_map { Kind::Map } else { Kind::List };
                let inside = space(input, at + 1);
                let looks_inside = spot.is_some_and(|spot| visitor.begin(spot, kind));
                // `}` and `]` stand two behind their partners.
                if byte_at(input, inside) == byte + 2 {
                    if let Some(spot) = spot
                        && is_map
                        && looks_inside
                    {
                        visitor.end_map(spot, 0);
                    }
                    at = inside + 1;
                } else if let Some(spot) = spot
                    && looks_inside
                {
                    *levels.get_mut(depth)? = level;
                    level = Level {
                        spot,
                        is_map,
                        seen: 0,
                    };
                    depth += 1;
                    deepest = deepest.max(depth);
                    at = inside;
                    continue;
                } else {
                    let skipped = skip(input, inside, is_map)?;
                    values += skipped.values;
                    deepest = deepest.max(depth + skipped.depth);
                    at = skipped.end;
                }
            }
            b'-' | b'0'..=b'9' => {
                let end = number(input, at)?;
                if let Some(spot) = spot {
                    visitor.scalar(spot, Scalar::Int(short_integer(input.get(at..end)?)?));
                }
                at = end;
            }
            b't' | b'f' | b'n' => {
                let (text, value): (&[u8], _) = match byte {
                    b't' => (b"true", Scalar::Bool(true)),
                    b'f' => (b"false", Scalar::Bool(false)),
                    _ => (b"null", Scalar::Null),
                };
                at = word(input, at, text)?;
                if let Some(spot) = spot {
                    visitor.scalar(spot, value);
                }
            }
            _ => return None,
        }
        // Containers end until one goes on.
        loop {
            at = space(input, at);
            let end = if level.is_map { b'}' } else { b']' };
            match byte_at(input, at) {
                b',' => break,
                byte if byte == end => {}
                _ => return None,
            }
            at += 1;
            if level.is_map {
                visitor.end_map(level.spot, level.seen);
            }
            depth -= 1;
            if depth == 0 {
                return Some(Skipped {
                    end: at,
                    values,
                    depth: deepest,
                });
            }
            level = *levels.get(depth)?;
        }
        at = space(input, at + 1);
    }
}

/// Reads a key, the colon behind it and space behind that; the value's place and the
/// key's symbol, if it is one. A key with escapes is not accepted.
#[inline(always)]
fn key(input: &[u8], at: usize, symbols: &SymbolTable<'_>) -> Option<(usize, Option<SymbolId>)> {
    if byte_at(input, at) != b'"' {
        return None;
    }
    let start = at + 1;
    let chunk = Chunk::at(input, start);
    let (end, symbol) = match chunk.plain() {
        Some(length) => {
            let head = chunk.head(length);
            let hash = short_key_hash(head, length);
            (start + length, symbols.lookup_short(hash, head, length))
        }
        None => {
            let end = plain_end(input, start);
            (end, symbols.lookup(input.get(start..end)?))
        }
    };
    if byte_at(input, end) != b'"' {
        return None;
    }
    let colon = space(input, end + 1);
    let value = (byte_at(input, colon) == b':').then(|| space(input, colon + 1))?;
    Some((value, symbol))
}

/// The value of an integer of up to 18 digits.
fn short_integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits
        .iter()
        .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some(if digits.len() < text.len() {
        -value
    } else {
        value
    })
}
