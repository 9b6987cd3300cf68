use crate::config::{Action, Capacity, Change, Counted, Direction, Jitter, Loss, Scripted};
use crate::queue::Queue;
use crate::refused::{ConfigError, LONGEST, refuse, time};
use wirepaint_units::Time;

/// Highest rate; above it a packet takes less than a nanosecond.
const HIGHEST_RATE: u64 = 1_000_000_000_000;

impl Direction {
    /// Refuses values that the model does not support, for IP packets of at most `mtu` bytes.
    pub(crate) fn check(&self, mtu: u32) -> Result<(), ConfigError> {
        self.capacity.check()?;
        time("delay_ns", self.delay_ns, true)?;
        self.jitter.check()?;
        self.loss.check()?;
        self.queue.check(mtu + self.overhead_bytes)?;
        if let Queue::Classes(config) = &self.queue
            && config.classes.iter().any(|class| class.ceiling_bit_per_s.is_some())
        {
            let unlimited = |capacity: &Capacity| matches!(capacity, Capacity::Unlimited);
            if unlimited(&self.capacity)
                || self.changes.iter().filter_map(|c| c.capacity.as_ref()).any(unlimited)
            {
                return refuse(
                    "queue.classes",
                    "a ceiling without a capacity",
                    "a ceiling below a rate or trace",
                );
            }
        }
        if self.overhead_bytes > 1000 {
            return refuse("overhead_bytes", self.overhead_bytes, "0 to 1000");
        }
        let mut last = Time::ZERO;
        for (index, change) in self.changes.iter().enumerate() {
            let within =
                |error: ConfigError| ConfigError { key: format!("changes[{index}].{}", error.key), ..error };
            change.check().map_err(within)?;
            if change.at_ns < last {
                return refuse("at_ns", change.at_ns.0, "times in ascending order").map_err(within);
            }
            last = change.at_ns;
        }
        check_script(&self.scripted)
    }
}

fn check_script(scripted: &[Scripted]) -> Result<(), ConfigError> {
    let (mut last_data, mut last_bare) = (0, 0);
    for (index, Scripted { what, nth, action }) in scripted.iter().enumerate() {
        let within =
            |error: ConfigError| ConfigError { key: format!("scripted[{index}].{}", error.key), ..error };
        let last = match what {
            Counted::Data => &mut last_data,
            Counted::Bare => &mut last_bare,
        };
        if *nth <= *last {
            return refuse("nth", nth, "at least 1, ascending among those that count the same packets")
                .map_err(within);
        }
        *last = *nth;
        if let Action::Hold { extra_ns } = action {
            time("action.extra_ns", *extra_ns, false).map_err(within)?;
        }
    }
    Ok(())
}

impl Change {
    fn check(&self) -> Result<(), ConfigError> {
        self.capacity.as_ref().map_or(Ok(()), Capacity::check)?;
        self.delay_ns.map_or(Ok(()), |delay| time("delay_ns", delay, true))?;
        self.jitter.map_or(Ok(()), Jitter::check)?;
        self.loss.map_or(Ok(()), Loss::check)
    }
}

impl Capacity {
    fn check(&self) -> Result<(), ConfigError> {
        match self {
            Capacity::Unlimited => Ok(()),
            Capacity::Rate { bit_per_s } if bit_per_s.0 > HIGHEST_RATE => {
                refuse("capacity.bit_per_s", bit_per_s.0, "at most 1000000000000")
            }
            Capacity::Rate { .. } => Ok(()),
            Capacity::Trace { opportunities_ms: ms, .. } => {
                let key = "capacity.opportunities_ms";
                if ms.last().is_none_or(|last| *last == 0) {
                    return refuse(key, format!("{} times", ms.len()), "at least one time above 0");
                }
                if let Some(at) = ms.windows(2).position(|pair| pair[0] > pair[1]) {
                    return refuse(
                        key,
                        format!("{} after {}", ms[at + 1], ms[at]),
                        "times in ascending order",
                    );
                }
                if ms[ms.len() - 1] > LONGEST.0 {
                    return refuse(key, ms[ms.len() - 1], "milliseconds, at most 3600000000000");
                }
                Ok(())
            }
        }
    }
}

impl Jitter {
    fn check(self) -> Result<(), ConfigError> {
        match self {
            Jitter::None => Ok(()),
            Jitter::Uniform { range_ns, .. } => time("jitter.range_ns", range_ns, true),
            Jitter::Exponential { mean_ns, .. } => time("jitter.mean_ns", mean_ns, true),
            Jitter::Normal { stddev_ns, .. } => time("jitter.stddev_ns", stddev_ns, true),
        }
    }
}

impl Loss {
    fn check(self) -> Result<(), ConfigError> {
        let share = |key, value: f64| {
            if (0.0..=1.0).contains(&value) { Ok(()) } else { refuse(key, value, "0 to 1") }
        };
        match self {
            Loss::None => Ok(()),
            Loss::Independent { probability } => share("loss.probability", probability),
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_in_bad, loss_in_good } => {
                share("loss.good_to_bad", good_to_bad)?;
                share("loss.bad_to_good", bad_to_good)?;
                share("loss.loss_in_bad", loss_in_bad)?;
                share("loss.loss_in_good", loss_in_good)
            }
        }
    }
}
