//! All light visits of a run, and the loop that serves them.

use crate::Failure;
use crate::load::{Load, Shared};
use crate::records::VISITS;
use crate::requests;
use crate::tls::{Spki, Trust};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration as Pause;
use wirepaint_observed_sockets::{Poll, monotonic};
use wirepaint_page_model::{Browser, Prepared};
use wirepaint_run::signals::Signals;
use wirepaint_run::{Host, Run, RunError};
use wirepaint_units::{Duration, Time};

/// Longest time without a look at the signals.
const LONGEST_WAIT: Pause = Pause::from_millis(20);
/// Bytes that are read from a socket at once.
const READ: usize = 64 * 1024;

/// The visits of a run that light users carry out.
pub struct Stage {
    epoch: u64,
    begin: Time,
    shared: Shared,
    loads: Vec<Load>,
    /// For each visit, those that begin when it is over.
    successors: Vec<Vec<usize>>,
    alarm: Vec<Option<Time>>,
    alarms: BTreeSet<(Time, usize)>,
    /// Visits that are not over.
    active: usize,
    /// Whose end was noted.
    noted: Vec<bool>,
    records: BufWriter<File>,
}

impl Stage {
    /// Prepares the visits without a `navigation`; opens the file of records, and no socket yet.
    pub fn open(run: &Run, path: &Path, authority: Option<Spki>) -> Result<Stage, Failure> {
        let waits = run.visits_checked(path)?;
        let plan = Plan::new(run, path)?;
        let trust = Trust::new(authority);
        // A visit's place in `loads`, by its number in the run.
        let mut places = vec![None; run.visits.len()];
        let mut loads: Vec<Load> = Vec::new();
        let mut successors: Vec<Vec<usize>> = Vec::new();
        for (number, visit) in run.visits.iter().enumerate().filter(|(_, visit)| visit.navigation.is_none()) {
            let page = plan.page(number, &visit.page)?;
            let browser = plan.browser(number, &visit.browser)?;
            let host = plan.host(number, &visit.client)?;
            let load = Load::new((number, visit), run, loads.len(), host, page, browser, &trust);
            let load = load.map_err(|error| Failure::system("TLS")(std::io::Error::other(error)))?;
            if let Some(after) = waits[number] {
                let earlier: Option<usize> = places[after];
                let accepted = "the number of an earlier visit of a light user";
                let refuse = || plan.refused(&format!("visits[{number}].after"), after.to_string(), accepted);
                successors[earlier.ok_or_else(refuse)?].push(loads.len());
            }
            places[number] = Some(loads.len());
            loads.push(load);
            successors.push(Vec::new());
        }
        let file = run.work_dir.join(VISITS);
        let records = File::create(&file).map_err(Failure::system(format!("writing {}", file.display())))?;
        let poll = Poll::new().map_err(Failure::system("epoll"))?;
        Ok(Stage {
            epoch: run.epoch_ns,
            begin: Time::ZERO,
            shared: Shared { poll, watched: Vec::new(), buffer: vec![0; READ] },
            active: loads.len(),
            noted: vec![false; loads.len()],
            alarm: vec![None; loads.len()],
            alarms: BTreeSet::new(),
            loads,
            successors,
            records: BufWriter::new(records),
        })
    }

    /// The present time of the run.
    pub fn now(&self) -> Time {
        Time(monotonic() - self.epoch)
    }

    /// The times of the visits count from `begin`.
    pub fn begin(&mut self, begin: Time) {
        self.begin = begin;
        for place in 0..self.loads.len() {
            self.loads[place].begin(begin);
            self.set_alarm(place);
        }
    }

    /// Carries the visits out to the end; returns the summary.
    pub fn play(&mut self, signals: &Signals) -> Result<Value, Failure> {
        let mut changed = Vec::new();
        while self.active > 0 && !signals.wait_for(Pause::ZERO) {
            let now = self.now();
            let wait = self.alarms.first().map_or(LONGEST_WAIT, |(at, _)| {
                Pause::from_nanos(at.0.saturating_sub(now.0)).min(LONGEST_WAIT)
            });
            changed.clear();
            self.shared.poll.wait(wait, &mut changed).map_err(Failure::system("waiting for sockets"))?;
            for &number in &changed {
                let (place, connection) = self.shared.watched[number];
                let now = self.now();
                self.loads[place].changed(now, connection, &mut self.shared);
                self.settle(place)?;
            }
            while let Some((_, place)) = self.alarms.first().filter(|(at, _)| *at <= self.now()).copied() {
                let now = self.now();
                self.loads[place].wake(now, &mut self.shared);
                self.settle(place)?;
            }
        }
        let end = self.now();
        for place in 0..self.loads.len() {
            if !self.loads[place].is_over() {
                self.loads[place].cut_off(end);
                self.settle(place)?;
            }
        }
        self.records.flush().map_err(Failure::system(format!("writing {VISITS}")))?;
        let failed = self.loads.iter().filter(|load| load.has_failed()).count();
        let late = self.loads.iter().map(Load::late).max().unwrap_or(Duration::ZERO);
        Ok(json!({
            "begin": self.begin.0, "end": end.0, "visits": self.loads.len(), "failed": failed, "late_ns": late.0,
        }))
    }

