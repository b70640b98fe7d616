//! Base64 with the standard alphabet and padding (docs/spec/jmespath.md §7).

/// The text of bytes.
pub(super) fn encoded(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let index = (bits >> (18 - 6 * at) & 63) as usize;
            let letter = ALPHABET
                .get(index)
                .map_or('=', |letter| char::from(*letter));
            out.push(if at > group.len() { '=' } else { letter });
        }
    }
    out
}

/// The bytes, or the offset of the problem (docs/spec/jmespath.md §7).
pub(super) fn decoded(text: &str) -> Result<Vec<u8>, usize> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let bytes = text.bytes().enumerate();
    let mut rest = bytes.filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    let mut decoded = Vec::new();
    loop {
        let mut group: Vec<u8> = Vec::new();
        let mut start = None;
        let mut is_padded = false;
        while group.len() < 4 && !is_padded {
            let Some((at, byte)) = rest.next() else {
                return match start {
                    None => Ok(decoded),
                    Some(start) => Err(start),
                };
            };
            start.get_or_insert(at);
            match (digit(byte), byte, group.len()) {
                (Some(digit), _, _) => group.push(digit),
                (None, b'=', 2) => match rest.next() {
                    Some((_, b'=')) => is_padded = true,
                    Some((at, _)) => return Err(at),
                    None => return Err(text.len()),
                },
                (None, b'=', 3) => is_padded = true,
                _ => return Err(at),
            }
        }
        let bits = group
            .iter()
            .chain([0; 4].iter())
            .take(4)
            .fold(0, |bits: u32, digit| bits << 6 | u32::from(*digit));
        let [_, all @ ..] = bits.to_be_bytes();
        decoded.extend(all.iter().take(group.len() - 1));
        if is_padded {
            return match rest.next() {
                Some((at, _)) => Err(at),
                None => Ok(decoded),
            };
        }
    }
}
