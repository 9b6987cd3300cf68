//! Variation between visits: the duration of computing varies.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use wirepaint_units::Duration;

/// Work is divided into parts of this many ns that vary independently.
const PART: u64 = 500_000;

/// Varies times at random, the same way for the same seed.
#[derive(Debug)]
pub struct Noise {
    random: Pcg64Mcg,
    percent: i64,
}

impl Noise {
    /// Variation by up to `percent` (at most 100). `stream` separates the users of one seed.
    pub fn new(seed: u64, stream: u64, percent: u8) -> Noise {
        let random = Pcg64Mcg::seed_from_u64(seed ^ stream.rotate_left(48));
        Noise { random, percent: i64::from(percent) }
    }

    /// A number below `count`.
    pub fn below(&mut self, count: u8) -> u8 {
        self.random.random_range(0..count)
    }

    /// Varies `usual`; the longer it is, the smaller the share.
    pub fn vary(&mut self, usual: Duration) -> Duration {
        if self.percent == 0 {
            return usual;
        }
        // A thousandth of the range is fine enough.
        let share = self.random.random_range(-1000..=1000i64) * self.percent;
        // Parts vary independently, so that the whole varies by the square root of their number.
        let varied = (usual.0.min(PART) * usual.0).isqrt();
        let change = i128::from(varied) * i128::from(share) / 100_000;
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
            (0..1000).map(|_| noise.vary(Duration(PART)).0).collect::<Vec<_>>()
        };
        let times = draw(5);
        assert!(times.iter().all(|time| (400_000..=600_000).contains(time)));
        assert!(times.iter().any(|&time| time < 415_000) && times.iter().any(|&time| time > 585_000));
        assert_eq!(times, draw(5));
        assert_ne!(times, draw(6));
    }

    #[test]
    fn a_hundred_parts_vary_ten_times_as_much_as_one() {
        let mut noise = Noise::new(5, 1, 20);
        let times: Vec<u64> = (0..1000).map(|_| noise.vary(Duration(100 * PART)).0).collect();
        let [least, most] = [times.iter().min(), times.iter().max()].map(|time| *time.unwrap());
        assert!((49_000_000..49_100_000).contains(&least) && (50_900_000..=51_000_000).contains(&most));
    }

    #[test]
    fn without_a_range_times_are_as_usual() {
        assert_eq!(Noise::new(5, 1, 0).vary(Duration(77)), Duration(77));
    }
}
