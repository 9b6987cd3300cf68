//! What differs from visit to visit: computing never takes the same time twice.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use wirepaint_units::Duration;

/// Varies times at random, the same way for the same seed.
#[derive(Debug)]
pub struct Noise {
    random: Pcg64Mcg,
    percent: i64,
}

impl Noise {
    /// Up to `percent` more or less. `stream` keeps those who draw apart.
    pub fn new(seed: u64, stream: u64, percent: u8) -> Noise {
        let random = Pcg64Mcg::seed_from_u64(seed ^ stream.rotate_left(48));
        Noise { random, percent: i64::from(percent.min(100)) }
    }

    /// A number below `count`.
    pub fn below(&mut self, count: u8) -> u8 {
        self.random.random_range(0..count)
    }

    /// `usual`, a little more or less.
    pub fn vary(&mut self, usual: Duration) -> Duration {
        if self.percent == 0 {
            return usual;
        }
        // A thousandth of the range is fine enough.
        let share = self.random.random_range(-1000..=1000i64) * self.percent;
        let change = i128::from(usual.0) * i128::from(share) / 100_000;
        Duration((i128::from(usual.0) + change) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stay_within_the_range_and_repeat_by_seed() {
        let draw = |seed| {
            let mut noise = Noise::new(seed, 1, 20);
            (0..1000).map(|_| noise.vary(Duration(1_000_000)).0).collect::<Vec<_>>()
        };
        let times = draw(5);
        assert!(times.iter().all(|time| (800_000..=1_200_000).contains(time)));
        assert!(times.iter().any(|&time| time < 830_000) && times.iter().any(|&time| time > 1_170_000));
        assert_eq!(times, draw(5));
        assert_ne!(times, draw(6));
    }

    #[test]
    fn without_a_range_times_are_as_usual() {
        assert_eq!(Noise::new(5, 1, 0).vary(Duration(77)), Duration(77));
    }
}
