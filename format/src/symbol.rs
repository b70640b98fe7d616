//! The symbol table: every map key that a bundle's rules can look up, numbered, with a hash
//! table laid out so that it can be used in place.
//!
//! Layout (little endian, no alignment needed): `count: u32`, `slot_count: u32` (a power of
//! two), `slots: [u32; slot_count]` (symbol number + 1, or 0 for an empty slot; a key's
//! first slot is `hash mod slot_count`, collisions move to the next slot), `entries: [{
//! head: [u64; 2], start: u32, length: u32 }; count]` (place of each symbol's text; it
//! begins where the previous one ends; `head` is its first 16 bytes, padded with zeros),
//! then the texts in UTF-8.
//!
//! Nearly every key of a Kubernetes object has at most 16 bytes. For these, head and length
//! *are* the key: the reader hashes and compares two words it has in registers anyway and
//! never touches the text.

use std::fmt;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// The number of a symbol in a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(pub u32);

/// A symbol table used in place from its bytes.
#[derive(Debug, Clone, Copy)]
pub struct SymbolTable<'a> {
    slots: &'a [U32],
    entries: &'a [Entry],
    text: &'a [u8],
}

/// One symbol's place in the texts, and the text's first bytes.
#[derive(Debug, Clone, Copy, FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Entry {
    head: [U64; 2],
    start: U32,
    length: U32,
}

/// The first 16 bytes of a key as two little-endian words, padded with zeros.
pub type KeyHead = [u64; 2];

/// The length of the longest key that a [`KeyHead`] holds completely.
pub const HEAD_BYTES: usize = 16;

/// Why bytes are not a symbol table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolTableError {
    /// The section ends before the table does.
    Truncated,
    /// The number of slots is not a power of two or leaves no empty slot.
    Slots {
        /// Declared number of slots.
        slots: u32,
        /// Declared number of symbols.
        symbols: u32,
    },
    /// A text is not UTF-8 or its end lies outside the table.
    Text(u32),
    /// A symbol cannot be found through the slots, or a slot names no symbol.
    Misplaced(u32),
}

impl fmt::Display for SymbolTableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the symbol table is cut short"),
            Self::Slots { slots, symbols, .. } => write!(
                f,
                "the symbol table has {slots} slots for {symbols} symbols"
            ),
            Self::Text(value) => write!(f, "symbol {value} is not a text inside the table"),
            Self::Misplaced(value) => write!(f, "symbol {value} is not where its hash says"),
        }
    }
}

impl std::error::Error for SymbolTableError {}

/// One step of [`key_hash`]: the 128-bit product of both words, folded.
#[inline(always)]
fn fold(state: u64, head: KeyHead, length: usize) -> u64 {
    const LOW: u64 = 0x9E37_79B9_7F4A_7C15;
    const HIGH: u64 = 0xD1B5_4A32_D192_ED03;
    let product = u128::from(head[0] ^ LOW ^ state) * u128::from(head[1] ^ HIGH ^ length as u64);
    product as u64 ^ (product >> 64) as u64
}

/// [`key_hash`] of a key of at most [`HEAD_BYTES`] bytes, from its head.
#[inline(always)]
pub fn short_key_hash(head: KeyHead, length: usize) -> u32 {
    fold(0, head, length) as u32
}

/// The hash of a key: one multiplication for every 16 bytes, at least one. The last step of
/// a long key takes its last 16 bytes, some of which may have been hashed already.
#[inline]
pub fn key_hash(key: &[u8]) -> u32 {
    let Some(last) = key.last_chunk::<HEAD_BYTES>() else {
        return short_key_hash(key_head(key), key.len());
    };
    let mut state = 0;
    let mut rest = key;
    while let Some((chunk, more)) = rest.split_first_chunk::<HEAD_BYTES>()
        && !more.is_empty()
    {
        state = fold(state, words(chunk), key.len());
        rest = more;
    }
    fold(state, words(last), key.len()) as u32
}

/// The head of a key.
#[inline]
pub fn key_head(key: &[u8]) -> KeyHead {
    match key.first_chunk::<HEAD_BYTES>() {
        Some(chunk) => words(chunk),
        None => {
            let mut bytes = [0; HEAD_BYTES];
            bytes[..key.len()].copy_from_slice(key);
            words(&bytes)
        }
    }
}

#[inline(always)]
fn words(bytes: &[u8; HEAD_BYTES]) -> KeyHead {
    let word = u128::from_le_bytes(*bytes);
    [word as u64, (word >> 64) as u64]
}

