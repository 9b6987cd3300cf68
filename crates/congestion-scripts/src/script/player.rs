//! Carries out the lines of a script: events on the current connection, or on all at the same time.

use super::words::{at, config, ece, instance, microseconds, number, server};
use super::{Exchange, Opened, Played};
use crate::concurrent;
use crate::sender::{Config, START_US, Sender};
use crate::wire::Wire;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use wirepaint_congestion_native::{Groups, Instance, external};

/// The state of a running script.
#[derive(Default)]
pub(super) struct Script {
    /// Folder of the script; file names are relative to it.
    pub folder: PathBuf,
    pub line: usize,
    pub instance: Option<Arc<Instance>>,
    pub groups: Rc<Groups>,
    pub wire: Rc<Wire>,
    /// The connection that an event or check is about.
    pub current: usize,
    /// Prefix, server and slot of the group that checks are about.
    pub group: Option<(String, u8, u8)>,
    pub played: Played,
}

impl Script {
    /// One line: the event, then its checks.
    pub fn perform(&mut self, code: &str) -> Result<(), String> {
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
            self.check(event, check)?;
        }
        Ok(())
    }

    /// The open connection of a name.
    fn named(&self, name: &str) -> Option<usize> {
        self.played.connections.iter().position(|opened| opened.lives && opened.name == name)
    }

    /// An event of the current connection if the line names it, else of the only one or of all.
    fn event(&mut self, event: &str, named: bool) -> Result<(), String> {
        let mut words: Vec<&str> = event.split_whitespace().collect();
        let pause = words.first().and_then(|word| word.strip_prefix('+')).map(microseconds).transpose()?;
        if pause.is_some() {
            words.remove(0);
        }
        let repeat = words.last().and_then(|word| word.strip_prefix('x')?.parse::<u64>().ok());
        if repeat.is_some() {
            words.pop();
        }
        for _ in 0..repeat.unwrap_or(1) {
            if let Some(us) = pause {
                self.pass(us)?;
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
            ["group", prefix, ref which @ ..] => {
                let (of, slot) = match *which {
                    [] => (0, 0),
                    ["slot", slot] => (0, number(slot)? as u8),
                    ["server", of] => (server(of)?, 0),
                    ["server", of, "slot", slot] => (server(of)?, number(slot)? as u8),
                    _ => return Err(format!("found {:?}, accepted: server N, slot N", which.join(" "))),
                };
                self.group = Some((prefix.to_owned(), of, slot));
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
        if let Some(now) = self.now_us() {
            concurrent::advance_to(&mut self.senders(), now);
        }
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
        let now = self.now_us();
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

    /// Connections that have not ended.
    fn living(&self) -> impl Iterator<Item = &Opened> {
        self.played.connections.iter().filter(|opened| opened.lives)
    }

    fn senders(&mut self) -> Vec<&mut Sender> {
        let living = self.played.connections.iter_mut().filter(|opened| opened.lives);
        living.map(|opened| &mut opened.sender).collect()
    }

    /// The script's clock; `None` before the first `open`.
    pub fn now_us(&self) -> Option<u64> {
        self.played.connections.iter().map(|opened| opened.sender.now_us()).max()
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

    /// Segments arrive: the next ones of the current connection, or with `all` each connection's flight.
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

    /// Rounds so far of an unfinished connection: the current one, or with `all` the first.
    fn unfinished(&self, all: bool) -> Option<u64> {
        let asked = |index: usize, opened: &Opened| if all { opened.lives } else { index == self.current };
        let mut connections = self.played.connections.iter().enumerate();
        let (_, opened) =
            connections.find(|(index, opened)| asked(*index, opened) && !opened.sender.finished())?;
        Some(opened.sender.rounds)
    }

    /// All segments in flight arrive, on the current connection or on `all`.
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
        // Equal algorithm and parameters give the same instance, whose connections share groups.
        let opened = self.played.connections.iter().map(|opened| &opened.instance);
        let known = self.instance.iter().chain(opened).find(|known| ***known == *found).cloned();
        Ok(known.unwrap_or(found))
    }

    pub fn sender(&mut self) -> Result<&mut Sender, String> {
        let current = self.played.connections.get_mut(self.current);
        current.map(|opened| &mut opened.sender).ok_or_else(|| "`open` must come first".to_owned())
    }
}

fn in_flight(enough: bool) -> Result<(), String> {
    if enough { Ok(()) } else { Err("so many segments are not in flight".to_owned()) }
}
