//! One run: from its description through the event loop to its trace.

use crate::apps::Application;
use crate::error::Error;
use crate::fabric::{Fabric, LinkId, RouteId};
use crate::flow::Flow;
use crate::link_name::LinkName;
use crate::page::Load;
use crate::record::Recorder;
use crate::settings;
use crate::summary::Summary;
use crate::world::{AppId, Dial, Event, Path as RoutePair, World};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use wirepaint_congestion_native::Instance;
use wirepaint_link_model::config::Direction;
use wirepaint_page_model::Prepared;
use wirepaint_run::{Browser, Host, Role, Run, Side, default_mtu};
use wirepaint_tcp_model::Config;
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

/// Resolves the names of a description.
struct Plan<'a> {
    place: &'a Path,
    run: &'a Run,
    links: Vec<LinkName>,
    instances: BTreeMap<&'a str, Arc<Instance>>,
    hosts: BTreeMap<&'a str, Resolved<'a>>,
    mtu: u32,
}

/// A host, with its address where it has one of its own.
#[derive(Clone, Copy)]
struct Resolved<'a> {
    host: &'a Host,
    address: Ipv4Addr,
}

impl Engine {
    /// Builds a run from its description. Errors name `place`.
    pub fn new(run: &Run, place: &Path) -> Result<Engine, Error> {
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
        engine.build(&plan)?;
        if engine.recorder.wants("packet") {
            plan.watched()?.into_iter().for_each(|link| engine.world.fabric.watch(link));
        }
        engine.world.fabric.join_series();
        engine.links = plan.links;
        Ok(engine)
    }

