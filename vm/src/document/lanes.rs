//! Sixteen bytes compared at a time: with SIMD by the crate `wide`, or one by one without the
//! feature `simd`.

/// Bytes compared at a time.
pub(super) const LANES: usize = 16;

#[cfg(feature = "simd")]
mod compare {
    use wide::u8x16;

    use super::LANES;

    /// Mask of the bytes that are equal to `byte`: bit `n` is byte `n`.
    #[inline(always)]
    pub(in crate::document) fn equal(bytes: &[u8; LANES], byte: u8) -> u32 {
        u8x16::new(*bytes).simd_eq(u8x16::splat(byte)).to_bitmask()
    }

    /// Mask of quotes, backslashes and control bytes.
    #[inline(always)]
    pub(in crate::document) fn stops(bytes: &[u8; LANES]) -> u32 {
        let bytes = u8x16::new(*bytes);
        // With quotes and spaces exchanged, all stops but one are at the start of ASCII.
        let exchanged = bytes ^ u8x16::splat(b'"' ^ b' ');
        let front = exchanged.min(u8x16::splat(b' ')).simd_eq(exchanged);
        (front | bytes.simd_eq(u8x16::splat(b'\\'))).to_bitmask()
    }

    /// Whether a byte occurs, which is cheaper than its positions.
    #[inline(always)]
    pub(in crate::document) fn occurs(parts: &[[u8; LANES]], byte: u8) -> bool {
        let found = parts.iter().fold(u8x16::splat(0), |found, part| {
            found | u8x16::new(*part).simd_eq(u8x16::splat(byte))
        });
        found.to_bitmask() != 0
    }
}

#[cfg(not(feature = "simd"))]
mod compare {
    use super::LANES;

    #[inline(always)]
    fn mask(bytes: &[u8; LANES], is_in: impl Fn(u8) -> bool) -> u32 {
        let bits = bytes.iter().enumerate();
        bits.fold(0, |mask, (place, byte)| {
            mask | u32::from(is_in(*byte)) << place
        })
    }

    /// Mask of the bytes that are equal to `byte`: bit `n` is byte `n`.
    #[inline(always)]
    pub(in crate::document) fn equal(bytes: &[u8; LANES], byte: u8) -> u32 {
        mask(bytes, |other| other == byte)
    }

    /// Mask of quotes, backslashes and control bytes.
    #[inline(always)]
    pub(in crate::document) fn stops(bytes: &[u8; LANES]) -> u32 {
        mask(bytes, |byte| byte < b' ' || matches!(byte, b'"' | b'\\'))
    }

    /// Whether a byte occurs.
    #[inline(always)]
    pub(in crate::document) fn occurs(parts: &[[u8; LANES]], byte: u8) -> bool {
        parts.as_flattened().contains(&byte)
    }
}

pub(super) use compare::{equal, occurs, stops};
