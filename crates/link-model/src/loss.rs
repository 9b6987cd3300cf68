use crate::config::Loss;
use crate::random::Stream;

/// Loss in front of the queue, decided packet by packet.
#[derive(Debug)]
pub(crate) struct LossModel {
    config: Loss,
    /// State of the Gilbert-Elliott chain.
    bad: bool,
    stream: Stream,
}

impl LossModel {
    pub fn new(config: Loss, stream: Stream) -> LossModel {
        LossModel { config, bad: false, stream }
    }

    /// Applies a scheduled change; the chain starts in the good state.
    pub fn change(&mut self, config: Loss) {
        self.config = config;
        self.bad = false;
    }

    /// Whether the next packet is lost. The chain steps after the decision.
    pub fn loses(&mut self) -> bool {
        match self.config {
            Loss::None => false,
            Loss::Independent { probability } => self.stream.chance(probability),
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_in_bad, loss_in_good } => {
                let (loss, leave) =
                    if self.bad { (loss_in_bad, bad_to_good) } else { (loss_in_good, good_to_bad) };
                let lost = self.stream.chance(loss);
                self.bad ^= self.stream.chance(leave);
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Element;

    fn losses(config: Loss, packets: usize) -> Vec<bool> {
        let mut model = LossModel::new(config, Stream::new(7, Element::Loss));
        (0..packets).map(|_| model.loses()).collect()
    }

    #[test]
    fn independent_loss_has_the_asked_share() {
        let lost = losses(Loss::Independent { probability: 0.02 }, 200_000).iter().filter(|l| **l).count();
        // Five standard deviations of a binomial.
        let deviation = (200_000.0_f64 * 0.02 * 0.98).sqrt();
        assert!((lost as f64 - 4000.0).abs() < 5.0 * deviation, "{lost}");
    }

    #[test]
    fn gilbert_elliott_has_the_stationary_share_and_the_mean_burst_of_its_chain() {
        let config = Loss::GilbertElliott {
            good_to_bad: 0.01,
            bad_to_good: 0.25,
            loss_in_bad: 1.0,
            loss_in_good: 0.0,
        };
        let lost = losses(config, 500_000);
        let share = lost.iter().filter(|l| **l).count() as f64 / lost.len() as f64;
        assert!((share - 0.01 / 0.26).abs() < 0.002, "stationary share of the bad state, found {share}");
        let bursts = lost.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let mean = share * lost.len() as f64 / bursts;
        assert!((mean - 4.0).abs() < 0.15, "mean burst is 1 / bad_to_good, found {mean}");
    }
}
