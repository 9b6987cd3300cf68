//! A run's TCP settings as settings of the model's endpoints.

use std::ops::RangeInclusive;
use std::sync::Arc;
use wirepaint_congestion_native::Instance;
use wirepaint_run::simulation::Tcp;
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

/// The settings of an endpoint.
pub fn config(
    tcp: &Tcp,
    mtu: u32,
    congestion: Arc<Instance>,
    initial_window: u32,
) -> Result<Config, Refusal> {
    let mut config = Config::linux(congestion);
    config.initial_window = initial_window;
    let mtu = tcp.mtu.unwrap_or(mtu);
    if !(576..=65_535).contains(&mtu) {
        return Err(("mtu".to_owned(), mtu.to_string(), "576 to 65535 bytes".to_owned()));
    }
    config.mss = mtu - 40;
    for (name, value) in &tcp.sysctls {
        set(&mut config, name, value)
            .map_err(|accepted| (format!("sysctls.{name}"), format!("{value:?}"), accepted))?;
    }
    config.quickack = tcp.quickack;
    if let Some(rto_min) = tcp.rto_min_ns {
        config.rto_min_us = u32::try_from(rto_min.0 / 1000).unwrap_or(u32::MAX);
    }
    Ok(config)
}

/// Sets a sysctl. An error says which values are accepted.
fn set(config: &mut Config, name: &str, value: &str) -> Result<(), String> {
    if WITHOUT_EFFECT.contains(&name) {
        return Ok(());
    }
    let Some((_, accepted, setter)) = SETTERS.iter().find(|(known, ..)| *known == name) else {
        let known: Vec<&str> = SETTERS.iter().map(|(known, ..)| *known).collect();
        return Err(format!("one of {}", known.join(", ")));
    };
    setter(config, value).ok_or_else(|| (*accepted).to_owned())
}

type Setter = fn(&mut Config, &str) -> Option<()>;

const FLAG: &str = "0 or 1";
const COUNT: &str = "a number from 0";
const BUFFER: &str = "three numbers of bytes in ascending order";

/// Name, what is accepted, and what it sets.
const SETTERS: [(&str, &str, Setter); 21] = [
    ("net.ipv4.tcp_comp_sack_delay_ns", COUNT, |c, v| number(v).map(|n| c.comp_sack_delay_ns = n)),
    ("net.ipv4.tcp_comp_sack_nr", "0 to 255", |c, v| within(v, 0..=255).map(|n| c.comp_sack_nr = n)),
    ("net.ipv4.tcp_comp_sack_slack_ns", COUNT, |c, v| number(v).map(|n| c.comp_sack_slack_ns = n)),
    ("net.ipv4.tcp_early_retrans", "0 to 4", |c, v| within(v, 0..=4).map(|n| c.tlp = n >= 3)),
    ("net.ipv4.tcp_ecn", "0, 1 or 2", |c, v| {
        let modes = [Ecn::Off, Ecn::On, Ecn::Passive];
        within(v, 0..=2).map(|n| c.ecn = modes[n as usize])
    }),
    ("net.ipv4.tcp_frto", "0 to 2", |c, v| within(v, 0..=2).map(|n| c.frto = n > 0)),
    ("net.ipv4.tcp_max_reordering", "1 to 65535", |c, v| within(v, 1..=65_535).map(|n| c.max_reordering = n)),
    ("net.ipv4.tcp_min_rtt_wlen", "0 to 86400 s", |c, v| {
        within(v, 0..=86_400).map(|n| c.min_rtt_window_s = n)
    }),
    ("net.ipv4.tcp_moderate_rcvbuf", FLAG, |c, v| flag(v).map(|on| c.moderate_rcvbuf = on)),
    ("net.ipv4.tcp_notsent_lowat", COUNT, |c, v| number(v).map(|n| c.notsent_lowat = n)),
    ("net.ipv4.tcp_pacing_ca_ratio", "0 to 1000 %", |c, v| {
        within(v, 0..=1000).map(|n| c.pacing_ca_percent = n.into())
    }),
    ("net.ipv4.tcp_pacing_ss_ratio", "0 to 1000 %", |c, v| {
        within(v, 0..=1000).map(|n| c.pacing_ss_percent = n.into())
    }),
    // DEVIATION: 0 selects RFC 6675, as in older kernels; Linux 6.18 still detects losses by RACK then if
    // there is SACK. Bits 2 and 4 (a fixed reordering window, no threshold of duplicates) are not supported.
    ("net.ipv4.tcp_recovery", FLAG, |c, v| {
        flag(v).map(|rack| c.loss_detection = if rack { LossDetection::Rack } else { LossDetection::Rfc6675 })
    }),
    ("net.ipv4.tcp_reordering", "1 to 65535", |c, v| within(v, 1..=65_535).map(|n| c.reordering = n)),
    ("net.ipv4.tcp_retries2", "1 to 255", |c, v| within(v, 1..=255).map(|n| c.retries = n)),
    ("net.ipv4.tcp_rmem", BUFFER, |c, v| three(v).map(|n| c.rmem = n)),
    ("net.ipv4.tcp_sack", FLAG, |c, v| flag(v).map(|on| c.sack = on)),
    ("net.ipv4.tcp_slow_start_after_idle", FLAG, |c, v| flag(v).map(|on| c.slow_start_after_idle = on)),
    ("net.ipv4.tcp_syn_retries", "1 to 127", |c, v| within(v, 1..=127).map(|n| c.syn_retries = n)),
    ("net.ipv4.tcp_timestamps", "0 to 2", |c, v| within(v, 0..=2).map(|n| c.timestamps = n > 0)),
    ("net.ipv4.tcp_wmem", BUFFER, |c, v| three(v).map(|n| c.wmem = n)),
];

fn number<T: std::str::FromStr>(value: &str) -> Option<T> {
    value.trim().parse().ok()
}

fn within(value: &str, range: RangeInclusive<u32>) -> Option<u32> {
    number(value).filter(|number| range.contains(number))
}

fn flag(value: &str) -> Option<bool> {
    within(value, 0..=1).map(|number| number == 1)
}

/// Three numbers in ascending order.
fn three(value: &str) -> Option<[u64; 3]> {
    let numbers: Option<Vec<u64>> = value.split_whitespace().map(number).collect();
    let numbers: [u64; 3] = numbers?.try_into().ok()?;
    (numbers[0] > 0 && numbers.is_sorted()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use wirepaint_congestion_native::find;

    fn configured(name: &str, value: &str) -> Result<Config, Refusal> {
        let tcp = Tcp { sysctls: BTreeMap::from([(name.to_owned(), value.to_owned())]), ..Tcp::default() };
        config(&tcp, 1500, find("std").unwrap().instance(&BTreeMap::new()).unwrap(), 10)
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
        assert_eq!((key.as_str(), found.as_str()), ("sysctls.net.ipv4.tcp_sacks", "\"1\""));
        assert!(accepted.starts_with("one of ") && accepted.contains("net.ipv4.tcp_sack,"), "{accepted}");
    }

    #[test]
    fn a_value_that_the_kernel_would_refuse_is_refused() {
        for (name, value, accepted) in [
            ("tcp_rmem", "1 2", BUFFER),
            ("tcp_rmem", "3 2 1", BUFFER),
            ("tcp_ecn", "yes", "0, 1 or 2"),
            ("tcp_reordering", "0", "1 to 65535"),
            ("tcp_pacing_ss_ratio", "1000000000000000000", "0 to 1000 %"),
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
