//! Acknowledgement scripts: what the path does goes in, what the window does comes out.
//!
//! One line is one event, its checks follow `=>`; `#` starts a comment.
//!
//! ```text
//! cc fld fld_threshold=50000          # first: the algorithm and its parameters; or a file: cc mine.c
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
//! come late), `rtt TIME` (of what is sent from now on), `rwnd N` (the receiver's window),
//! `native REASON` (not for the kernel), `rto`, `tlp`, `local-drop`, `idle TIME`, `finish` (rounds until all is acknowledged),
//! `switch NAME [parameter=value...]`, `close`. Suffix `xN` repeats an event. Checks: `cwnd`, `ssthresh` (or `inf`),
//! `flight`, `state`, `lost`, `retransmitted`, `sent_kb`, `rounds`, `cc`.
//!
//! Several connections have names and live in one time; those of one `cc` line share its groups:
//!
//! ```text
//! open a to=10.1.2.3                  # a receiver, for algorithms that group by address
//! open b to=10.1.2.200
//! a: write bulk                       # an event or a check of one of them
//! round                               # of all; so are idle, finish and +TIME
//! a: => cwnd 20
//! group 10.1.2.0/24 => members 2, cwnd_sum 40     # or: group 10.1.2.0/24 slot 1
//! a: close
//! ```

use crate::concurrent::Wire;
use crate::sender::{Config, START_US, Sender};
use crate::{Group, Groups, INFINITE_SSTHRESH, Instance, concurrent, external, find};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
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

/// A script as it went: every connection, every event and every check.
#[derive(Default)]
pub struct Played {
    /// The connections in the order of `open`, as they ended.
    pub connections: Vec<Opened>,
    /// Events with the sender after them.
    pub exchange: Vec<Exchange>,
    /// Checks in order, also those that did not hold.
    pub checks: Vec<Check>,
    /// Looks at groups, in order.
    pub looks: Vec<Look>,
    /// Place of a connection in `connections`, and the instance and prefix of a group that it was in.
    pub memberships: Vec<(usize, Arc<Instance>, String)>,
}

/// A look at a group.
pub struct Look {
    /// Place in the order of all that happened.
    pub order: u64,
    /// The script's clock.
    pub at_us: u64,
    /// Whose group it is.
    pub instance: Arc<Instance>,
    /// The group's prefix.
    pub prefix: String,
    /// Its slot.
    pub slot: u8,
}

/// A connection of a script.
pub struct Opened {
    /// Line of its `open`.
    pub line: usize,
    /// Its name; empty where it has none.
    pub name: String,
    /// True until its `close`, and for one without a name until the next `open`.
    pub lives: bool,
    /// What it was opened with; `switch` may have changed the sender's.
    pub instance: Arc<Instance>,
    /// Its path and settings.
    pub config: Config,
    /// The sender and its journal.
    pub sender: Sender,
}

/// An event and the sender after it.
pub struct Exchange {
    /// Line of the script.
    pub line: usize,
    /// The event as it is written there.
    pub event: String,
    /// The sender in words.
    pub sender: String,
}

/// What a script expects of the sender at one point.
pub struct Check {
    /// Line of the script.
    pub line: usize,
    /// The event that it follows.
    pub event: String,
    /// Place of the connection in [`Played::connections`].
    pub connection: usize,
    /// Entries of the connection's journal by then.
    pub entries: usize,
    /// Place in the order of all that happened.
    pub order: u64,
    /// The script's clock.
    pub at_us: u64,
    /// Place in [`Played::looks`] where the check is about a group.
    pub look: Option<usize>,
    /// Data segments delivered, sent and retransmitted by then.
    pub delivered: u32,
    /// Retransmissions included.
    pub sent: u32,
    /// Retransmissions alone.
    pub retransmitted: u32,
    /// What is looked at.
    pub key: String,
    /// What the script says.
    pub expected: String,
    /// What the native sender shows.
    pub found: String,
}

impl Check {
    /// True where the native sender did as expected.
    pub fn holds(&self) -> bool {
        self.found == self.expected
    }
}

/// Runs a script file; the number of checks that held.
pub fn run(path: &Path) -> Result<usize, ScriptError> {
    let played = play(path)?;
    match played.checks.iter().find(|check| !check.holds()) {
        None => Ok(played.checks.len()),
        Some(Check { line, event, key, expected, found, .. }) => {
            let after = played.exchange.iter().rfind(|exchange| exchange.line == *line);
            let sender = after.map_or("", |exchange| &exchange.sender);
            let message = format!("after `{event}`: {key} is {found}, expected {expected} ({sender})");
            Err(ScriptError { path: path.to_owned(), line: *line, message, differs: true })
        }
    }
}

