//! Visits selected values of a map or list that is not read, and checks the syntax of the
//! rest. Builds nothing.
//!
//! As in [`super::skip`], anything unusual is not accepted here but read instead.

use kpvm_format::symbol::{SymbolId, SymbolTable, short_key_hash};

use super::node::Kind;
use super::scan::{Chunk, plain_end, space};
use super::skip::{Skipped, byte_at, number, skip, string, word};
use kpvm_semantics::pattern_string::Scalar;

/// Maximum nesting that a visitor follows.
const MAX_DEPTH: usize = 64;

/// Receives the values at its spots. Spots are numbers chosen by the visitor.
pub(crate) trait Visitor {
    /// Spot of a key in the map at a spot, and the key's bit in the mask of that map.
    fn under(&self, map: u32, key: SymbolId) -> Option<(u32, u64)>;
    /// Spot of the items of the list at a spot.
    fn item(&mut self, list: u32) -> Option<u32>;
    /// Receives a number, text, boolean or null. Integers are exact.
    fn scalar(&mut self, spot: u32, value: Scalar<'_>);
    /// A map or list begins; returns whether to visit its content.
    fn begin(&mut self, spot: u32, kind: Kind) -> bool;
    /// A visited map ends; `seen` is the mask of its keys.
    fn end_map(&mut self, spot: u32, seen: u64);
}

/// An enclosing map or list.
#[derive(Debug, Clone, Copy)]
struct Level {
    spot: u32,
    is_map: bool,
    seen: u64,
}

/// Visits the non-empty map or list whose bracket is before `at`; its first member begins
/// at `at`. `None` if it may be malformed, or if a value at a spot must be read to be
/// understood: a text with escapes, a duplicate key, a number that is not a short integer.
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
                // `}` and `]` are two code points after their counterparts.
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
        // Close containers until one has more members.
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

/// Reads a key, the colon after it and the space after that; returns the offset of the
/// value and the key's symbol, if it is one. Rejects keys with escapes.
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

/// Value of an integer of up to 18 digits.
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
