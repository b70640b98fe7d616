//! Choices that a seed decides.

/// A stream of choices.
pub struct Random(fastrand::Rng);

impl Random {
    /// The stream of one case; streams of different numbers have nothing to do with
    /// each other, so a case can be made again alone.
    pub fn new(seed: u64, area: &str, number: u64) -> Self {
        // The step of SplitMix64, so that near numbers give far starts.
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut start = seed.wrapping_mul(STEP) ^ number;
        for byte in area.bytes() {
            start = (start ^ u64::from(byte)).wrapping_mul(STEP).rotate_left(27);
        }
        Self(fastrand::Rng::with_seed(start))
    }

    /// True so many times of a hundred.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.0.u32(..100) < percent
    }

    /// A number below `end`, which is above 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end.max(1))
    }

    /// A number of `from..=to`.
    pub fn between(&mut self, from: usize, to: usize) -> usize {
        self.0.usize(from..=to.max(from))
    }

    /// One of the items.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len())]
    }

    /// An owned text of the list.
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
