//! A run's TCP settings as settings of the model's endpoints.

use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use wirepaint_congestion_native::Instance;
use wirepaint_run::Transport;
use wirepaint_tcp_model::{Config, Ecn, LossDetection};

/// Kernel settings without effect: the model lacks what they control.
const WITHOUT_EFFECT: [&str; 5] = [
    "net.core.somaxconn",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_fastopen",
];

/// Why a setting was refused: its name, what was found, what is accepted.
pub type Refusal = (String, String, String);

/// The kernel settings that the model has, by name, with the values that it accepts.
pub fn sysctls() -> BTreeMap<&'static str, Form> {
    let without = WITHOUT_EFFECT.map(|name| (name, Form::Anything));
    SETTERS.iter().map(|(name, form, _)| (*name, *form)).chain(without).collect()
}

/// The settings of an endpoint.
pub fn config(
    transport: &Transport,
    mtu: u32,
    congestion: Arc<Instance>,
    initial_window: u32,
) -> Result<Config, Refusal> {
    let mut config = Config::linux(congestion);
    config.initial_window = initial_window;
    if !(576..=65_535).contains(&mtu) {
        return Err(("segments.mtu".to_owned(), mtu.to_string(), "576 to 65535 bytes".to_owned()));
    }
    config.mss = mtu - 40;
    for (name, value) in &transport.sysctls {
        set(&mut config, name, value)
            .map_err(|accepted| (format!("transport.sysctls.{name}"), format!("{value:?}"), accepted))?;
    }
    config.quickack = transport.quickack;
    if let Some(rto_min) = transport.rto_min_ns {
        config.rto_min_us = u32::try_from(rto_min.0 / 1000).unwrap_or(u32::MAX);
    }
    Ok(config)
}

/// Sets a sysctl. An error says which values are accepted.
fn set(config: &mut Config, name: &str, value: &str) -> Result<(), String> {
    if WITHOUT_EFFECT.contains(&name) {
        return Ok(());
    }
    let Some((_, form, setter)) = SETTERS.iter().find(|(known, ..)| *known == name) else {
        let known: Vec<&str> = SETTERS.iter().map(|(known, ..)| *known).collect();
        return Err(format!("one of {}", known.join(", ")));
    };
    setter(config, form.read(value).ok_or_else(|| form.to_string())?);
    Ok(())
}

/// Values that a kernel setting accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "form", rename_all = "lowercase")]
pub enum Form {
    /// A whole number.
    Number {
        /// Smallest.
        least: u64,
        /// Largest.
        most: u64,
    },
    /// Three numbers of bytes in ascending order.
    Buffer,
    /// Anything: the model lacks what it controls.
    Anything,
}

impl Form {
    /// The value as one number, or as three; `None` if it is not accepted.
    fn read(self, value: &str) -> Option<[u64; 3]> {
        let numbers: Option<Vec<u64>> = value.split_whitespace().map(|word| word.parse().ok()).collect();
        match (self, &numbers?[..]) {
            (Form::Number { least, most }, &[number]) if (least..=most).contains(&number) => {
                Some([number, 0, 0])
            }
            (Form::Buffer, &[least, usual, most]) if 0 < least && least <= usual && usual <= most => {
                Some([least, usual, most])
            }
            _ => None,
        }
    }
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Form::Number { least, most } if *most == u64::MAX => write!(f, "a number from {least}"),
            Form::Number { least, most } => write!(f, "{least} to {most}"),
            Form::Buffer => f.write_str("three numbers of bytes in ascending order"),
            Form::Anything => f.write_str("anything"),
        }
    }
}

type Setter = fn(&mut Config, [u64; 3]);

const fn within(least: u64, most: u64) -> Form {
    Form::Number { least, most }
}

const FLAG: Form = within(0, 1);
const COUNT: Form = within(0, u64::MAX);

