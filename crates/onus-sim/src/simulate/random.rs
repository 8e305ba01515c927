//! Luck that repeats: a generator with one number of state.

/// SplitMix64: every seed gives a good sequence, and the next number costs a nanosecond.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The sequence of `stream` under `seed`: different streams share no luck.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        // Small seeds differ in few bits; two steps spread them.
        random.next();
        Self(random.next())
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (-53_f64).exp2()
    }

    /// True with this probability; certain and impossible things use up no luck.
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        probability >= 1.0 || probability > 0.0 && self.unit() < probability
    }

    /// Uniform below `bound`; zero if there is nothing below.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.next() as u32) * u64::from(bound)) >> 32) as u32
    }

    /// Exponential with mean 1.
    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut random = Random::new(1, 2);
        let n = 200_000;
        let mut mean = |draw: &mut dyn FnMut(&mut Random) -> f64| {
            (0..n).map(|_| draw(&mut random)).sum::<f64>() / f64::from(n)
        };
        for (what, mean, expected) in [
            ("uniform", mean(&mut Random::unit), 0.5),
            ("exponential", mean(&mut Random::exponential), 1.0),
            ("normal", mean(&mut Random::normal), 0.0),
            ("normal squared", mean(&mut |random| random.normal().powi(2)), 1.0),
            ("below", mean(&mut |random| f64::from(random.below(11))), 5.0),
            ("happens", mean(&mut |random| f64::from(u8::from(random.happens(0.3)))), 0.3),
        ] {
            assert!((mean - expected).abs() < 0.02, "{what}: {mean}");
        }
    }

    #[test]
    fn streams_and_seeds_differ_and_repeat() {
        let first = |seed, stream| Random::new(seed, stream).next();
        assert_eq!(first(1, 1), first(1, 1));
        assert_ne!(first(1, 1), first(1, 2));
        assert_ne!(first(1, 1), first(2, 1));
    }
}