    /// After a call: sets the visit's alarm, or notes that it is over.
    fn settle(&mut self, place: usize) -> Result<(), Failure> {
        self.set_alarm(place);
        if !self.loads[place].is_over() || std::mem::replace(&mut self.noted[place], true) {
            return Ok(());
        }
        self.active -= 1;
        let now = self.now();
        let loaded = self.loads[place].loaded(now);
        for next in std::mem::take(&mut self.successors[place]) {
            self.loads[next].follow(now, loaded);
            self.set_alarm(next);
        }
        let write = |records: &mut BufWriter<File>, record| -> std::io::Result<()> {
            serde_json::to_writer(&mut *records, record)?;
            records.write_all(b"\n")
        };
        let record = self.loads[place].record();
        write(&mut self.records, &record).map_err(Failure::system(format!("writing {VISITS}")))
    }

    fn set_alarm(&mut self, place: usize) {
        let next = self.loads[place].next();
        if self.alarm[place] != next {
            if let Some(before) = self.alarm[place] {
                self.alarms.remove(&(before, place));
            }
            self.alarms.extend(next.map(|at| (at, place)));
            self.alarm[place] = next;
        }
    }
}

/// The parts of a run description that visits name.
struct Plan<'a> {
    run: &'a Run,
    path: &'a Path,
    /// Each prepared once for all of its visits.
    pages: BTreeMap<&'a str, Prepared>,
    browsers: BTreeMap<&'a str, Arc<Browser>>,
}

impl<'a> Plan<'a> {
    fn new(run: &'a Run, path: &'a Path) -> Result<Plan<'a>, Failure> {
        let mut plan = Plan { run, path, pages: BTreeMap::new(), browsers: BTreeMap::new() };
        let named = |name: &str, key: fn(&wirepaint_run::Visit) -> &str| {
            run.visits.iter().any(|visit| visit.navigation.is_none() && key(visit) == name)
        };
        for (name, page) in run.pages.iter().filter(|(name, _)| named(name, |visit| &visit.page)) {
            page.check()
                .map_err(|e| plan.refused(&format!("pages.{name}.{}", e.key), e.found, &e.accepted))?;
            requests::check(page).map_err(|(key, found, accepted)| {
                plan.refused(&format!("pages.{name}.{key}"), found, accepted)
            })?;
            plan.pages.insert(name, Prepared::new(page.clone()));
        }
        for (name, known) in run.browsers.iter().filter(|(name, _)| named(name, |visit| &visit.browser)) {
            let browser = run.transport.browser(known);
            browser
                .check()
                .map_err(|e| plan.refused(&format!("browsers.{name}.{}", e.key), e.found, &e.accepted))?;
            plan.browsers.insert(name, Arc::new(browser));
        }
        Ok(plan)
    }

    fn page(&self, visit: usize, name: &str) -> Result<&Prepared, Failure> {
        self.pages.get(name).ok_or_else(|| self.unknown(visit, "page", name, self.run.pages.keys()))
    }

    fn browser(&self, visit: usize, name: &str) -> Result<Arc<Browser>, Failure> {
        let unknown = || self.unknown(visit, "browser", name, self.run.browsers.keys());
        self.browsers.get(name).cloned().ok_or_else(unknown)
    }

    fn host(&self, visit: usize, name: &str) -> Result<(&Host, Ipv4Addr), Failure> {
        let found = self.run.hosts.iter().find(|host| host.name == name);
        let names = self.run.hosts.iter().map(|host| &host.name);
        let host = found.ok_or_else(|| self.unknown(visit, "client", name, names))?;
        let missing =
            || self.refused(&format!("hosts, {name}: address"), "nothing".to_owned(), "an IPv4 address");
        Ok((host, host.address.ok_or_else(missing)?))
    }

    fn unknown<'n>(
        &self,
        visit: usize,
        key: &str,
        name: &str,
        known: impl Iterator<Item = &'n String>,
    ) -> Failure {
        let known = known.map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        self.refused(&format!("visits[{visit}].{key}"), format!("{name:?}"), &known)
    }

    fn refused(&self, key: &str, found: String, accepted: &str) -> Failure {
        let (path, key, accepted) = (self.path.to_owned(), key.to_owned(), accepted.to_owned());
        RunError::Part { path, key, found, accepted }.into()
    }
}
