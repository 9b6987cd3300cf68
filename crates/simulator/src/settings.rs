//! A run's TCP settings as settings of the model's endpoints.

use std::sync::Arc;
use wirepaint_congestion_native::Instance;
use wirepaint_run::simulation::Tcp;
use wirepaint_tcp_model::{Config, Ecn, LossDetection};

/// Settings of the kernel that change nothing in the model: what they govern does not exist there.
const WITHOUT_EFFECT: [&str; 6] = [
    "net.core.somaxconn",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
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

/// Sets what a sysctl sets; an error says what is accepted.
fn set(config: &mut Config, name: &str, value: &str) -> Result<(), String> {
    if WITHOUT_EFFECT.contains(&name) {
        return Ok(());
    }
    let setter = SETTERS.iter().find(|(known, _)| *known == name);
    let Some((_, setter)) = setter else {
        let known: Vec<&str> = SETTERS.iter().map(|(known, _)| *known).collect();
        return Err(format!("one of {}", known.join(", ")));
    };
    setter(config, value).ok_or_else(|| "a value that Linux takes for it".to_owned())
}

type Setter = fn(&mut Config, &str) -> Option<()>;

const SETTERS: [(&str, Setter); 21] = [
    ("net.ipv4.tcp_comp_sack_delay_ns", |c, v| number(v).map(|n| c.comp_sack_delay_ns = n)),
    ("net.ipv4.tcp_comp_sack_nr", |c, v| number(v).map(|n| c.comp_sack_nr = n)),
    ("net.ipv4.tcp_comp_sack_slack_ns", |c, v| number(v).map(|n| c.comp_sack_slack_ns = n)),
    ("net.ipv4.tcp_early_retrans", |c, v| number::<u8>(v).map(|n| c.tlp = n >= 3)),
    ("net.ipv4.tcp_ecn", |c, v| {
        c.ecn = match v {
            "0" => Ecn::Off,
            "1" => Ecn::On,
            "2" => Ecn::Passive,
            _ => return None,
        };
        Some(())
    }),
    ("net.ipv4.tcp_frto", |c, v| flag(v).map(|on| c.frto = on)),
    ("net.ipv4.tcp_max_reordering", |c, v| number(v).map(|n| c.max_reordering = n)),
    ("net.ipv4.tcp_min_rtt_wlen", |c, v| number(v).map(|n| c.min_rtt_window_s = n)),
    ("net.ipv4.tcp_moderate_rcvbuf", |c, v| flag(v).map(|on| c.moderate_rcvbuf = on)),
    ("net.ipv4.tcp_notsent_lowat", |c, v| number(v).map(|n| c.notsent_lowat = n)),
    ("net.ipv4.tcp_pacing_ca_ratio", |c, v| number(v).map(|n| c.pacing_ca_percent = n)),
    ("net.ipv4.tcp_pacing_ss_ratio", |c, v| number(v).map(|n| c.pacing_ss_percent = n)),
    // RACK is bit 0; without it Linux 6.18 still uses RACK with SACK, older ones RFC 6675.
    ("net.ipv4.tcp_recovery", |c, v| {
        c.loss_detection =
            if number::<u8>(v)? & 1 == 1 { LossDetection::Rack } else { LossDetection::Rfc6675 };
        Some(())
    }),
    ("net.ipv4.tcp_reordering", |c, v| number(v).map(|n| c.reordering = n)),
    ("net.ipv4.tcp_retries2", |c, v| number(v).map(|n| c.retries = n)),
    ("net.ipv4.tcp_rmem", |c, v| three(v).map(|n| c.rmem = n)),
    ("net.ipv4.tcp_sack", |c, v| flag(v).map(|on| c.sack = on)),
    ("net.ipv4.tcp_slow_start_after_idle", |c, v| flag(v).map(|on| c.slow_start_after_idle = on)),
    ("net.ipv4.tcp_syn_retries", |c, v| number(v).map(|n| c.syn_retries = n)),
    ("net.ipv4.tcp_timestamps", |c, v| flag(v).map(|on| c.timestamps = on)),
    ("net.ipv4.tcp_wmem", |c, v| three(v).map(|n| c.wmem = n)),
];

fn number<T: std::str::FromStr>(value: &str) -> Option<T> {
    value.trim().parse().ok()
}

fn flag(value: &str) -> Option<bool> {
    number::<u8>(value).map(|number| number != 0)
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
        for (name, value) in
            [("net.ipv4.tcp_rmem", "1 2"), ("net.ipv4.tcp_rmem", "3 2 1"), ("net.ipv4.tcp_ecn", "yes")]
        {
            assert!(configured(name, value).is_err(), "{name} = {value}");
        }
    }
}