/// Name, what is accepted, and what it sets.
const SETTERS: [(&str, Form, Setter); 21] = [
    ("net.ipv4.tcp_comp_sack_delay_ns", COUNT, |c, [n, ..]| c.comp_sack_delay_ns = n),
    ("net.ipv4.tcp_comp_sack_nr", within(0, 255), |c, [n, ..]| c.comp_sack_nr = n as u32),
    ("net.ipv4.tcp_comp_sack_slack_ns", COUNT, |c, [n, ..]| c.comp_sack_slack_ns = n),
    ("net.ipv4.tcp_early_retrans", within(0, 4), |c, [n, ..]| c.tlp = n >= 3),
    ("net.ipv4.tcp_ecn", within(0, 2), |c, [n, ..]| c.ecn = [Ecn::Off, Ecn::On, Ecn::Passive][n as usize]),
    ("net.ipv4.tcp_frto", within(0, 2), |c, [n, ..]| c.frto = n > 0),
    ("net.ipv4.tcp_max_reordering", within(1, 65_535), |c, [n, ..]| c.max_reordering = n as u32),
    // Seconds.
    ("net.ipv4.tcp_min_rtt_wlen", within(0, 86_400), |c, [n, ..]| c.min_rtt_window_s = n as u32),
    ("net.ipv4.tcp_moderate_rcvbuf", FLAG, |c, [n, ..]| c.moderate_rcvbuf = n > 0),
    ("net.ipv4.tcp_notsent_lowat", COUNT, |c, [n, ..]| c.notsent_lowat = n),
    // Per cent.
    ("net.ipv4.tcp_pacing_ca_ratio", within(0, 1000), |c, [n, ..]| c.pacing_ca_percent = n),
    ("net.ipv4.tcp_pacing_ss_ratio", within(0, 1000), |c, [n, ..]| c.pacing_ss_percent = n),
    // DEVIATION: 0 selects RFC 6675, as in older kernels; Linux 6.18 still detects losses by RACK then if
    // there is SACK. Bits 2 and 4 (a fixed reordering window, no threshold of duplicates) are not supported.
    ("net.ipv4.tcp_recovery", FLAG, |c, [n, ..]| {
        c.loss_detection = if n > 0 { LossDetection::Rack } else { LossDetection::Rfc6675 };
    }),
    ("net.ipv4.tcp_reordering", within(1, 65_535), |c, [n, ..]| c.reordering = n as u32),
    ("net.ipv4.tcp_retries2", within(1, 255), |c, [n, ..]| c.retries = n as u32),
    ("net.ipv4.tcp_rmem", Form::Buffer, |c, n| c.rmem = n),
    ("net.ipv4.tcp_sack", FLAG, |c, [n, ..]| c.sack = n > 0),
    ("net.ipv4.tcp_slow_start_after_idle", FLAG, |c, [n, ..]| c.slow_start_after_idle = n > 0),
    ("net.ipv4.tcp_syn_retries", within(1, 127), |c, [n, ..]| c.syn_retries = n as u32),
    ("net.ipv4.tcp_timestamps", within(0, 2), |c, [n, ..]| c.timestamps = n > 0),
    ("net.ipv4.tcp_wmem", Form::Buffer, |c, n| c.wmem = n),
];

#[cfg(test)]
mod tests {
    use super::*;
    use wirepaint_congestion_native::find;

    fn configured(name: &str, value: &str) -> Result<Config, Refusal> {
        let sysctls = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let transport = Transport { sysctls, ..Transport::default() };
        config(&transport, 1500, find("std").unwrap().instance(&BTreeMap::new()).unwrap(), 10)
    }

    #[test]
    fn a_sysctl_sets_what_it_sets_in_the_kernel() {
        assert!(!configured("net.ipv4.tcp_slow_start_after_idle", "0").ok().unwrap().slow_start_after_idle);
        let buffers = configured("net.ipv4.tcp_rmem", "4096 131072\t6291456").ok().unwrap().rmem;
        assert_eq!(buffers, [4096, 131_072, 6_291_456]);
        assert_eq!(configured("net.core.somaxconn", "4096").ok().unwrap().mss, 1460);
    }

    #[test]
    fn an_unknown_sysctl_is_refused_with_those_that_exist() {
        let (key, found, accepted) = configured("net.ipv4.tcp_sacks", "1").err().unwrap();
        assert_eq!((key.as_str(), found.as_str()), ("transport.sysctls.net.ipv4.tcp_sacks", "\"1\""));
        assert!(accepted.starts_with("one of ") && accepted.contains("net.ipv4.tcp_sack,"), "{accepted}");
    }

    #[test]
    fn a_value_that_the_kernel_would_refuse_is_refused() {
        for (name, value, accepted) in [
            ("tcp_rmem", "1 2", "three numbers of bytes in ascending order"),
            ("tcp_rmem", "3 2 1", "three numbers of bytes in ascending order"),
            ("tcp_ecn", "yes", "0 to 2"),
            ("tcp_reordering", "0", "1 to 65535"),
            ("tcp_pacing_ss_ratio", "1000000000000000000", "0 to 1000"),
        ] {
            let refusal = configured(&format!("net.ipv4.{name}"), value).err().unwrap();
            assert_eq!(refusal.2, accepted, "{name} = {value}");
        }
    }

    #[test]
    fn what_would_mean_something_else_than_on_the_testbed_is_refused() {
        for (name, value) in
            [("tcp_congestion_control", "cubic"), ("tcp_recovery", "3"), ("tcp_recovery", "4")]
        {
            assert!(configured(&format!("net.ipv4.{name}"), value).is_err(), "{name} = {value}");
        }
    }
}
