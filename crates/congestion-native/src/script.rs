//! Acknowledgement scripts: what the path does goes in, what the window does comes out.
//!
//! One line is one event, its checks follow `=>`; `#` starts a comment.
//!
//! ```text
//! cc fld fld_threshold=50000          # first: the algorithm and its parameters
//! open iw=10 mss=1500 rtt=100ms       # established; also rto=304ms after_idle=0
//! write bulk                          # the application writes without end; or: write 30, write 500kB
//! round          => cwnd 30, flight 30
//! lose 3 at 5                         # three segments in flight vanish, from the 5th on
//! round x2       => cwnd 27, ssthresh 27, state Open
//! +1.2s write 40 => flight 10         # time passes first; what arrives meanwhile is acknowledged
//! ```
//!
//! Events: `write N|NkB|bulk|nothing`, `round`, `ack N [ece]` (the next N segments arrive, one ACK
//! each), `stretch N [ece]` (one ACK for N), `lose N [at K]`, `hold N [at K]` and `arrive` (they
//! come late), `rto`, `tlp`, `local-drop`, `idle TIME`, `finish` (rounds until all is acknowledged),
//! `switch NAME [parameter=value...]`. Suffix `xN` repeats an event. Checks: `cwnd`, `ssthresh` (or `inf`),
//! `flight`, `state`, `lost`, `retransmitted`, `sent_kb`, `rounds`, `cc`.

use crate::sender::{Config, Sender};
use crate::{INFINITE_SSTHRESH, Instance, find};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What stopped a script: a line that could not be read, or a check that did not hold.
#[derive(Debug, thiserror::Error)]
pub struct ScriptError {
    /// The script.
    pub path: PathBuf,
    /// Line from 1; 0 where the whole file is meant.
    pub line: usize,
    /// What was found and what was accepted or expected.
    pub message: String,
    /// True where the script was understood and the algorithm did something else.
    pub differs: bool,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.message)
    }
}

/// Runs a script file; the number of checks that held.
pub fn run(path: &Path) -> Result<usize, ScriptError> {
    let error = |line, message, differs| ScriptError { path: path.to_owned(), line, message, differs };
    let text = std::fs::read_to_string(path).map_err(|e| error(0, e.to_string(), false))?;
    let mut script = Script::default();
    let mut checks = 0;
    for (index, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or_default().trim();
        if code.is_empty() {
            continue;
        }
        let (event, expected) = code.split_once("=>").unwrap_or((code, ""));
        let event = event.trim();
        script.event(event).map_err(|message| error(index + 1, message, false))?;
        for check in expected.split(',').map(str::trim).filter(|check| !check.is_empty()) {
            let (key, wanted) = check
                .split_once(' ')
                .ok_or_else(|| error(index + 1, format!("check {check:?} has no value"), false))?;
            let wanted = wanted.trim();
            let found = script.observe(key).map_err(|message| error(index + 1, message, false))?;
            if found != wanted {
                let message =
                    format!("after `{event}`: {key} is {found}, expected {wanted} ({})", script.summary());
                return Err(error(index + 1, message, true));
            }
            checks += 1;
        }
    }
    if checks == 0 {
        return Err(error(0, "the script checks nothing".to_owned(), false));
    }
    Ok(checks)
}

#[derive(Default)]
struct Script {
    instance: Option<Arc<Instance>>,
    sender: Option<Sender>,
}

impl Script {
    fn event(&mut self, event: &str) -> Result<(), String> {
        let mut words: Vec<&str> = event.split_whitespace().collect();
        if let Some(pause) = words.first().and_then(|word| word.strip_prefix('+')) {
            self.sender()?.advance(microseconds(pause)?);
            words.remove(0);
        }
        let mut times = 1;
        if let Some(repeat) = words.last().and_then(|word| word.strip_prefix('x')?.parse::<u64>().ok()) {
            times = repeat;
            words.pop();
        }
        let pause = event.split_whitespace().next().and_then(|word| word.strip_prefix('+'));
        for turn in 0..times {
            if let (Some(pause), 1..) = (pause, turn) {
                self.sender()?.advance(microseconds(pause)?);
            }
            self.once(&words)?;
        }
        Ok(())
    }

