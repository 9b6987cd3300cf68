//! One run: from its description through the event loop to its trace.

use crate::apps::Application;
use crate::error::Error;
use crate::fabric::{Fabric, LinkId, RouteId};
use crate::flow::Flow;
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
use wirepaint_run::Run;
use wirepaint_run::simulation::{Route, Side, Simulation};
use wirepaint_tcp_model::Config;
use wirepaint_units::Time;

/// Port of the servers of flows.
const FLOW_PORT: u16 = 5001;
/// Default MTU.
const MTU: u32 = 1500;
/// Distance between the seeds of additional links; odd.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A run that can be carried out.
pub struct Engine {
    pub(crate) world: World,
    pub(crate) apps: Vec<Application>,
    alarms: Vec<crate::agenda::Alarm>,
    /// Number of applications that have not ended.
    active: usize,
    over: Vec<bool>,
    /// Route changes, in descending order of time.
    reroutes: Vec<(Time, String, RouteId, RouteId)>,
    recorder: Recorder,
    id: String,
    until: Time,
    events: u64,
    /// Names of the links; the links of the network come first.
    pub(crate) links: Vec<String>,
}

/// Resolves the names of a description.
struct Plan<'a> {
    place: &'a Path,
    links: Vec<String>,
    instances: BTreeMap<&'a str, Arc<Instance>>,
    simulation: &'a Simulation,
    mtu: u32,
}

