//! The symbol table: every map key that a bundle's rules can look up, numbered,
//! with a hash table laid out so that it is used in place.
//!
//! Layout (little endian, no alignment needed): `count: u32`, `slot_count: u32`
//! (a power of two), `slots: [u32; slot_count]` (symbol number + 1, or 0 for an
//! empty slot; collisions go to the next slot), `ends: [u32; count]` (end of each
//! symbol's text; it begins where the one before ends), then the texts in UTF-8.

use zerocopy::FromBytes;
use zerocopy::little_endian::U32;

/// Number of a symbol in a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId(pub u32);

/// A symbol table used in place from its bytes.
#[derive(Debug, Clone, Copy)]
pub struct SymbolTable<'a> {
    slots: &'a [U32],
    ends: &'a [U32],
    text: &'a [u8],
}

/// Why bytes are no symbol table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SymbolTableError {
    /// The section ends before the table does.
    #[error("the symbol table is cut short")]
    Truncated,
    /// The number of slots is no power of two or leaves no empty slot.
    #[error("the symbol table has {slots} slots for {symbols} symbols")]
    Slots {
        /// Declared number of slots.
        slots: u32,
        /// Declared number of symbols.
        symbols: u32,
    },
    /// A text is not UTF-8 or its end lies outside the table.
    #[error("symbol {0} is not a text inside the table")]
    Text(u32),
    /// A symbol cannot be found through the slots, or a slot names no symbol.
    #[error("symbol {0} is not where its hash says")]
    Misplaced(u32),
}

/// The hash of a key: eight bytes a step, so that a usual key costs two multiplications.
#[inline]
fn hash(key: &[u8]) -> u32 {
    const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut state = key.len() as u64;
    let mut chunks = key.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        state = (state.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(MULTIPLIER);
    }
    let mut last = 0u64;
    for &byte in chunks.remainder() {
        last = last << 8 | u64::from(byte);
    }
    state = (state.rotate_left(23) ^ last).wrapping_mul(MULTIPLIER);
    (state >> 32) as u32
}

impl<'a> SymbolTable<'a> {
    /// A table without symbols.
    pub const EMPTY: SymbolTable<'static> = SymbolTable {
        slots: &[],
        ends: &[],
        text: &[],
    };

    /// Checks everything once, so that no later call can fail.
    ///
    /// # Errors
    /// A [`SymbolTableError`] when any text, slot or number is not as the layout says.
    pub fn verify(bytes: &'a [u8]) -> Result<Self, SymbolTableError> {
        let table = Self::from_verified(bytes).ok_or(SymbolTableError::Truncated)?;
        let count = table.ends.len() as u32;
        if !table.slots.len().is_power_of_two() || table.slots.len() <= table.ends.len() {
            return Err(SymbolTableError::Slots {
                slots: table.slots.len() as u32,
                symbols: count,
            });
        }
        let mut start = 0;
        for number in 0..count {
            let end = table.ends[number as usize].get();
            if end < start
                || std::str::from_utf8(
                    table
                        .text
                        .get(start as usize..end as usize)
                        .unwrap_or(&[0xFF]),
                )
                .is_err()
            {
                return Err(SymbolTableError::Text(number));
            }
            start = end;
        }
        if start as usize != table.text.len() {
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
    /// `None` if the bytes cannot even be cut into the table's parts.
    pub fn from_verified(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = <[U32; 2]>::ref_from_prefix(bytes).ok()?;
        let (slots, rest) =
            <[U32]>::ref_from_prefix_with_elems(rest, header[1].get() as usize).ok()?;
        let (ends, text) =
            <[U32]>::ref_from_prefix_with_elems(rest, header[0].get() as usize).ok()?;
        Some(Self { slots, ends, text })
    }

    /// How many symbols there are; their numbers are `0..len`.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The symbol whose text is `key`.
    #[inline]
    pub fn lookup(&self, key: &[u8]) -> Option<SymbolId> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut slot = hash(key) as usize & mask;
        loop {
            let number = self.slots[slot & mask].get().checked_sub(1)?;
            if self.bytes(SymbolId(number)) == key {
                return Some(SymbolId(number));
            }
            slot += 1;
        }
    }

    /// The symbol's text as bytes; empty for a number that is not in the table.
    #[inline]
    pub fn bytes(&self, symbol: SymbolId) -> &'a [u8] {
        let index = symbol.0 as usize;
        let start = if index == 0 {
            0
        } else {
            self.ends.get(index - 1).map_or(0, |end| end.get())
        };
        let end = self.ends.get(index).map_or(start, |end| end.get());
        self.text.get(start as usize..end as usize).unwrap_or(&[])
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
    /// No symbols yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of `text`, given on first use.
    pub fn intern(&mut self, text: &str) -> SymbolId {
        if let Some(&number) = self.numbers.get(text) {
            return SymbolId(number);
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        SymbolId(number)
    }

    /// The table's bytes.
    pub fn finish(&self) -> Vec<u8> {
        let slot_count = (self.texts.len() * 2 + 1).next_power_of_two();
        let mut slots = vec![0u32; slot_count];
        for (number, text) in self.texts.iter().enumerate() {
            let mut slot = hash(text.as_bytes()) as usize & (slot_count - 1);
            while slots[slot] != 0 {
                slot = (slot + 1) & (slot_count - 1);
            }
            slots[slot] = number as u32 + 1;
        }
        let mut bytes = Vec::new();
        bytes.extend((self.texts.len() as u32).to_le_bytes());
        bytes.extend((slot_count as u32).to_le_bytes());
        bytes.extend(slots.iter().flat_map(|slot| slot.to_le_bytes()));
        let mut end = 0u32;
        for text in &self.texts {
            end += text.len() as u32;
            bytes.extend(end.to_le_bytes());
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
        ]);
        let symbols = SymbolTable::verify(&bytes).expect("a fresh table verifies");
        assert_eq!(symbols.len(), 5);
        for number in 0..5 {
            let symbol = SymbolId(number);
            assert_eq!(symbols.lookup(symbols.bytes(symbol)), Some(symbol));
        }
        assert_eq!(symbols.lookup(b"status"), None);
        assert_eq!(SymbolTable::EMPTY.lookup(b"spec"), None);
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