    fn once(&mut self, words: &[&str]) -> Result<(), String> {
        let mss = self.sender.as_ref().map_or(1, |sender| u64::from(sender.connection.tp.mss_cache));
        match *words {
            [] => {}
            ["cc", name, ref given @ ..] => self.instance = Some(instance(name, given)?),
            ["open", ref given @ ..] => {
                let instance = self.instance.clone().ok_or("`cc NAME` must come before `open`")?;
                self.sender = Some(Sender::open(instance, config(given)?));
            }
            ["switch", name, ref given @ ..] => {
                let instance = instance(name, given)?;
                self.sender()?.switch(instance);
            }
            ["write", "bulk"] => self.sender()?.write(None),
            ["write", "nothing"] => self.sender()?.stop_writing(),
            ["write", amount] => {
                let segments = match amount.strip_suffix("kB") {
                    Some(kilobytes) => (number(kilobytes)? * 1000).div_ceil(mss),
                    None => number(amount)?,
                };
                self.sender()?.write(Some(segments));
            }
            ["round"] => self.sender()?.round(),
            ["finish"] => {
                let sender = self.sender()?;
                while !sender.finished() {
                    if sender.rounds == 1000 {
                        return Err("not finished after 1000 round trips".to_owned());
                    }
                    sender.round();
                }
            }
            ["ack", count, ref flags @ ..] => {
                let (count, ece) = (number(count)?, ece(flags)?);
                in_flight(self.sender()?.ack(count, ece))?;
            }
            ["stretch", count, ref flags @ ..] => {
                let (count, ece) = (number(count)?, ece(flags)?);
                in_flight(self.sender()?.stretch(count, ece))?;
            }
            ["lose", count, ref place @ ..] => {
                let (count, at) = (number(count)?, at(place)?);
                in_flight(self.sender()?.lose(count as usize, at))?;
            }
            ["hold", count, ref place @ ..] => {
                let (count, at) = (number(count)?, at(place)?);
                in_flight(self.sender()?.hold(count as usize, at))?;
            }
            ["arrive"] => self.sender()?.release_held(),
            ["rto"] => self.sender()?.timeout(),
            ["tlp"] => self.sender()?.probe(),
            ["local-drop"] => self.sender()?.local_drop(),
            ["idle", time] => self.sender()?.advance(microseconds(time)?),
            _ => {
                return Err(format!(
                    "found event {:?}, accepted: cc, open, write, round, ack, stretch, lose, hold, arrive, rto, \
                     tlp, local-drop, idle, finish, switch (with their arguments, see docs/guide/congestion.md)",
                    words.join(" ")
                ));
            }
        }
        Ok(())
    }

    fn sender(&mut self) -> Result<&mut Sender, String> {
        self.sender.as_mut().ok_or_else(|| "`open` must come first".to_owned())
    }

    fn observe(&mut self, key: &str) -> Result<String, String> {
        let sender = self.sender()?;
        let tp = &sender.connection.tp;
        Ok(match key {
            "cwnd" => tp.snd_cwnd.to_string(),
            "ssthresh" if tp.snd_ssthresh >= INFINITE_SSTHRESH => "inf".to_owned(),
            "ssthresh" => tp.snd_ssthresh.to_string(),
            "flight" => tp.in_flight().to_string(),
            "state" => format!("{:?}", sender.state()),
            "lost" => tp.lost.to_string(),
            "retransmitted" => tp.total_retrans.to_string(),
            "sent_kb" => (tp.bytes_sent / 1000).to_string(),
            "rounds" => sender.rounds.to_string(),
            "cc" => sender.connection.algorithm().name().to_owned(),
            _ => {
                return Err(format!(
                    "found check {key:?}, accepted: cwnd, ssthresh, flight, state, lost, retransmitted, \
                     sent_kb, rounds, cc"
                ));
            }
        })
    }

