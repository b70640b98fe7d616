//! A reader of DER: elements that borrow from the bytes.

use num_bigint::BigInt;

pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const OBJECT_ID: u8 = 0x06;
pub(super) const BOOLEAN: u8 = 0x01;

/// A DER element.
#[derive(Clone, Copy)]
pub(super) struct Element<'d> {
    pub(super) tag: u8,
    /// Including tag and length.
    pub(super) whole: &'d [u8],
    pub(super) content: &'d [u8],
}

/// Takes the next element.
pub(super) fn next<'d>(bytes: &mut &'d [u8]) -> Option<Element<'d>> {
    let whole = *bytes;
    let (&tag, rest) = whole.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let length = if first < 0x80 {
        usize::from(first)
    } else {
        let digits = usize::from(first & 0x7f);
        if digits == 0 || digits > 4 {
            return None;
        }
        let (length, after) = rest.split_at_checked(digits)?;
        rest = after;
        length
            .iter()
            .fold(0, |length, byte| length << 8 | usize::from(*byte))
    };
    let (content, after) = rest.split_at_checked(length)?;
    *bytes = after;
    let whole = whole.get(..whole.len() - after.len())?;
    // Certificates contain no tags of more than one byte.
    (tag & 0x1f != 0x1f).then_some(Element {
        tag,
        whole,
        content,
    })
}

/// Takes the next element, which must have this tag.
pub(super) fn expect<'d>(bytes: &mut &'d [u8], tag: u8) -> Option<Element<'d>> {
    next(bytes).filter(|element| element.tag == tag)
}

/// Takes the next element if it has this tag.
pub(super) fn optional<'d>(bytes: &mut &'d [u8], tag: u8) -> Option<Element<'d>> {
    let mut rest = *bytes;
    let element = expect(&mut rest, tag)?;
    *bytes = rest;
    Some(element)
}

/// All elements; `None` if the bytes are not a sequence of elements.
pub(super) fn elements(mut bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        all.push(next(&mut bytes)?);
    }
    Some(all)
}

/// The numbers of an object identifier.
pub(super) fn object_id(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    let mut number: u64 = 0;
    for byte in bytes {
        number = number.checked_mul(128)? + u64::from(byte & 0x7f);
        if byte & 0x80 != 0 {
            continue;
        }
        if numbers.is_empty() {
            let first = (number / 40).min(2);
            numbers.push(first);
            number -= first * 40;
        }
        numbers.push(number);
        number = 0;
    }
    (!numbers.is_empty()).then_some(numbers)
}

pub(super) fn object_id_text(numbers: &[u64]) -> String {
    let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
    numbers.join(".")
}

/// The object identifier in an element, as dotted text.
pub(super) fn object_id_of(element: Element<'_>) -> Option<String> {
    if element.tag != OBJECT_ID {
        return None;
    }
    object_id(element.content).map(|numbers| object_id_text(&numbers))
}

pub(super) fn integer(element: Element<'_>) -> BigInt {
    BigInt::from_signed_bytes_be(element.content)
}

pub(super) fn small_integer(element: Element<'_>) -> Option<i64> {
    integer(element).try_into().ok()
}

/// Bytes of a bit string without unused bits.
pub(super) fn bits(element: Element<'_>) -> Option<&[u8]> {
    Some(element.content.split_first()?.1)
}

/// Text of any known kind.
pub(super) fn text(element: Element<'_>) -> String {
    match element.tag {
        // BMPString: two bytes per character.
        0x1e => {
            let units = element.content.chunks_exact(2).map(|pair| match pair {
                [high, low] => u16::from_be_bytes([*high, *low]),
                _ => 0,
            });
            char::decode_utf16(units)
                .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect()
        }
        _ => String::from_utf8_lossy(element.content).into_owned(),
    }
}
