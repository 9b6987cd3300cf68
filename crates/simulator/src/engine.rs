//! One run: from its description through the event loop to its trace.

use crate::apps::Application;
use crate::error::Error;
use crate::fabric::{Fabric, RouteId};
use crate::flow::Flow;
use crate::link_name::LinkName;
use crate::page::Load;
use crate::pages::{Pages, prepare};
use crate::pep::Pep;
use crate::plan::{Plan, hosts};
use crate::record::{Kept, Output, Recorder};
use crate::squid::Squid;
use crate::summary::Summary;
use crate::way::Way;
use crate::world::{AppId, Dial, Event, World};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use wirepaint_link_model::config::Direction;
use wirepaint_run::{Proxy, Run, Side, Tool, default_mtu};
use wirepaint_tcp_model::Config;
use wirepaint_trace::Collected;
use wirepaint_units::Time;

/// Port of the servers of flows.
const FLOW_PORT: u16 = 5001;
/// Distance between the seeds of additional links; odd.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A run that can be carried out.
pub struct Engine {
    pub(crate) world: World,
    pub(crate) apps: Vec<Application>,
    alarms: Vec<crate::agenda::Alarm>,
    /// Number of applications that the run waits for and that have not ended.
    active: usize,
    over: Vec<bool>,
    /// For each application, those that begin when it has ended.
    successors: Vec<Vec<usize>>,
    /// Route changes, in descending order of time.
    reroutes: Vec<(Time, String, RouteId, RouteId)>,
    recorder: Recorder,
    id: String,
    until: Time,
    events: u64,
    pub(crate) links: Vec<LinkName>,
}

impl Engine {
    /// Builds a run from its description. Errors name `place`.
    pub fn new(run: &Run, place: &Path) -> Result<Engine, Error> {
        Engine::with_pages(run, &prepare(run.pages.clone(), place)?, place)
    }

    /// Builds a run from its description and from pages in place of those of the description. Errors name `place`.
    pub fn with_pages(run: &Run, pages: &Pages, place: &Path) -> Result<Engine, Error> {
        let refuse = |key: String, found: String, accepted: String| Error::value(place, key, found, accepted);
        if run.flows.is_empty() && run.visits.is_empty() {
            let accepted = "at least one flow or visit".to_owned();
            return Err(refuse("flows, visits".to_owned(), "none".to_owned(), accepted));
        }
        let mut links: Vec<(LinkName, Direction, u64)> = Vec::new();
        for (i, segment) in run.segments.iter().enumerate() {
            if run.segments[..i].iter().any(|known| known.name == segment.name) {
                let found = format!("{:?} again", segment.name);
                return Err(refuse(format!("segments[{i}].name"), found, "each name once".to_owned()));
            }
            // Those of the emulator for the first segment: both back ends lose the same packets.
            let seed = run.seed.wrapping_add(SEED_STEP.wrapping_mul(i as u64));
            let name = |direction| LinkName { segment: segment.name.clone(), direction };
            links.push((name("down"), segment.down.clone(), seed));
            links.push((name("up"), segment.up.clone(), !seed));
        }
        // An empty route uses this link, so that every delivery is an event.
        let wire = LinkName { segment: String::new(), direction: "" };
        links.push((wire, Fabric::<()>::wire(), 0));
        let fabric = Fabric::new(links.iter().map(|(_, direction, seed)| (direction, *seed))).map_err(
            |(link, e)| {
                refuse(format!("link {}: {}", links[link].0, e.key), e.found, e.accepted.into_owned())
            },
        )?;

        let mut instances = BTreeMap::new();
        for (i, congestion) in run.congestion.iter().enumerate() {
            let instance = wirepaint_congestion_native::find(&congestion.algorithm)
                .and_then(|algorithm| algorithm.instance(&congestion.parameters))
                .map_err(|refusal| Error::congestion(place, i, &refusal))?;
            if instances.insert(congestion.name.as_str(), instance).is_some() {
                let accepted = "each name once".to_owned();
                return Err(refuse(
                    format!("congestion[{i}].name"),
                    format!("{:?} again", congestion.name),
                    accepted,
                ));
            }
        }
        let mtu = run.segments.iter().map(|segment| segment.mtu).min().unwrap_or_else(default_mtu);
        let links = links.into_iter().map(|(name, ..)| name).collect();
        let hosts = hosts(run, place)?;
        let plan = Plan { place, run, links, instances, hosts, mtu };
        let recorder = Recorder::new(run, place)?;
        let mut engine = Engine {
            world: World::new(fabric, run.seed, recorder.wants("tcp")),
            apps: Vec::new(),
            alarms: Vec::new(),
            active: 0,
            over: Vec::new(),
            successors: Vec::new(),
            reroutes: Vec::new(),
            recorder,
            id: run.id.clone(),
            until: run.until_ns,
            events: 0,
            links: Vec::new(),
        };
        engine.build(&plan, pages)?;
        if engine.recorder.wants("packet") {
            plan.watched()?.into_iter().for_each(|link| engine.world.fabric.watch(link));
        }
        engine.world.fabric.join_series();
        engine.links = plan.links;
        Ok(engine)
    }

