//! The checks of a script after an event.

use super::player::Script;
use super::{Check, Look};
use crate::sender;
use wirepaint_congestion_native::{Group, INFINITE_SSTHRESH};

impl Script {
    /// One check, after an event.
    pub fn check(&mut self, event: &str, check: &str) -> Result<(), String> {
        let (key, expected) = check.split_once(' ').ok_or_else(|| format!("check {check:?} has no value"))?;
        let found = self.observe(key)?;
        let (line, connection) = (self.line, self.current);
        let order = self.wire.next();
        let at_us = self.now_us().unwrap_or(0);
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
        Ok(())
    }

    /// Notes a look at the group; the checks of one line share a look.
    fn look(&mut self, order: u64, at_us: u64) -> Result<usize, String> {
        let (Some((prefix, server, slot)), Some(instance)) = (self.group.clone(), self.instance.clone())
        else {
            return Err("`group PREFIX` must come first".to_owned());
        };
        let same = self.played.checks.last().filter(|last| last.line == self.line);
        if let Some(look) = same.and_then(|last| last.look) {
            return Ok(look);
        }
        self.played.looks.push(Look { order, at_us, instance, prefix, server, slot });
        Ok(self.played.looks.len() - 1)
    }

    /// Notes the memberships in groups, from the groups' records.
    pub fn note_memberships(&mut self) {
        for (instance, record) in self.groups.take_records() {
            let port = record.remote().port();
            let place = self.played.connections.iter().position(|opened| opened.config.to.port() == port);
            let prefix = record.key.to_string();
            self.played.memberships.extend(place.map(|place| (place, instance, prefix)));
        }
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

    /// The group that the last `group` event named; empty if no connection has created it.
    fn observe_group(&self) -> Result<Group, String> {
        let (Some((prefix, server, slot)), Some(instance)) = (&self.group, &self.instance) else {
            return Err("`group PREFIX` must come first".to_owned());
        };
        let server = sender::network(*server, prefix.contains(':'));
        let groups = self.groups.of(instance);
        let found = groups
            .iter()
            .find(|(key, _)| key.slot == *slot && key.to_string() == *prefix && key.server() == server);
        Ok(found.map_or_else(Group::default, |(_, group)| *group))
    }

    pub fn summary(&mut self) -> String {
        ["cwnd", "ssthresh", "flight", "state"]
            .map(|key| format!("{key} {}", self.observe(key).unwrap_or_default()))
            .join(", ")
    }
}

fn is_of_group(key: &str) -> bool {
    ["members", "cwnd_sum", "ssthresh_sum"].contains(&key)
}
