/// Buckets per octave: the resolution is 1/32.
const PARTS: usize = 32;
const PART_BITS: u32 = PARTS.trailing_zeros();

/// A histogram of durations in nanoseconds with a relative error below 1/32; adding is O(1) and
/// never allocates.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    max: u64,
}

impl Histogram {
    pub fn new() -> Histogram {
        Histogram { counts: vec![0; PARTS * (65 - PART_BITS as usize)].into(), count: 0, max: 0 }
    }

    pub fn add(&mut self, value: u64) {
        self.counts[index(value)] += 1;
        self.count += 1;
        self.max = self.max.max(value);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn max(&self) -> u64 {
        self.max
    }

    /// The quantile of `share`, rounded up to its bucket's end; `None` for an empty histogram.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = ((share * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let bucket = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(upper(bucket).min(self.max))
    }
}

/// Values below `PARTS` each have a bucket; above, each octave has `PARTS` buckets.
fn index(value: u64) -> usize {
    if value < PARTS as u64 {
        return value as usize;
    }
    let shift = value.ilog2() - PART_BITS;
    (shift as usize) * PARTS + (value >> shift) as usize
}

fn upper(bucket: usize) -> u64 {
    if bucket < 2 * PARTS {
        return bucket as u64;
    }
    let shift = (bucket / PARTS - 1) as u32;
    let part = (bucket % PARTS + PARTS) as u64;
    ((u128::from(part + 1) << shift) - 1).min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_within_a_thirty_second() {
        for value in (0..5_000).chain((0..60).map(|bit| (1_u64 << bit) + 12_345)).chain([u64::MAX]) {
            let top = upper(index(value));
            assert!(top >= value, "{value} {top}");
            assert!(top - value <= value / 32, "{value} {top}");
        }
    }

    #[test]
    fn quantiles_are_ranks() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.quantile(0.5), None);
        (1..=20).for_each(|value| histogram.add(value));
        assert_eq!(histogram.quantile(0.5), Some(10));
        assert_eq!(histogram.quantile(0.99), Some(20));
        assert_eq!((histogram.count(), histogram.max()), (20, 20));
    }
}