    fn build(&mut self, plan: &Plan, pages: &Pages) -> Result<(), Error> {
        let run = plan.run;
        self.successors = vec![Vec::new(); run.flows.len() + run.visits.len()];
        for (flow, before) in run.flows_checked(plan.place)?.into_iter().enumerate() {
            before.into_iter().for_each(|before| self.successors[before].push(flow));
        }
        // Flows are the first applications.
        let first = run.flows.len();
        for (visit, before) in run.visits_checked(plan.place)?.into_iter().enumerate() {
            before.into_iter().for_each(|before| self.successors[first + before].push(first + visit));
        }
        let way = Way::new(plan)?;
        for (i, flow) in run.flows.iter().enumerate() {
            let key = format!("flows[{i}]");
            if flow.tool != Tool::Wirepaint {
                let accepted = "\"wirepaint\": the simulator has flows of its own".to_owned();
                return Err(Error::value(
                    plan.place,
                    format!("{key}.tool"),
                    "\"iperf3\"".to_owned(),
                    accepted,
                ));
            }
            let client = plan.host(&flow.client, &key, "client")?;
            let server = plan.host(&flow.server, &key, "server")?;
            let hosts = [&client, &server].map(|end| end.host.name.as_str().into());
            let through = flow.through.clone().or_else(|| way.up_to(&flow.server));
            let own = |side| flow.congestion.as_deref().filter(|_| flow.sender == side);
            let nagle = |config: Arc<Config>| {
                if flow.nodelay {
                    Arc::new(Config { nodelay: true, ..Config::clone(&config) })
                } else {
                    config
                }
            };
            let dial = Dial {
                hosts,
                client: nagle(plan.config(client.host, own(Side::Client), &key)?),
                server: nagle(plan.config(server.host, own(Side::Server), &key)?),
                client_address: client.address,
                server_address: server.address,
                server_port: FLOW_PORT,
                path: plan.path(&mut self.world, through.as_deref(), &flow.group, &key)?,
                dscp: plan.dscp(&client, flow.dscp, &key)?,
                marked: client.host.dscp,
                app: self.apps.len() as AppId,
                sender: flow.sender,
                sampled: true,
                of_proxy: false,
                accepted_on: server.accepts_on(),
            };
            self.add(Application::Flow(Box::new(Flow::new(flow, dial))));
        }
        let has_proxies = way.answering().next().is_some() && !run.visits.is_empty();
        let mut visits = BTreeMap::new();
        for (i, visit) in run.visits.iter().enumerate() {
            let key = format!("visits[{i}]");
            let page = pages.get(visit.page.as_str()).ok_or_else(|| {
                let known: Vec<&str> = pages.keys().map(String::as_str).collect();
                Error::value(plan.place, format!("{key}.page"), format!("{:?}", visit.page), known.join(", "))
            })?;
            let browser = plan.browser(&visit.browser, &key)?;
            let legs = way.of_visit(&mut self.world, plan, self.apps.len() as AppId, visit, &key)?;
            let seed = run.seed.wrapping_add(SEED_STEP.wrapping_mul(self.apps.len() as u64 + 1));
            if has_proxies {
                visits.insert(self.next_app(), plan.visited(visit, page, &browser, &key)?);
            }
            let load = Load::new(self.next_app(), visit, page.clone(), browser, seed, legs);
            self.add(Application::Page(Box::new(load)));
        }
        let visits = Rc::new(visits);
        // Without visits nobody asks them.
        for (proxy, stop) in way.answering().filter(|_| has_proxies) {
            let app = self.next_app();
            let legs = way.of_proxy(&mut self.world, plan, app, stop)?;
            match proxy {
                Proxy::Squid(squid) => {
                    self.add(Application::Squid(Box::new(Squid::new(app, squid, legs, visits.clone()))));
                }
                Proxy::Pep(pep) => {
                    let dials = way.inner(&mut self.world, plan, app, pep, stop)?;
                    self.add(Application::Pep(Box::new(Pep::new(app, pep, dials, legs, visits.clone()))));
                }
                Proxy::Split(_) => unreachable!("it relays"),
            }
        }
        let flows = run.flows.iter().map(|flow| &flow.group);
        let visits = run.visits.iter().map(|visit| &visit.group);
        let groups: BTreeSet<&str> =
            flows.chain(visits).map(String::as_str).filter(|name| !name.is_empty()).collect();
        for (i, change) in run.reroutes.iter().enumerate() {
            let key = format!("reroutes[{i}]");
            if !groups.contains(change.group.as_str()) {
                let known = groups.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
                let accepted = format!("a group that flows or visits name: {known}");
                let found = format!("{:?}", change.group);
                return Err(Error::value(plan.place, format!("{key}.group"), found, accepted));
            }
            let (down, up) = plan.routes(&mut self.world, Some(&change.through), &key)?;
            self.reroutes.push((change.at_ns, change.group.clone(), down, up));
        }
        if !self.reroutes.is_sorted_by_key(|(at, ..)| *at) {
            let accepted = "times in ascending order".to_owned();
            return Err(Error::value(
                plan.place,
                "reroutes".to_owned(),
                "an earlier change after a later one".to_owned(),
                accepted,
            ));
        }
        self.reroutes.reverse();
        Ok(())
    }

