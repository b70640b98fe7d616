//! Varints: numbers of 32 bits in one to five bytes, seven bits each, low bits first.

/// Takes a number from the front of `bytes`; `None` if there is none of 32 bits.
#[inline(always)]
pub(crate) fn read(bytes: &mut &[u8]) -> Option<u32> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    // Nearly all numbers are short, so only this part becomes part of the caller.
    if first < 0x80 {
        return Some(u32::from(first));
    }
    read_long(first, bytes)
}

#[cold]
fn read_long(first: u8, bytes: &mut &[u8]) -> Option<u32> {
    let mut value = u64::from(first & 0x7f);
    for shift in [7u32, 14, 21, 28] {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return u32::try_from(value).ok();
        }
    }
    None
}

/// Appends a number.
pub(crate) fn write(mut value: u32, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_written() {
        for value in [0, 1, 127, 128, 300, 1 << 14, 1 << 21, 1 << 28, u32::MAX] {
            let mut bytes = Vec::new();
            write(value, &mut bytes);
            for length in 0..bytes.len() {
                assert_eq!(read(&mut &bytes[..length]), None, "{value} cut short");
            }
            bytes.push(7);
            let mut rest = bytes.as_slice();
            assert_eq!(read(&mut rest), Some(value));
            assert_eq!(rest, [7]);
        }
        assert_eq!(
            read(&mut &[0xff, 0xff, 0xff, 0xff, 0x10][..]),
            None,
            "33 bits"
        );
        assert_eq!(read(&mut &[0x80, 0x80, 0x80, 0x80, 0x80, 0][..]), None);
    }
}