impl Engine {
    /// Builds a run from its description. Errors name `place`.
    pub fn new(run: &Run, place: &Path) -> Result<Engine, Error> {
        let simulation = run.part(place, "simulation", &run.simulation)?;
        let refuse = |key: String, found: String, accepted: String| Error::value(place, key, found, accepted);
        let mut links: Vec<(String, Direction, u64)> = Vec::new();
        if let Some(network) = &run.network {
            // The seeds of the emulator: both back ends lose the same packets.
            links.push(("down".to_owned(), network.down.clone(), run.seed));
            links.push(("up".to_owned(), network.up.clone(), !run.seed));
        }
        for (name, direction) in &simulation.links {
            if links.iter().any(|(known, ..)| known == name) {
                let accepted = "names other than those of the network, down and up".to_owned();
                return Err(refuse("simulation.links".to_owned(), format!("{name:?}"), accepted));
            }
            let seed = run.seed.wrapping_add(SEED_STEP.wrapping_mul(links.len() as u64));
            links.push((name.clone(), direction.clone(), seed));
        }
        // An empty route uses this link, so that every delivery is an event.
        links.push((String::new(), Fabric::<()>::wire(), 0));
        let fabric = Fabric::new(links.iter().map(|(_, direction, seed)| (direction, *seed))).map_err(
            |(link, e)| {
                refuse(format!("link {:?}: {}", links[link].0, e.key), e.found, e.accepted.into_owned())
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
        let mtu = run.network.as_ref().map_or(MTU, |network| network.mtu);
        let links = links.into_iter().map(|(name, ..)| name).collect();
        let plan = Plan { place, links, instances, simulation, mtu };
        let recorder = Recorder::new(run, simulation, &plan.links, place)?;
        let mut engine = Engine {
            world: World::new(fabric, run.seed, recorder.wants("tcp")),
            apps: Vec::new(),
            alarms: Vec::new(),
            active: 0,
            over: Vec::new(),
            reroutes: Vec::new(),
            recorder,
            id: run.id.clone(),
            until: simulation.until_ns,
            events: 0,
            links: Vec::new(),
        };
        engine.build(run, &plan)?;
        if engine.recorder.wants("packet") {
            plan.watched()?.into_iter().for_each(|link| engine.world.fabric.watch(link));
        }
        engine.world.fabric.join_series();
        engine.links = plan.links;
        Ok(engine)
    }

    fn build(&mut self, run: &Run, plan: &Plan) -> Result<(), Error> {
        let default = run.congestion.first().map(|congestion| congestion.name.as_str());
        for (i, flow) in plan.simulation.flows.iter().enumerate() {
            let key = format!("simulation.flows[{i}]");
            Flow::check(flow).map_err(|(name, found, accepted)| {
                Error::value(plan.place, format!("{key}.{name}"), found, accepted.to_owned())
            })?;
            let sender = plan.config(&flow.congestion, flow.initial_window, &key)?;
            let receiver = plan.config(default.unwrap_or(&flow.congestion), 10, &key)?;
            let (client, server) = match flow.sender {
                Side::Server => (receiver, sender),
                Side::Client => (sender, receiver),
            };
            let path = self.path(plan, &flow.route, &flow.group, &format!("{key}.route"))?;
            let dial = Dial {
                client,
                server,
                client_address: client_address(flow.client),
                server_address: server_address(flow.server),
                server_port: FLOW_PORT,
                path,
                dscp: plan.dscp(flow.dscp, &key)?,
                app: self.apps.len() as AppId,
                sender: flow.sender,
            };
            self.add(Application::Flow(Box::new(Flow::new(flow, dial))));
        }
        for (i, visit) in plan.simulation.visits.iter().enumerate() {
            let key = format!("simulation.visits[{i}]");
            visit.page.check().map_err(|e| {
                Error::value(plan.place, format!("{key}.page.{}", e.key), e.found, e.accepted)
            })?;
            visit.settings.check().map_err(|e| {
                Error::value(plan.place, format!("{key}.settings.{}", e.key), e.found, e.accepted)
            })?;
            // Browser and replay server set TCP_NODELAY.
            let quick = |config: Arc<Config>| Arc::new(Config { nodelay: true, ..Config::clone(&config) });
            let server = plan.config(&visit.congestion, visit.initial_window, &key)?;
            let client = plan.config(default.unwrap_or(&visit.congestion), 10, &key)?;
            let dial = Dial {
                client: quick(client),
                server: quick(server),
                client_address: client_address(visit.client),
                server_address: server_address(0),
                server_port: 0,
                path: self.path(plan, &visit.route, &visit.group, &format!("{key}.route"))?,
                dscp: plan.dscp(visit.dscp, &key)?,
                app: self.apps.len() as AppId,
                sender: Side::Server,
            };
            let seed = run.seed.wrapping_add(SEED_STEP.wrapping_mul(self.apps.len() as u64 + 1));
            self.add(Application::Page(Box::new(Load::new(visit, seed, dial))));
        }
        let flows = plan.simulation.flows.iter().map(|flow| &flow.group);
        let visits = plan.simulation.visits.iter().map(|visit| &visit.group);
        let groups: BTreeSet<&str> =
            flows.chain(visits).map(String::as_str).filter(|name| !name.is_empty()).collect();
        for (i, change) in plan.simulation.reroutes.iter().enumerate() {
            let key = format!("simulation.reroutes[{i}]");
            if !groups.contains(change.group.as_str()) {
                let known = groups.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
                let accepted = format!("a group that flows or visits name: {known}");
                let found = format!("{:?}", change.group);
                return Err(Error::value(plan.place, format!("{key}.group"), found, accepted));
            }
            let (down, up) = self.routes(plan, &change.route, &format!("{key}.route"))?;
            self.reroutes.push((change.at_ns, change.group.clone(), down, up));
        }
        if !self.reroutes.is_sorted_by_key(|(at, ..)| *at) {
            let accepted = "times in ascending order".to_owned();
            return Err(Error::value(
                plan.place,
                "simulation.reroutes".to_owned(),
                "an earlier change after a later one".to_owned(),
                accepted,
            ));
        }
        self.reroutes.reverse();
        Ok(())
    }

    fn add(&mut self, app: Application) {
        self.apps.push(app);
        self.alarms.push(crate::agenda::Alarm::default());
        self.over.push(false);
        self.active += 1;
        self.settle(self.apps.len() - 1);
    }

    fn path(&mut self, plan: &Plan, route: &Route, group: &str, key: &str) -> Result<usize, Error> {
        let (down, up) = self.routes(plan, route, key)?;
        Ok(self.world.path(RoutePair { group: group.to_owned(), down, up }))
    }

    fn routes(&mut self, plan: &Plan, route: &Route, key: &str) -> Result<(RouteId, RouteId), Error> {
        let mut found = |names: &[String], way: &str| {
            let links = plan.route(names, &format!("{key}.{way}"))?;
            Ok::<RouteId, Error>(self.world.fabric.add_route(links))
        };
        Ok((found(&route.down, "down")?, found(&route.up, "up")?))
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
            self.active -= 1;
            // After the last application the run ends, and closing connections would have no effect.
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

impl Plan<'_> {
    fn config(&self, congestion: &str, initial_window: u32, key: &str) -> Result<Arc<Config>, Error> {
        let Some(instance) = self.instances.get(congestion) else {
            let names: Vec<&str> = self.instances.keys().copied().collect();
            let accepted = if names.is_empty() {
                "a name in congestion, which is empty".to_owned()
            } else {
                names.join(", ")
            };
            return Err(Error::value(
                self.place,
                format!("{key}.congestion"),
                format!("{congestion:?}"),
                accepted,
            ));
        };
        settings::config(&self.simulation.tcp, self.mtu, instance.clone(), initial_window)
            .map(Arc::new)
            .map_err(|(name, found, accepted)| {
                Error::value(self.place, format!("simulation.tcp.{name}"), found, accepted)
            })
    }

    fn dscp(&self, dscp: u8, key: &str) -> Result<u8, Error> {
        if dscp < 64 {
            return Ok(dscp);
        }
        Err(Error::value(self.place, format!("{key}.dscp"), dscp.to_string(), "0 to 63".to_owned()))
    }

    fn route(&self, names: &[String], key: &str) -> Result<Vec<LinkId>, Error> {
        let nameless = [String::new()];
        let links = self.named(if names.is_empty() { &nameless } else { names }, key)?;
        if links.len() > 255 {
            return Err(Error::value(
                self.place,
                key.to_owned(),
                format!("{} links", links.len()),
                "at most 255".to_owned(),
            ));
        }
        Ok(links)
    }

    /// Links whose packets the table `packet` holds.
    fn watched(&self) -> Result<Vec<LinkId>, Error> {
        match self.simulation.packet_links.as_slice() {
            [] => Ok((0..self.links.len() - 1).collect()),
            names => self.named(names, "simulation.packet_links"),
        }
    }

    fn named(&self, names: &[String], key: &str) -> Result<Vec<LinkId>, Error> {
        let links = names.iter().map(|name| {
            self.links.iter().position(|known| known == name).ok_or_else(|| {
                let known: Vec<&str> =
                    self.links.iter().map(String::as_str).filter(|n| !n.is_empty()).collect();
                Error::value(self.place, key.to_owned(), format!("{name:?}"), known.join(", "))
            })
        });
        links.collect()
    }
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