    /// The id of the next application.
    fn next_app(&self) -> AppId {
        self.apps.len() as AppId
    }

    fn add(&mut self, app: Application) {
        self.active += usize::from(app.is_waited_for());
        self.apps.push(app);
        self.alarms.push(crate::agenda::Alarm::default());
        self.over.push(false);
        self.settle(self.apps.len() - 1);
    }

    /// Carries the run out.
    pub fn run(&mut self) -> Summary {
        if let Some(next) = self.recorder.next() {
            self.world.agenda.push(next, Event::Sample.id());
        }
        if let Some((at, ..)) = self.reroutes.last() {
            self.world.agenda.push(*at, Event::Reroute.id());
        }
        while self.active > 0 {
            let Some((time, event)) = self.world.agenda.pop() else { break };
            if time > self.until {
                break;
            }
            debug_assert!(time >= self.world.now, "time ran back");
            self.world.now = time;
            self.events += 1;
            self.handle(Event::of(event));
        }
        if self.active > 0 {
            self.world.now = self.until;
        }
        self.recorder.finish(&mut self.world, &self.apps);
        let gave_up = self.apps.iter().filter_map(Application::load).filter(|load| load.gave_up()).count();
        let unfinished = self.active + gave_up;
        let mut summary = Summary::new(&mut self.world, &self.apps, &self.links, self.events, unfinished);
        summary.id.clone_from(&self.id);
        summary
    }