/// Plays a script to its end, also where checks do not hold. A file name alone may also be that of a
/// script that ships.
pub fn play(path: &Path) -> Result<Played, ScriptError> {
    let error = |line, message| ScriptError { path: path.to_owned(), line, message, differs: false };
    let shipped = external::scripts().iter().find(|(file, _)| path == Path::new(file) && !path.exists());
    let text = match shipped {
        Some((_, text)) => (*text).to_owned(),
        None => std::fs::read_to_string(path).map_err(|e| error(0, e.to_string()))?,
    };
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let mut script = Script { folder, ..Script::default() };
    for (index, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or_default().trim();
        if !code.is_empty() {
            script.line = index + 1;
            script.perform(code).map_err(|message| error(index + 1, message))?;
        }
    }
    if script.played.checks.is_empty() {
        return Err(error(0, "the script checks nothing".to_owned()));
    }
    script.note_memberships();
    Ok(script.played)
}

#[derive(Default)]
struct Script {
    /// Where the script is: names of files are relative to it.
    folder: PathBuf,
    line: usize,
    instance: Option<Arc<Instance>>,
    groups: Rc<Groups>,
    wire: Rc<Wire>,
    /// The connection that an event or check is about.
    current: usize,
    /// Prefix and slot of the group that checks are about.
    group: Option<(String, u8)>,
    played: Played,
}

impl Script {
    /// One line: the event, then its checks.
    fn perform(&mut self, code: &str) -> Result<(), String> {
        let (event, expected) = code.split_once("=>").unwrap_or((code, ""));
        let event = event.trim();
        let named = event.split_once(':').and_then(|(name, event)| Some((self.named(name)?, event.trim())));
        if let Some((index, _)) = named {
            self.current = index;
        }
        self.event(named.map_or(event, |(_, event)| event), named.is_some())?;
        let line = self.line;
        if !self.played.connections.is_empty() {
            let sender = self.summary();
            self.played.exchange.push(Exchange { line, event: event.to_owned(), sender });
        }
        for check in expected.split(',').map(str::trim).filter(|check| !check.is_empty()) {
            let (key, expected) =
                check.split_once(' ').ok_or_else(|| format!("check {check:?} has no value"))?;
            let found = self.observe(key)?;
            let connection = self.current;
            let order = self.wire.next();
            let at_us =
                self.played.connections.iter().map(|opened| opened.sender.now_us()).max().unwrap_or(0);
            let look = if is_of_group(key) { Some(self.look(order, at_us)?) } else { None };
            let sender = self.sender()?;
            let tp = &sender.connection.tp;
            let check = Check {
                line,
                event: event.to_owned(),
                connection,
                entries: sender.journal.len(),
                order,
                at_us,
                look,
                delivered: tp.delivered,
                sent: tp.data_segs_out,
                retransmitted: tp.total_retrans,
                key: key.to_owned(),
                expected: expected.trim().to_owned(),
                found,
            };
            self.played.checks.push(check);
        }
        Ok(())
    }

    /// Notes that the group is looked at; checks of one line look once.
    fn look(&mut self, order: u64, at_us: u64) -> Result<usize, String> {
        let (Some((prefix, slot)), Some(instance)) = (self.group.clone(), self.instance.clone()) else {
            return Err("`group PREFIX` must come first".to_owned());
        };
        let same = self.played.checks.last().filter(|last| last.line == self.line);
        if let Some(look) = same.and_then(|last| last.look) {
            return Ok(look);
        }
        self.played.looks.push(Look { order, at_us, instance, prefix, slot });
        Ok(self.played.looks.len() - 1)
    }

    /// Says who was in which group, by what the groups recorded.
    fn note_memberships(&mut self) {
        for (instance, record) in self.groups.take_records() {
            let port = record.remote().port();
            let place = self.played.connections.iter().position(|opened| opened.config.to.port() == port);
            let prefix = record.key.to_string();
            self.played.memberships.extend(place.map(|place| (place, instance, prefix)));
        }
    }

    /// The living connection of a name.
    fn named(&self, name: &str) -> Option<usize> {
        self.played.connections.iter().position(|opened| opened.lives && opened.name == name)
    }