impl<'a> SymbolTable<'a> {
    /// A table without symbols.
    pub const EMPTY: SymbolTable<'static> = SymbolTable {
        slots: &[],
        entries: &[],
        text: &[],
    };

    /// Checks everything once, so that no later call can fail.
    ///
    /// # Errors
    /// A [`SymbolTableError`] if a text, slot or number is not as the layout requires.
    pub fn verify(bytes: &'a [u8]) -> Result<Self, SymbolTableError> {
        let table = Self::from_verified(bytes).ok_or(SymbolTableError::Truncated)?;
        let count = table.entries.len() as u32;
        if !table.slots.len().is_power_of_two() || table.slots.len() <= table.entries.len() {
            return Err(SymbolTableError::Slots {
                slots: table.slots.len() as u32,
                symbols: count,
            });
        }
        let mut end = 0;
        for (number, entry) in (0..count).zip(table.entries) {
            let start = end as usize;
            end += u64::from(entry.length.get());
            let text = table.text.get(start..end as usize);
            let sound = u64::from(entry.start.get()) == start as u64
                && text.is_some_and(|text| {
                    std::str::from_utf8(text).is_ok()
                        && key_head(text) == [entry.head[0].get(), entry.head[1].get()]
                });
            if !sound {
                return Err(SymbolTableError::Text(number));
            }
        }
        if end != table.text.len() as u64 {
            return Err(SymbolTableError::Text(count));
        }
        let used = table.slots.iter().filter(|slot| slot.get() != 0).count();
        if used != count as usize || table.slots.iter().any(|slot| slot.get() > count) {
            return Err(SymbolTableError::Misplaced(count));
        }
        for number in 0..count {
            if table.lookup(table.bytes(SymbolId(number))) != Some(SymbolId(number)) {
                return Err(SymbolTableError::Misplaced(number));
            }
        }
        Ok(table)
    }

    /// The table over bytes that [`SymbolTable::verify`] accepted before.
    ///
    /// `None` if the bytes cannot even be split into the table's parts.
    pub fn from_verified(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = <[U32; 2]>::ref_from_prefix(bytes).ok()?;
        let (slots, rest) =
            <[U32]>::ref_from_prefix_with_elems(rest, header[1].get() as usize).ok()?;
        let (entries, text) =
            <[Entry]>::ref_from_prefix_with_elems(rest, header[0].get() as usize).ok()?;
        Some(Self {
            slots,
            entries,
            text,
        })
    }

    /// The number of symbols; they are numbered `0..len`.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The symbol whose text is `key`.
    #[inline]
    pub fn lookup(&self, key: &[u8]) -> Option<SymbolId> {
        self.lookup_hashed(key_hash(key), key_head(key), key)
    }

    /// [`SymbolTable::lookup`] for a caller that already has the key's [`key_hash`] and
    /// [`key_head`].
    #[inline]
    pub fn lookup_hashed(&self, hash: u32, head: KeyHead, key: &[u8]) -> Option<SymbolId> {
        self.find(hash, head, key.len(), |entry| {
            key.len() <= HEAD_BYTES || self.entry_text(entry) == key
        })
    }

    /// [`SymbolTable::lookup`] for a key of at most [`HEAD_BYTES`] bytes, which its head
    /// and length determine.
    #[inline(always)]
    pub fn lookup_short(&self, hash: u32, head: KeyHead, length: usize) -> Option<SymbolId> {
        self.find(hash, head, length, |_| true)
    }

    /// The symbol with this head and length for which `same` returns true.
    #[inline(always)]
    fn find(
        &self,
        hash: u32,
        head: KeyHead,
        length: usize,
        same: impl Fn(&Entry) -> bool,
    ) -> Option<SymbolId> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut slot = hash as usize;
        loop {
            let number = self.slots.get(slot & mask)?.get().checked_sub(1)?;
            let entry = self.entries.get(number as usize)?;
            let difference = (entry.head[0].get() ^ head[0])
                | (entry.head[1].get() ^ head[1])
                | (u64::from(entry.length.get()) ^ length as u64);
            if difference == 0 && same(entry) {
                return Some(SymbolId(number));
            }
            slot += 1;
        }
    }

    /// The text of an entry of this table.
    #[inline]
    fn entry_text(&self, entry: &Entry) -> &'a [u8] {
        let start = entry.start.get() as usize;
        let end = start.saturating_add(entry.length.get() as usize);
        self.text.get(start..end).unwrap_or(&[])
    }

    /// The symbol's text as bytes; empty for a number that is not in the table.
    #[inline]
    pub fn bytes(&self, symbol: SymbolId) -> &'a [u8] {
        match self.entries.get(symbol.0 as usize) {
            Some(entry) => self.entry_text(entry),
            None => &[],
        }
    }

    /// The symbol's text; empty for a number that is not in the table.
    pub fn text(&self, symbol: SymbolId) -> &'a str {
        std::str::from_utf8(self.bytes(symbol)).unwrap_or("")
    }
}

