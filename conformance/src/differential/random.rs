//! Random choices from a seed.

/// A stream of random choices.
pub struct Random(fastrand::Rng);

impl Random {
    /// Stream of one case. Streams are independent, so a case can be generated alone.
    pub fn new(seed: u64, area: &str, number: u64) -> Self {
        // The step of SplitMix64: neighbouring numbers give unrelated states.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut start = seed.wrapping_mul(STEP) ^ number;
        for byte in area.bytes() {
            start = (start ^ u64::from(byte)).wrapping_mul(STEP).rotate_left(27);
        }
        Self(fastrand::Rng::with_seed(start))
    }

    /// True with a probability of this many percent.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.0.u32(..100) < percent
    }

    /// A number below `end`, which must be positive.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end.max(1))
    }

    /// A number in `from..=to`.
    pub fn between(&mut self, from: usize, to: usize) -> usize {
        self.0.usize(from..=to.max(from))
    }

    /// One of the items.
    ///
    /// # Panics
    /// When there are no items.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len())]
    }

    /// One of the texts, owned.
    pub fn text(&mut self, items: &[&str]) -> String {
        (*self.pick(items)).to_owned()
    }

    /// An index by weight.
    pub fn weighted(&mut self, weights: &[u32]) -> usize {
        let mut left = self.0.u32(..weights.iter().sum::<u32>().max(1));
        for (index, weight) in weights.iter().enumerate() {
            if left < *weight {
                return index;
            }
            left -= weight;
        }
        0
    }

    /// A list of `from..=to` items.
    pub fn list<T>(
        &mut self,
        from: usize,
        to: usize,
        mut item: impl FnMut(&mut Self) -> T,
    ) -> Vec<T> {
        let count = self.between(from, to);
        (0..count).map(|_| item(self)).collect()
    }
}
