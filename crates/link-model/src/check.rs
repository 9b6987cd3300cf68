use crate::config::{
    Action, Capacity, Change, Counted, Direction, Jitter, Loss, Queue, Scripted, ServiceClass,
};
use std::borrow::Cow;
use std::fmt::Display;
use wirepaint_units::{Duration, Time};

/// Longest delay, jitter or AQM time that is accepted: an hour.
const LONGEST: Duration = Duration::from_secs(3600);
/// Highest rate; above it a packet takes less than a nanosecond.
const HIGHEST_RATE: u64 = 1_000_000_000_000;

/// Most service classes of a queue.
const MOST_CLASSES: usize = 8;

/// A value of a link's configuration that is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: found {found}, accepted: {accepted}")]
pub struct ConfigError {
    /// Key within the direction, such as `loss.probability`.
    pub key: String,
    /// What it held.
    pub found: String,
    /// What it may hold.
    pub accepted: Cow<'static, str>,
}

fn refuse<T>(
    key: &str,
    found: impl Display,
    accepted: impl Into<Cow<'static, str>>,
) -> Result<T, ConfigError> {
    Err(ConfigError { key: key.to_owned(), found: found.to_string(), accepted: accepted.into() })
}

fn time(key: &str, value: Duration, zero_ok: bool) -> Result<(), ConfigError> {
    if value > LONGEST {
        return refuse(key, format!("{} ns", value.0), "at most 3600000000000 (an hour)");
    }
    if value == Duration::ZERO && !zero_ok { refuse(key, "0", "at least 1 ns") } else { Ok(()) }
}

fn at_least_one(key: &str, value: u64) -> Result<(), ConfigError> {
    if value == 0 { refuse(key, "0", "at least 1") } else { Ok(()) }
}

impl Direction {
    /// Refuses values that the model does not support, for IP packets of at most `mtu` bytes.
    pub(crate) fn check(&self, mtu: u32) -> Result<(), ConfigError> {
        self.capacity.check()?;
        time("delay_ns", self.delay_ns, true)?;
        self.jitter.check()?;
        self.loss.check()?;
        self.queue.check(mtu + self.overhead_bytes)?;
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

fn limits(key: &str, packets: Option<u64>, bytes: Option<u64>, full_frame: u32) -> Result<(), ConfigError> {
    at_least_one(&format!("{key}.packets"), packets.unwrap_or(u64::MAX))?;
    // If a full packet never fits, the link is down.
    match bytes {
        Some(bytes) if bytes < u64::from(full_frame) => {
            refuse(&format!("{key}.bytes"), bytes, format!("at least {full_frame}, a full frame"))
        }
        _ => Ok(()),
    }
}

fn check_classes(classes: &[ServiceClass], full_frame: u32) -> Result<(), ConfigError> {
    if !(1..=MOST_CLASSES).contains(&classes.len()) {
        return refuse("queue.classes", format!("{} classes", classes.len()), "1 to 8 classes");
    }
    let rest = classes.iter().filter(|class| class.dscp.is_empty()).count();
    if rest != 1 {
        let found = format!("{rest} classes without dscp");
        return refuse("queue.classes", found, "exactly one, which takes all other code points");
    }
    let mut taken = [false; 64];
    for (index, class) in classes.iter().enumerate() {
        let key = format!("queue.classes[{index}]");
        if !(1..=1000).contains(&class.weight) {
            return refuse(&format!("{key}.weight"), class.weight, "1 to 1000");
        }
        for dscp in &class.dscp {
            match taken.get_mut(usize::from(*dscp)) {
                Some(taken) if !*taken => *taken = true,
                _ => return refuse(&format!("{key}.dscp"), dscp, "0 to 63, each in one class"),
            }
        }
        limits(&key, class.packets, class.bytes, full_frame)?;
    }
    Ok(())
}

impl Queue {
    fn check(&self, full_frame: u32) -> Result<(), ConfigError> {
        match *self {
            Queue::Droptail { packets, bytes } => limits("queue", packets, bytes, full_frame),
            Queue::Classes { ref classes } => check_classes(classes, full_frame),
            Queue::Codel { target_ns, interval_ns, packets, .. } => {
                time("queue.target_ns", target_ns, false)?;
                time("queue.interval_ns", interval_ns, false)?;
                at_least_one("queue.packets", packets)
            }
            Queue::FqCodel { flows, quantum, target_ns, interval_ns, packets, .. } => {
                if !(1..=65_536).contains(&flows) {
                    return refuse("queue.flows", flows, "1 to 65536");
                }
                // A deficit pays for whole packets, so a tiny quantum would loop for long.
                if !(64..=1_000_000).contains(&quantum) {
                    return refuse("queue.quantum", quantum, "64 to 1000000 bytes");
                }
                time("queue.target_ns", target_ns, false)?;
                time("queue.interval_ns", interval_ns, false)?;
                at_least_one("queue.packets", packets)
            }
            Queue::Pie { target_ns, update_ns, packets, .. } => {
                time("queue.target_ns", target_ns, false)?;
                if update_ns < Duration::from_micros(100) {
                    return refuse("queue.update_ns", update_ns.0, "at least 100000");
                }
                time("queue.update_ns", update_ns, false)?;
                at_least_one("queue.packets", packets)
            }
        }
    }
}