/// Numbers symbols in order of first use and writes the table.
#[derive(Debug, Default)]
pub struct SymbolTableBuilder {
    numbers: std::collections::HashMap<Box<str>, u32>,
    texts: Vec<Box<str>>,
}

impl SymbolTableBuilder {
    /// A builder without symbols.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of `text`, assigned on first use.
    pub fn intern(&mut self, text: &str) -> SymbolId {
        if let Some(&number) = self.numbers.get(text) {
            return SymbolId(number);
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        SymbolId(number)
    }

    /// Number of symbols.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there are no symbols.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The text of a symbol; empty for a number that was not given.
    pub fn text(&self, symbol: SymbolId) -> &str {
        self.texts.get(symbol.0 as usize).map_or("", |text| &**text)
    }

    /// The table's bytes.
    pub fn finish(&self) -> Vec<u8> {
        let slot_count = (self.texts.len() * 2 + 1).next_power_of_two();
        let mut slots = vec![0u32; slot_count];
        for (number, text) in self.texts.iter().enumerate() {
            let mut slot = key_hash(text.as_bytes()) as usize & (slot_count - 1);
            while slots[slot] != 0 {
                slot = (slot + 1) & (slot_count - 1);
            }
            slots[slot] = number as u32 + 1;
        }
        let mut bytes = Vec::new();
        bytes.extend((self.texts.len() as u32).to_le_bytes());
        bytes.extend((slot_count as u32).to_le_bytes());
        bytes.extend(slots.iter().flat_map(|slot| slot.to_le_bytes()));
        let mut start = 0u32;
        for text in &self.texts {
            let head = key_head(text.as_bytes());
            bytes.extend(head.iter().flat_map(|word| word.to_le_bytes()));
            bytes.extend(start.to_le_bytes());
            bytes.extend((text.len() as u32).to_le_bytes());
            start += text.len() as u32;
        }
        self.texts
            .iter()
            .for_each(|text| bytes.extend(text.as_bytes()));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(texts: &[&str]) -> Vec<u8> {
        let mut builder = SymbolTableBuilder::new();
        for text in texts {
            builder.intern(text);
        }
        builder.finish()
    }

    #[test]
    fn finds_what_was_interned_and_nothing_else() {
        let bytes = table(&[
            "spec",
            "metadata",
            "",
            "a.very/long-key-with-more-than-16-bytes",
            "é",
            "exactly-16-bytes",
            "exactly-16-bytes+",
            "exactly-16-bytes-and-more-than-32",
            "exactly-16-bytes-and-more-than-33",
            "nul",
            "nul\0",
        ]);
        let symbols = SymbolTable::verify(&bytes).expect("a fresh table verifies");
        assert_eq!(symbols.len(), 11);
        for number in 0..11 {
            let symbol = SymbolId(number);
            assert_eq!(symbols.lookup(symbols.bytes(symbol)), Some(symbol));
        }
        assert_eq!(symbols.lookup(b"status"), None);
        assert_eq!(symbols.lookup(b"spec\0"), None);
        assert_eq!(symbols.lookup(b"exactly-16-bytes-and-more-than-34"), None);
        assert_eq!(SymbolTable::EMPTY.lookup(b"spec"), None);
    }

    #[test]
    fn a_short_keys_head_and_length_are_the_key() {
        let bytes = table(&["spec", "exactly-16-bytes"]);
        let symbols = SymbolTable::verify(&bytes).expect("a fresh table verifies");
        for key in ["spec", "exactly-16-bytes", "spec\0", "", "exactly-16-byteS"] {
            let (head, length) = (key_head(key.as_bytes()), key.len());
            let hash = short_key_hash(head, length);
            assert_eq!(hash, key_hash(key.as_bytes()), "{key}");
            assert_eq!(
                symbols.lookup_short(hash, head, length),
                symbols.lookup(key.as_bytes()),
                "{key}"
            );
        }
    }

    #[test]
    fn refuses_every_prefix_and_survives_every_flipped_bit() {
        let bytes = table(&["spec", "metadata", "name", "labels"]);
        for length in 0..bytes.len() {
            assert!(
                SymbolTable::verify(&bytes[..length]).is_err(),
                "prefix of {length}"
            );
        }
        for bit in 0..bytes.len() * 8 {
            let mut broken = bytes.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            if let Ok(symbols) = SymbolTable::verify(&broken) {
                symbols.lookup(b"spec");
                symbols.lookup(b"unknown");
            }
        }
    }
}