    /// An event of the current connection where the line names it, else of the only one or of all.
    fn event(&mut self, event: &str, named: bool) -> Result<(), String> {
        let mut words: Vec<&str> = event.split_whitespace().collect();
        if let Some(pause) = words.first().and_then(|word| word.strip_prefix('+')) {
            self.pass(microseconds(pause)?)?;
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
                self.pass(microseconds(pause)?)?;
            }
            self.once(&words, named)?;
        }
        Ok(())
    }

    fn once(&mut self, words: &[&str], named: bool) -> Result<(), String> {
        let all = !named && self.living().count() > 1;
        let of_all = ["cc", "open", "group", "round", "finish", "idle"];
        if all && words.first().is_some_and(|word| !of_all.contains(word)) {
            let names: Vec<_> = self.living().map(|opened| opened.name.as_str()).collect();
            let (found, names) = (words.join(" "), names.join(", "));
            return Err(format!("found {found:?} of no connection, accepted: NAME: before it, of {names}"));
        }
        let mss = self.sender().map_or(1, |sender| u64::from(sender.connection.tp.mss_cache));
        match *words {
            [] => {}
            ["cc", name, ref given @ ..] => self.instance = Some(self.find(name, given)?),
            ["open", ref given @ ..] => {
                let instance = self.instance.clone().ok_or("`cc NAME` must come before `open`")?;
                let (name, given) = match given {
                    [name, given @ ..] if !name.contains('=') => (*name, given),
                    _ => ("", given),
                };
                self.open(instance, name, config(given)?)?;
            }
            ["close"] => {
                self.sender()?.close();
                self.played.connections[self.current].lives = false;
            }
            ["group", prefix, ref slot @ ..] => {
                let slot = match slot {
                    [] => 0,
                    ["slot", slot] => number(slot)? as u8,
                    _ => return Err(format!("found {:?}, accepted: slot N", slot.join(" "))),
                };
                self.group = Some((prefix.to_owned(), slot));
            }
            ["switch", name, ref given @ ..] => {
                let instance = self.find(name, given)?;
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
            ["round"] => self.round(all)?,
            ["finish"] => {
                while let Some(rounds) = self.unfinished(all) {
                    if rounds >= 1000 {
                        return Err("not finished after 1000 round trips".to_owned());
                    }
                    self.round(all)?;
                }
            }
            ["ack", count, ref flags @ ..] => {
                let (count, ece) = (number(count)?, ece(flags)?);
                in_flight(self.arrive(count, false, ece))?;
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
            ["rto"] => {
                let at = self.sender()?.timeout_us();
                self.pass_others(at);
                self.sender()?.timeout();
            }
            ["tlp"] => self.sender()?.probe(),
            ["local-drop"] => self.sender()?.local_drop(),
            ["idle", time] => self.pass(microseconds(time)?)?,
            ["rtt", time] => {
                let us = microseconds(time)?;
                if !self.sender()?.set_rtt(us) {
                    return Err(format!("found rtt {time}, accepted: no less than rtt= of `open`"));
                }
            }
            ["native", ref reason @ ..] if !reason.is_empty() => {
                self.sender()?.native_only(reason.join(" "));
            }
            ["rwnd", segments] => self.sender()?.set_receive_window(number(segments)? as u32),
            _ => {
                return Err(format!(
                    "found event {:?}, accepted: cc, open, write, round, ack, stretch, lose, hold, arrive, \
                     rtt, rwnd, native, rto, tlp, local-drop, idle, finish, switch, close, \
                     group (with their arguments, see docs/guide/congestion.md)",
                    words.join(" ")
                ));
            }
        }
        let now = self.living().map(|opened| opened.sender.now_us()).max().unwrap_or(0);
        concurrent::advance_to(&mut self.senders(), now);
        Ok(())
    }

    fn open(&mut self, instance: Arc<Instance>, name: &str, mut config: Config) -> Result<(), String> {
        if !name.is_empty() && self.named(name).is_some() {
            return Err(format!(
                "found a second connection {name}, accepted: a name that no open connection has"
            ));
        }
        if name.is_empty() {
            self.played.connections.iter_mut().for_each(|opened| opened.lives &= !opened.name.is_empty());
        }
        let now = self.played.connections.iter().map(|opened| opened.sender.now_us()).max();
        let place = self.played.connections.len();
        config.to.set_port(config.to.port() + place as u16);
        let groups = Rc::clone(&self.groups);
        let wire = Rc::clone(&self.wire);
        let sender = Sender::open_among(instance.clone(), config, groups, wire, now.unwrap_or(START_US));
        let opened = Opened { line: self.line, name: name.to_owned(), lives: true, instance, config, sender };
        self.played.connections.push(opened);
        self.current = place;
        Ok(())
    }

    /// Those that have not ended.
    fn living(&self) -> impl Iterator<Item = &Opened> {
        self.played.connections.iter().filter(|opened| opened.lives)
    }

    fn senders(&mut self) -> Vec<&mut Sender> {
        let living = self.played.connections.iter_mut().filter(|opened| opened.lives);
        living.map(|opened| &mut opened.sender).collect()
    }

    /// Time passes for all connections.
    fn pass(&mut self, us: u64) -> Result<(), String> {
        let now = self.sender()?.now_us();
        concurrent::advance_to(&mut self.senders(), now + us);
        Ok(())
    }

    /// Time passes for all connections but the current.
    fn pass_others(&mut self, until_us: u64) {
        let current = self.current;
        let others = self.played.connections.iter_mut().enumerate();
        let others = others.filter(|(index, opened)| opened.lives && *index != current);
        concurrent::advance_to(
            &mut others.map(|(_, opened)| &mut opened.sender).collect::<Vec<_>>(),
            until_us,
        );
    }

    /// The next segments arrive: of the current connection, or of `all` what each has in flight.
    fn arrive(&mut self, of_current: u64, all: bool, ece: bool) -> bool {
        let current = self.current;
        let living = self.played.connections.iter().enumerate().filter(|(_, opened)| opened.lives);
        let arrivals = living
            .map(|(index, opened)| match (all, index == current) {
                (true, _) => opened.sender.on_the_way(),
                (false, true) => of_current,
                (false, false) => 0,
            })
            .collect();
        concurrent::ack(&mut self.senders(), arrivals, ece)
    }

    /// Rounds so far of the current connection, or the first of `all`, that has not finished.
    fn unfinished(&self, all: bool) -> Option<u64> {
        let asked = |index: usize, opened: &Opened| if all { opened.lives } else { index == self.current };
        let mut connections = self.played.connections.iter().enumerate();
        let (_, opened) =
            connections.find(|(index, opened)| asked(*index, opened) && !opened.sender.finished())?;
        Some(opened.sender.rounds)
    }

    /// All that is in flight arrives, on the current connection or on `all`.
    fn round(&mut self, all: bool) -> Result<(), String> {
        let (current, rtt_us) = (self.current, self.sender()?.rtt_us());
        for (index, opened) in self.played.connections.iter_mut().enumerate() {
            opened.sender.rounds += u64::from(if all { opened.lives } else { index == current });
        }
        let in_flight = self.sender()?.on_the_way();
        if in_flight == 0 && !all {
            return self.pass(rtt_us);
        }
        self.arrive(in_flight, all, false);
        Ok(())
    }

    fn find(&self, name: &str, given: &[&str]) -> Result<Arc<Instance>, String> {
        let file = external::is_file(name).then(|| self.folder.join(name).display().to_string());
        let found = instance(file.as_deref().unwrap_or(name), given.iter().copied())?;
        // The same again is the same instance: its connections share groups.
        let opened = self.played.connections.iter().map(|opened| &opened.instance);
        let known = self.instance.iter().chain(opened).find(|known| ***known == *found).cloned();
        Ok(known.unwrap_or(found))
    }

    fn sender(&mut self) -> Result<&mut Sender, String> {
        let current = self.played.connections.get_mut(self.current);
        current.map(|opened| &mut opened.sender).ok_or_else(|| "`open` must come first".to_owned())
    }

    fn observe(&mut self, key: &str) -> Result<String, String> {
        if is_of_group(key) {
            let group = self.observe_group()?;
            return Ok(match key {
                "members" => group.members.into(),
                "cwnd_sum" => group.cwnd_sum,
                _ => group.ssthresh_sum,
            }
            .to_string());
        }
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
                     sent_kb, rounds, cc, members, cwnd_sum, ssthresh_sum"
                ));
            }
        })
    }

    /// The group that the last `group` event named; empty where no connection has made it.
    fn observe_group(&self) -> Result<Group, String> {
        let (Some((prefix, slot)), Some(instance)) = (&self.group, &self.instance) else {
            return Err("`group PREFIX` must come first".to_owned());
        };
        let groups = self.groups.of(instance);
        let found = groups.iter().find(|(key, _)| key.slot == *slot && key.to_string() == *prefix);
        Ok(found.map_or_else(Group::default, |(_, group)| *group))
    }

    fn summary(&mut self) -> String {
        ["cwnd", "ssthresh", "flight", "state"]
            .map(|key| format!("{key} {}", self.observe(key).unwrap_or_default()))
            .join(", ")
    }
}

fn is_of_group(key: &str) -> bool {
    ["members", "cwnd_sum", "ssthresh_sum"].contains(&key)
}

/// An algorithm by its name or file, with parameters given as `name=value`.
pub fn instance<'a>(name: &str, given: impl Iterator<Item = &'a str>) -> Result<Arc<Instance>, String> {
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
            Some(("to", value)) => {
                let refuse =
                    |_| format!("found to={value}, accepted: an address such as 10.1.2.3 or fd00::2");
                config.to = (value.parse::<IpAddr>().map_err(refuse)?, config.to.port()).into();
            }
            _ => return Err(format!("found {word:?}, accepted: iw=, mss=, rtt=, rto=, after_idle=, to=")),
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
