//! A small deterministic generator of random numbers, so that each run does the same work.
//!
//! Not for cryptography and not for statistics. Source: Vigna, "An experimental exploration of Marsaglia's
//! xorshift generators, scrambled", the 64-bit variant with shifts 12, 25, 27.

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence for `seed`.
    pub fn new(seed: u64) -> Random {
        // The state must not be zero: the generator would never leave it.
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((u128::from(number) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn numbers_stay_below_the_bound_and_repeat_with_the_seed() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..1000).map(|_| random.below(10)).collect::<Vec<_>>()
        };
        assert!(draw(7).iter().all(|&number| number < 10));
        assert!((0..10).all(|number| draw(7).contains(&number)));
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