    fn build(&mut self, plan: &Plan) -> Result<(), Error> {
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
        for (i, flow) in run.flows.iter().enumerate() {
            let key = format!("flows[{i}]");
            let client = plan.host(&flow.client, &key, "client")?;
            let server = plan.host(&flow.server, &key, "server")?;
            let hosts = [&client, &server].map(|end| end.host.name.as_str().into());
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
                path: self.path(plan, flow.through.as_deref(), &flow.group, &key)?,
                dscp: plan.dscp(&client, flow.dscp, &key)?,
                marked: client.host.dscp,
                app: self.apps.len() as AppId,
                sender: flow.sender,
            };
            self.add(Application::Flow(Box::new(Flow::new(flow, dial))));
        }
        let pages = plan.pages()?;
        for (i, visit) in run.visits.iter().enumerate() {
            let key = format!("visits[{i}]");
            let page = pages.get(visit.page.as_str()).ok_or_else(|| {
                let known: Vec<&str> = pages.keys().copied().collect();
                Error::value(plan.place, format!("{key}.page"), format!("{:?}", visit.page), known.join(", "))
            })?;
            let browser = plan.browser(&visit.browser, &key)?;
            // Browser and replay server set TCP_NODELAY.
            let quick = |config: Arc<Config>| Arc::new(Config { nodelay: true, ..Config::clone(&config) });
            let client = plan.host(&visit.client, &key, "client")?;
            let server = plan.host(&visit.server, &key, "server")?;
            let dial = Dial {
                hosts: [&client, &server].map(|end| end.host.name.as_str().into()),
                client: quick(plan.config(client.host, None, &key)?),
                server: quick(plan.config(server.host, None, &key)?),
                client_address: client.address,
                server_address: server.address,
                server_port: 0,
                path: self.path(plan, visit.through.as_deref(), &visit.group, &key)?,
                dscp: plan.dscp(&client, 0, &key)?,
                marked: client.host.dscp,
                app: self.apps.len() as AppId,
                sender: Side::Server,
            };
            let seed = run.seed.wrapping_add(SEED_STEP.wrapping_mul(self.apps.len() as u64 + 1));
            self.add(Application::Page(Box::new(Load::new(visit, page.clone(), browser, seed, dial))));
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
            let (down, up) = self.routes(plan, Some(&change.through), &key)?;
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

    fn add(&mut self, app: Application) {
        self.active += usize::from(app.is_waited_for());
        self.apps.push(app);
        self.alarms.push(crate::agenda::Alarm::default());
        self.over.push(false);
        self.settle(self.apps.len() - 1);
    }

    fn path(
        &mut self,
        plan: &Plan,
        through: Option<&[String]>,
        group: &str,
        key: &str,
    ) -> Result<usize, Error> {
        let (down, up) = self.routes(plan, through, key)?;
        Ok(self.world.path(RoutePair { group: group.to_owned(), down, up }))
    }

    /// The routes from the server to the client and back.
    fn routes(
        &mut self,
        plan: &Plan,
        through: Option<&[String]>,
        key: &str,
    ) -> Result<(RouteId, RouteId), Error> {
        let (down, up) = plan.route(through, key)?;
        Ok((self.world.fabric.add_route(down), self.world.fabric.add_route(up)))
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

    /// Notifies the applications of endpoints that another connection's window let act.
    fn tell_served(&mut self) {
        while let Some(endpoint) = self.world.take_served() {
            self.tell(endpoint);
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

    /// Writes the trace's tables into a folder.
    pub fn write_tables(&mut self, folder: &Path) -> Result<(), Error> {
        self.recorder.write(&mut self.world, &self.apps, &self.links, folder)
    }
}

impl<'a> Plan<'a> {
    fn host(&self, name: &str, key: &str, side: &str) -> Result<Resolved<'a>, Error> {
        self.hosts.get(name).copied().ok_or_else(|| {
            let known: Vec<&str> = self.hosts.keys().copied().collect();
            let accepted = if known.is_empty() {
                "a name in hosts, which is empty".to_owned()
            } else {
                known.join(", ")
            };
            Error::value(self.place, format!("{key}.{side}"), format!("{name:?}"), accepted)
        })
    }

    /// TCP of a host's end of a connection, with `own` in place of the host's congestion control.
    fn config(&self, host: &Host, own: Option<&str>, key: &str) -> Result<Arc<Config>, Error> {
        let (congestion, key) = match own {
            Some(name) => (name, format!("{key}.congestion")),
            None => (host.congestion.as_str(), format!("hosts, {}: congestion", host.name)),
        };
        let Some(instance) = self.instances.get(congestion) else {
            let names: Vec<&str> = self.instances.keys().copied().collect();
            let accepted = if names.is_empty() {
                "a name in congestion, which is empty".to_owned()
            } else {
                names.join(", ")
            };
            return Err(Error::value(self.place, key, format!("{congestion:?}"), accepted));
        };
        settings::config(&self.run.transport, self.mtu, instance.clone(), host.initial_window)
            .map(Arc::new)
            .map_err(|(name, found, accepted)| Error::value(self.place, name, found, accepted))
    }

    /// A browser of the run.
    fn browser(&self, name: &str, key: &str) -> Result<Browser, Error> {
        let Some(known) = self.run.browsers.get(name) else {
            let names: Vec<&str> = self.run.browsers.keys().map(String::as_str).collect();
            let accepted = if names.is_empty() {
                "a name in browsers, which is empty".to_owned()
            } else {
                names.join(", ")
            };
            return Err(Error::value(self.place, format!("{key}.browser"), format!("{name:?}"), accepted));
        };
        let browser = self.run.transport.browser(known);
        browser.check().map_err(|e| {
            Error::value(self.place, format!("browsers.{name}.{}", e.key), e.found, e.accepted)
        })?;
        Ok(browser)
    }

    /// The code point of packets between a client and its server that carry `own`.
    fn dscp(&self, client: &Resolved, own: u8, key: &str) -> Result<u8, Error> {
        let (dscp, key) = match client.host.dscp {
            Some(dscp) => (dscp, format!("hosts, {}", client.host.name)),
            None => (own, key.to_owned()),
        };
        if dscp < 64 {
            return Ok(dscp);
        }
        Err(Error::value(self.place, format!("{key}.dscp"), dscp.to_string(), "0 to 63".to_owned()))
    }

    /// The pages by name, each prepared once for all of its visits.
    fn pages(&self) -> Result<BTreeMap<&'a str, Prepared>, Error> {
        let prepared = self.run.pages.iter().map(|(name, page)| {
            page.check().map_err(|e| {
                Error::value(self.place, format!("pages.{name}.{}", e.key), e.found, e.accepted)
            })?;
            Ok((name.as_str(), Prepared::new(page.clone())))
        });
        prepared.collect()
    }

    /// The links of a route down and up.
    fn route(&self, through: Option<&[String]>, key: &str) -> Result<(Vec<LinkId>, Vec<LinkId>), Error> {
        let places: Vec<usize> = match through {
            None => (0..self.run.segments.len()).collect(),
            Some(names) => {
                let place = |name: &String| {
                    self.run.segments.iter().position(|segment| segment.name == *name).ok_or_else(|| {
                        let known: Vec<&str> = self.run.segments.iter().map(|s| s.name.as_str()).collect();
                        let key = format!("{key}.through");
                        Error::value(self.place, key, format!("{name:?}"), known.join(", "))
                    })
                };
                names.iter().map(place).collect::<Result<_, _>>()?
            }
        };
        if places.len() > 255 {
            let found = format!("{} segments", places.len());
            return Err(Error::value(self.place, format!("{key}.through"), found, "at most 255".to_owned()));
        }
        if places.is_empty() {
            let wire = self.links.len() - 1;
            return Ok((vec![wire], vec![wire]));
        }
        let down = places.iter().map(|place| 2 * place).collect();
        Ok((down, places.iter().rev().map(|place| 2 * place + 1).collect()))
    }

    /// Links whose packets the table `packet` holds.
    fn watched(&self) -> Result<Vec<LinkId>, Error> {
        let links = &self.links[..self.links.len() - 1];
        if self.run.packet_links.is_empty() {
            return Ok((0..links.len()).collect());
        }
        let found = self.run.packet_links.iter().map(|name| {
            links.iter().position(|known| known.to_string() == *name).ok_or_else(|| {
                let known: Vec<String> = links.iter().map(LinkName::to_string).collect();
                Error::value(self.place, "packet_links".to_owned(), format!("{name:?}"), known.join(", "))
            })
        });
        found.collect()
    }
}

/// The hosts by name. Clients and servers without an address are numbered.
fn hosts<'a>(run: &'a Run, place: &Path) -> Result<BTreeMap<&'a str, Resolved<'a>>, Error> {
    const MOST: usize = u16::MAX as usize;
    if run.hosts.len() > MOST {
        let found = run.hosts.len().to_string();
        return Err(Error::value(place, "hosts".to_owned(), found, format!("at most {MOST}")));
    }
    let mut hosts = BTreeMap::new();
    let (mut clients, mut servers) = (0, 0);
    for (i, host) in run.hosts.iter().enumerate() {
        let numbered = match host.role {
            Role::Client => {
                clients += 1;
                client_address(clients - 1)
            }
            Role::Server => {
                servers += 1;
                server_address(servers - 1)
            }
            Role::Proxy => {
                let accepted = "client or server: the simulator has no proxies".to_owned();
                return Err(Error::value(place, format!("hosts[{i}].role"), "proxy".to_owned(), accepted));
            }
        };
        let refuse = |key: &str, found: String, accepted: &str| {
            Err(Error::value(place, format!("hosts[{i}].{key}"), found, accepted.to_owned()))
        };
        if host.initial_window == 0 {
            return refuse("initial_window", "0".to_owned(), "at least 1 segment");
        }
        let resolved = Resolved { host, address: host.address.unwrap_or(numbered) };
        if hosts.insert(host.name.as_str(), resolved).is_some() {
            return refuse("name", format!("{:?} again", host.name), "each name once");
        }
    }
    Ok(hosts)
}

/// Address of a client's host, as in the testbed's network 10.64.0.0/16.
pub(crate) fn client_address(host: u16) -> Ipv4Addr {
    // 250 hosts per /24, numbered from 1; the first is the testbed's client.
    let host = (u32::from(host) + 1) % (250 * 256);
    Ipv4Addr::new(10, 64, (host / 250) as u8, (host % 250 + 1) as u8)
}

/// Address of a server's host. As in the testbed, each has a /24 network of its own, from 10.65.0.0 on, and
/// its first address. Hosts beyond the first 48,896 take the second address, and so on.
pub(crate) fn server_address(host: u16) -> Ipv4Addr {
    const NETWORKS: u32 = (256 - 65) << 8;
    let (network, place) = (u32::from(host) % NETWORKS, u32::from(host) / NETWORKS);
    Ipv4Addr::from((10 << 24) + (65 << 16) + (network << 8) + place + 1)
}
