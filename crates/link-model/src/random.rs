use rand::Rng;
use rand_pcg::Pcg64;

/// The random elements of one direction. Each draws from its own stream, so that switching one on does not
/// shift the draws of another.
#[derive(Clone, Copy)]
pub(crate) enum Element {
    Loss = 1,
    Jitter = 2,
    Queue = 3,
}

/// A seeded stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Stream(Pcg64);

impl Stream {
    pub fn new(seed: u64, element: Element) -> Stream {
        Stream(Pcg64::new(u128::from(seed), element as u128))
    }

    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// True with the probability. Draws even for 0 and 1, so a scheduled change of the
    /// probability does not shift the stream.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Standard normal (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}