    fn handle(&mut self, event: Event) {
        let world = &mut self.world;
        let now = world.now;
        match event {
            Event::Link(link) => {
                if !world.fabric.goes_off(link, now) {
                    return;
                }
                while let Some(arrival) = self.world.fabric.next_arrival(now, &mut self.world.agenda, link) {
                    self.world.deliver(arrival);
                    self.activity(arrival.to);
                }
            }
            Event::Endpoint(endpoint) => {
                if world.endpoint_event(endpoint) {
                    self.activity(endpoint);
                }
            }
            Event::App(app) => {
                let index = app as usize;
                if self.alarms[index].goes_off(now) && !self.over[index] {
                    let app = self.apps[index].as_app();
                    if app.next().is_some_and(|due| due <= now) {
                        app.wake(world);
                    }
                    self.settle(index);
                    self.tell_served();
                }
            }
            Event::Sample => {
                self.recorder.sample(world, &self.apps);
                let next = self.recorder.next().expect("what sampled once samples again");
                world.agenda.push(next, event.id());
            }
            Event::Reroute => {
                let (_, group, down, up) = self.reroutes.pop().expect("a change is due");
                world.reroute(&group, down, up);
                if let Some((at, ..)) = self.reroutes.last() {
                    world.agenda.push(*at, event.id());
                }
            }
        }
    }

    fn activity(&mut self, endpoint: u32) {
        self.tell(endpoint);
        self.tell_served();
    }

    /// Notifies the applications of endpoints that another connection's window let act, and of what others tell
    /// them.
    fn tell_served(&mut self) {
        loop {
            if let Some(endpoint) = self.world.take_served() {
                self.tell(endpoint);
            } else if let Some((from, to, post)) = self.world.take_post() {
                let index = to as usize;
                if !self.over[index] {
                    self.apps[index].as_app().told(&mut self.world, from, post);
                    self.settle(index);
                }
            } else {
                return;
            }
        }
    }

    fn tell(&mut self, endpoint: u32) {
        let index = self.world.app(endpoint) as usize;
        if !self.over[index] {
            self.apps[index].as_app().activity(&mut self.world, endpoint);
            self.settle(index);
        }
    }

    /// After a call: sets the application's alarm, or notes that it has ended.
    fn settle(&mut self, index: usize) {
        let app = self.apps[index].as_app();
        if app.is_over() {
            self.over[index] = true;
            self.active -= usize::from(self.apps[index].is_waited_for());
            let now = self.world.now;
            let loaded = self.apps[index].load().and_then(Load::load_event).unwrap_or(now);
            for next in std::mem::take(&mut self.successors[index]) {
                match &mut self.apps[next] {
                    Application::Flow(flow) => flow.begin(now),
                    Application::Page(load) => load.begin(now, loaded),
                    Application::Squid(_) | Application::Pep(_) => unreachable!("proxies wait for nobody"),
                }
                self.settle(next);
            }
            // After the last of them the run ends, and closing connections would have no effect.
            if self.active > 0
                && let Application::Page(load) = &mut self.apps[index]
            {
                load.leave(&mut self.world);
            }
        } else {
            self.alarms[index].set(&mut self.world.agenda, app.next(), Event::App(index as AppId).id());
        }
    }

    /// Writes the trace's tables into a folder; returns the digest of all rows.
    pub fn write_tables(&mut self, folder: &Path) -> Result<String, Error> {
        self.write(Kept::Folder(folder))
    }

    /// The rows of the tables in `wanted`, and the digest of those of all tables.
    pub fn collect_tables(&mut self, wanted: &[String]) -> Result<(Collected, String), Error> {
        let mut collected = Collected::default();
        let digest = self.write(Kept::Collected(&mut collected, wanted))?;
        Ok((collected, digest))
    }

    fn write(&mut self, to: Kept) -> Result<String, Error> {
        let mut output = Output::new(to);
        self.recorder.write(&mut self.world, &self.apps, &self.links, &mut output)?;
        Ok(output.digest())
    }
}