    fn summary(&mut self) -> String {
        ["cwnd", "ssthresh", "flight", "state"]
            .map(|key| format!("{key} {}", self.observe(key).unwrap_or_default()))
            .join(", ")
    }
}

fn instance(name: &str, given: &[&str]) -> Result<Arc<Instance>, String> {
    let mut parameters = BTreeMap::new();
    for word in given {
        let (key, value) =
            word.split_once('=').ok_or_else(|| format!("found {word:?}, accepted: name=value"))?;
        let value = value.parse().map_err(|_| format!("{key}: found {value:?}, accepted: an integer"))?;
        parameters.insert(key.to_owned(), value);
    }
    find(name).and_then(|algorithm| algorithm.instance(&parameters)).map_err(|refusal| refusal.to_string())
}

fn config(given: &[&str]) -> Result<Config, String> {
    let mut config = Config::default();
    for word in given {
        match word.split_once('=') {
            Some(("iw", value)) => config.initial_window = number(value)? as u32,
            Some(("mss", value)) => config.mss = number(value)? as u32,
            Some(("rtt", value)) => config.rtt_us = microseconds(value)?,
            Some(("rto", value)) => config.rto_us = microseconds(value)?,
            Some(("after_idle", value)) => config.after_idle = number(value)? != 0,
            _ => return Err(format!("found {word:?}, accepted: iw=, mss=, rtt=, rto=, after_idle=")),
        }
    }
    Ok(config)
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("found {word:?}, accepted: a number"))
}

/// A time such as `120ms`, `1.2s` or `50us`.
fn microseconds(word: &str) -> Result<u64, String> {
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

fn at(place: &[&str]) -> Result<usize, String> {
    match place {
        [] => Ok(1),
        ["at", position] => match number(position)? {
            0 => Err("found position 0, accepted: 1 for the oldest segment in flight, or more".to_owned()),
            position => Ok(position as usize),
        },
        _ => Err(format!("found {:?}, accepted: at K", place.join(" "))),
    }
}

fn ece(flags: &[&str]) -> Result<bool, String> {
    match flags {
        [] => Ok(false),
        ["ece"] => Ok(true),
        _ => Err(format!("found {:?}, accepted: ece", flags.join(" "))),
    }
}

fn in_flight(enough: bool) -> Result<(), String> {
    if enough { Ok(()) } else { Err("so many segments are not in flight".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_text(name: &str, text: &str) -> Result<usize, ScriptError> {
        let path = std::env::temp_dir().join(format!("wirepaint-{}-{name}.ack", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let result = run(&path);
        std::fs::remove_file(&path).unwrap();
        result
    }

    #[test]
    fn a_difference_names_line_event_value_and_expectation() {
        let error = run_text("differs", "cc std\nopen\nwrite bulk\nround => cwnd 21\n").unwrap_err();
        assert!(error.differs);
        let message = error.to_string();
        assert!(
            message.contains(":4: after `round`: cwnd is 20, expected 21 (cwnd 20, ssthresh inf"),
            "{message}"
        );
    }

    #[test]
    fn a_line_that_is_no_event_is_refused_with_those_that_exist() {
        let error = run_text("unknown", "cc std\nopen\nexplode 3 => cwnd 1\n").unwrap_err();
        assert!(!error.differs);
        assert!(error.to_string().contains(":3: found event \"explode 3\", accepted: cc, open"), "{error}");
    }

    #[test]
    fn a_parameter_that_does_not_exist_is_refused() {
        let error = run_text("parameter", "cc std std_x=1\nopen => cwnd 10\n").unwrap_err();
        assert!(error.to_string().contains("std has no parameter \"std_x\""), "{error}");
    }

    #[test]
    fn a_script_without_checks_is_refused() {
        let error = run_text("nothing", "cc std\nopen\n").unwrap_err();
        assert!(error.to_string().contains("checks nothing"), "{error}");
    }

    #[test]
    fn losing_what_is_not_in_flight_is_refused() {
        let error = run_text("lose", "cc std\nopen\nwrite 2\nlose 3 => cwnd 10\n").unwrap_err();
        assert!(error.to_string().contains("not in flight"), "{error}");
    }
}
