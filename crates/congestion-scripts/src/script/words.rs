//! The words of a line: numbers, times, places, settings.

use crate::sender::Config;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use wirepaint_congestion_native::{Instance, find};

/// An algorithm by its name or file, with parameters given as `name=value`.
pub(super) fn instance<'a>(
    name: &str,
    given: impl Iterator<Item = &'a str>,
) -> Result<Arc<Instance>, String> {
    let mut parameters = BTreeMap::new();
    for word in given {
        let (key, value) =
            word.split_once('=').ok_or_else(|| format!("found {word:?}, accepted: name=value"))?;
        let value = value.parse().map_err(|_| format!("{key}: found {value:?}, accepted: an integer"))?;
        parameters.insert(key.to_owned(), value);
    }
    let found = find(name).and_then(|algorithm| {
        algorithm.resolve_for_kernel(&parameters)?; // a script is played in both arms
        algorithm.instance(&parameters)
    });
    found.map_err(|refusal| refusal.to_string())
}

pub(super) fn config(given: &[&str]) -> Result<Config, String> {
    let mut config = Config::default();
    for word in given {
        match word.split_once('=') {
            Some(("iw", value)) => config.initial_window = number(value)? as u32,
            Some(("mss", value)) => config.mss = number(value)? as u32,
            Some(("rtt", value)) => config.rtt_us = microseconds(value)?,
            Some(("rto", value)) => config.rto_us = microseconds(value)?,
            Some(("after_idle", value)) => config.after_idle = number(value)? != 0,
            Some(("to", value)) => {
                let refuse =
                    |_| format!("found to={value}, accepted: an address such as 10.1.2.3 or fd00::2");
                config.to = (value.parse::<IpAddr>().map_err(refuse)?, config.to.port()).into();
            }
            Some(("server", value)) => config.server = server(value)?,
            _ => {
                return Err(format!(
                    "found {word:?}, accepted: iw=, mss=, rtt=, rto=, after_idle=, to=, server="
                ));
            }
        }
    }
    Ok(config)
}

/// The number of a server.
pub(super) fn server(word: &str) -> Result<u8, String> {
    word.parse().map_err(|_| format!("found server {word:?}, accepted: 0 to 255"))
}

pub(super) fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("found {word:?}, accepted: a number"))
}

/// A time such as `120ms`, `1.2s` or `50us`.
pub(super) fn microseconds(word: &str) -> Result<u64, String> {
    let refuse = || format!("found {word:?}, accepted: a time such as 120ms, 1.2s or 50us");
    let unit = word.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(refuse)?;
    let factor = match &word[unit..] {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        _ => return Err(refuse()),
    };
    let value: f64 = word[..unit].parse().map_err(|_| refuse())?;
    Ok((value * factor).round() as u64)
}

pub(super) fn at(place: &[&str]) -> Result<usize, String> {
    match place {
        [] => Ok(1),
        ["at", position] => match number(position)? {
            0 => Err("found position 0, accepted: 1 for the oldest segment in flight, or more".to_owned()),
            position => Ok(position as usize),
        },
        _ => Err(format!("found {:?}, accepted: at K", place.join(" "))),
    }
}

pub(super) fn ece(flags: &[&str]) -> Result<bool, String> {
    match flags {
        [] => Ok(false),
        ["ece"] => Ok(true),
        _ => Err(format!("found {:?}, accepted: ece", flags.join(" "))),
    }
}
