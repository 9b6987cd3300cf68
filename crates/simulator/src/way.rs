//! The path of a run with proxies: from its description to the legs of its visits.

use crate::error::Error;
use crate::plan::{Plan, Resolved};
use crate::relay::{Ends, Leg, Legs, RelaySettings};
use crate::world::{AppId, Dial, World};
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use wirepaint_run::{HttpVersion, Pep, Proxy, ProxyTls, Role, Side, Split, Visit};
use wirepaint_tcp_model::Config;

/// Buffer of a tunnel through squid, in bytes of each direction (its `SQUID_TCP_SO_RCVBUF`).
const SQUID_TUNNEL_BYTES: u64 = 65_535;

/// Segments and proxies between clients and servers.
pub(crate) struct Way<'a> {
    /// Names of segments from the clients on, up to the first stop, from each stop to the next, and to the servers.
    stretches: Vec<Vec<String>>,
    stops: Vec<Stop<'a>>,
}

/// A host of a proxy.
struct Stop<'a> {
    proxy: &'a Proxy,
    host: Resolved<'a>,
}

/// Where legs begin.
struct Start<'a> {
    /// The application whose connections they are.
    app: AppId,
    /// The visit, or one that has the same servers, and its key.
    visit: &'a Visit,
    key: &'a str,
    /// The stretch behind it.
    stretch: usize,
    host: Resolved<'a>,
    /// Of connections that it opens.
    opened: Arc<Config>,
    dscp: u8,
}

impl<'a> Way<'a> {
    /// Reads the run's `path` and `proxies`. Without proxies a visit says what it crosses.
    pub fn new(plan: &Plan<'a>) -> Result<Way<'a>, Error> {
        let run = plan.run;
        let refuse = |key: String, found: String, accepted: String| {
            Err(Error::value(plan.place, key, found, accepted))
        };
        let mut way = Way { stretches: vec![Vec::new()], stops: Vec::new() };
        let hosts: Vec<(&str, &Proxy)> = run
            .proxies
            .iter()
            .flat_map(|proxy| proxy.hosts().into_iter().map(move |host| (host, proxy)))
            .collect();
        if hosts.is_empty() && !run.path.is_empty() {
            let accepted = "nothing in a run without proxies".to_owned();
            return refuse("path".to_owned(), format!("{:?}", run.path), accepted);
        }
        for (at, name) in run.path.iter().enumerate() {
            let known = run.segments.iter().any(|segment| segment.name == *name);
            if known && !run.path[..at].contains(name) {
                way.stretches.last_mut().expect("one at least").push(name.clone());
                continue;
            }
            match hosts.get(way.stops.len()) {
                Some((host, proxy)) if host == name => {
                    let host = plan.host(host, &format!("path[{at}]"), "host")?;
                    way.stops.push(Stop { proxy, host });
                    way.stretches.push(Vec::new());
                }
                next => {
                    let next = next.map_or("no host".to_owned(), |(host, _)| {
                        format!("{host:?}, the next host of a proxy")
                    });
                    let accepted = format!("{next}, or a segment, each once");
                    return refuse(format!("path[{at}]"), format!("{name:?}"), accepted);
                }
            }
        }
        if let Some((host, _)) = hosts.get(way.stops.len()) {
            return refuse(
                "path".to_owned(),
                format!("{:?}", run.path),
                format!("{host:?}, the host of a proxy, too"),
            );
        }
        for (at, proxy) in run.proxies.iter().enumerate() {
            if let Some((key, found, accepted)) = refused(proxy, &run.proxies[..at], run.transport.http) {
                return refuse(format!("proxies[{at}]{key}"), found, accepted.to_owned());
            }
        }
        if let Some(stop) = way.stops.iter().find(|stop| stop.host.host.role != Role::Proxy) {
            let (name, role) = (&stop.host.host.name, stop.host.host.role.name());
            return refuse(format!("hosts, {name}: role"), role.to_owned(), "proxy".to_owned());
        }
        Ok(way)
    }

    /// The legs of a visit, the application `app`.
    pub fn of_visit(
        &self,
        world: &mut World,
        plan: &Plan,
        app: AppId,
        visit: &Visit,
        key: &str,
    ) -> Result<Legs, Error> {
        if !self.stops.is_empty() && (visit.through.is_some() || !visit.group.is_empty()) {
            let found = if visit.through.is_some() { "through" } else { "group" };
            let accepted = "neither through nor group in a run with proxies: it has a path".to_owned();
            return Err(Error::value(plan.place, key.to_owned(), found.to_owned(), accepted));
        }
        let client = plan.host(&visit.client, key, "client")?;
        let start = Start {
            app,
            visit,
            key,
            stretch: 0,
            host: client,
            opened: plan.config(client.host, None, key)?,
            dscp: plan.dscp(&client, 0, key)?,
        };
        self.legs(world, plan, &start)
    }

    /// The legs of a proxy that answers in the servers' place, the application `app`, in a run with visits. `stop` is
    /// its host that connects to the servers.
    pub fn of_proxy(&self, world: &mut World, plan: &Plan, app: AppId, stop: usize) -> Result<Legs, Error> {
        let (host, visit) = (self.stops[stop].host, &plan.run.visits[0]);
        let opened = plan.upstream(host.host)?;
        let start = Start { app, visit, key: "visits[0]", stretch: stop + 1, host, opened, dscp: 0 };
        if let Some(other) = plan.run.visits.iter().position(|other| other.server != visit.server) {
            let (key, found) =
                (format!("visits[{other}].server"), format!("{:?}", plan.run.visits[other].server));
            let accepted = format!("{:?}, as of all visits of a run with proxies", visit.server);
            return Err(Error::value(plan.place, key, found, accepted));
        }
        self.legs(world, plan, &start)
    }

    /// The proxies that answer in the servers' place, with the stop whose host connects to the servers.
    pub fn answering(&self) -> impl Iterator<Item = (&'a Proxy, usize)> {
        let last = self.stops.iter().enumerate().filter(|(at, stop)| {
            let next = self.stops.get(at + 1);
            !matches!(stop.proxy, Proxy::Split(_))
                && next.is_none_or(|next| !std::ptr::eq(next.proxy, stop.proxy))
        });
        last.map(|(at, stop)| (stop.proxy, at))
    }

    fn legs(&self, world: &mut World, plan: &Plan, start: &Start) -> Result<Legs, Error> {
        let encrypted = Rc::new(self.leg(world, plan, start, true)?);
        let is_asked = self.stops.iter().any(|stop| matches!(stop.proxy, Proxy::Squid(_)));
        let plain = if is_asked { Rc::new(self.leg(world, plan, start, false)?) } else { encrypted.clone() };
        Ok(Legs { encrypted, plain })
    }

    /// From a host to the one that ends its connections.
    fn leg(&self, world: &mut World, plan: &Plan, start: &Start, encrypted: bool) -> Result<Leg, Error> {
        let Start { app, visit, key, .. } = *start;
        let server = plan.host(&visit.server, key, "server")?;
        let (mut from, mut opened) = (start.host, start.opened.clone());
        let mut leg = Leg { hops: Vec::new(), relays: Vec::new(), ends: Ends::AtServers };
        for at in start.stretch..=self.stops.len() {
            let stop = self.stops.get(at);
            let to = stop.map_or(server, |stop| stop.host);
            let path = if self.stops.is_empty() {
                plan.path(world, visit.through.as_deref(), &visit.group, key)?
            } else {
                self.path(world, plan, at)?
            };
            let (server_address, server_port) = self.asked_at(at).unwrap_or((to.address, 0));
            let first = at == 0;
            leg.hops.push(Dial {
                hosts: [&from, &to].map(|end| end.host.name.as_str().into()),
                client: quick(opened),
                server: quick(plan.config(to.host, None, key)?),
                client_address: from.address,
                server_address,
                server_port,
                path,
                dscp: if at == start.stretch { start.dscp } else { 0 },
                marked: start.host.host.dscp.filter(|_| first),
                app,
                sender: Side::Server,
                sampled: self.is_main(plan, at),
                of_proxy: !first,
                accepted_on: to.accepts_on(),
            });
            let Some(stop) = stop else { break };
            let relaying = match stop.proxy {
                Proxy::Split(split) => RelaySettings { buffer_bytes: split.buffer_bytes, is_asked: false },
                Proxy::Squid(squid) if encrypted && squid.tls == ProxyTls::Tunnel => {
                    RelaySettings { buffer_bytes: SQUID_TUNNEL_BYTES, is_asked: true }
                }
                Proxy::Squid(_) | Proxy::Pep(_) => {
                    let is_asked = matches!(stop.proxy, Proxy::Squid(_));
                    leg.ends = Ends::AtProxy { app: self.app(plan, stop.proxy), is_asked };
                    break;
                }
            };
            leg.relays.push(relaying);
            (from, opened) = (stop.host, plan.upstream(stop.host.host)?);
        }
        Ok(leg)
    }

    /// The connections between the two sides of a PEP, the application `app`: those of its first
    /// class first. `ground` is the stop of the side near the servers.
    pub fn inner(
        &self,
        world: &mut World,
        plan: &Plan,
        app: AppId,
        pep: &Pep,
        ground: usize,
    ) -> Result<Vec<Dial>, Error> {
        let [from, to] = [ground - 1, ground].map(|stop| self.stops[stop].host);
        let dial = Dial {
            hosts: [&from, &to].map(|end| end.host.name.as_str().into()),
            client: quick(plan.upstream(from.host)?),
            server: quick(plan.config(to.host, None, "")?),
            client_address: from.address,
            server_address: to.address,
            server_port: pep.port,
            path: self.path(world, plan, ground)?,
            dscp: 0,
            marked: None,
            app,
            sender: Side::Server,
            sampled: self.is_main(plan, ground),
            of_proxy: true,
            accepted_on: to.accepts_on(),
        };
        let policy = pep.policy();
        let of_class = |number| {
            let class = pep.classes.get(policy.class_of_connection(number));
            Dial { dscp: class.map_or(0, |class| class.dscp), ..dial.clone() }
        };
        Ok((0..policy.connection_count()).map(of_class).collect())
    }

    /// The path of connections over a stretch.
    fn path(&self, world: &mut World, plan: &Plan, stretch: usize) -> Result<usize, Error> {
        // Routes begin at the server.
        let through: Vec<String> = self.stretches[stretch].iter().rev().cloned().collect();
        plan.path(world, Some(&through), "", "path")
    }

    /// The application of a proxy that answers in the servers' place. They come after flows and visits.
    fn app(&self, plan: &Plan, proxy: &Proxy) -> AppId {
        let before = self.answering().take_while(|(other, _)| !std::ptr::eq(*other, proxy)).count();
        (plan.run.flows.len() + plan.run.visits.len() + before) as AppId
    }

    /// Address and port of the forward proxy behind a stretch, if there is one: clients connect to it.
    fn asked_at(&self, stretch: usize) -> Option<(Ipv4Addr, u16)> {
        self.stops[stretch..].iter().find_map(|stop| match stop.proxy {
            Proxy::Squid(squid) => Some((stop.host.address, squid.port)),
            _ => None,
        })
    }

    /// Whether a stretch holds the run's first segment: its senders are sampled.
    fn is_main(&self, plan: &Plan, stretch: usize) -> bool {
        let main = plan.run.segments.first().map(|segment| &segment.name);
        let holds = |segments: &Vec<String>| main.is_some_and(|main| segments.contains(main));
        self.stretches.iter().position(holds).unwrap_or(0) == stretch
    }

    /// What a flow crosses between the clients and a host on the path, from that host on; `None` in a run without
    /// proxies.
    pub fn up_to(&self, host: &str) -> Option<Vec<String>> {
        if self.stops.is_empty() {
            return None;
        }
        let stop = self.stops.iter().position(|stop| stop.host.host.name == host);
        let stretches = &self.stretches[..=stop.unwrap_or(self.stops.len())];
        Some(stretches.iter().flatten().rev().cloned().collect())
    }
}

/// Why a proxy behind `before` is refused: the end of the key, what was found, what is accepted.
fn refused(
    proxy: &Proxy,
    before: &[Proxy],
    http: HttpVersion,
) -> Option<(&'static str, String, &'static str)> {
    let again = before.iter().any(|other| match proxy {
        Proxy::Squid(_) => matches!(other, Proxy::Squid(_)),
        Proxy::Pep(_) => matches!(other, Proxy::Pep(_)),
        Proxy::Split(_) => false,
    });
    match proxy {
        Proxy::Squid(_) if again => Some(("", "squid again".to_owned(), "squid once")),
        Proxy::Pep(_) if again => Some(("", "pep again".to_owned(), "pep once")),
        Proxy::Squid(squid) if squid.tls == ProxyTls::Terminate && http != HttpVersion::H1 => {
            let accepted = "tunnel, or h1 as transport.http: squid ends HTTP/1.1 alone";
            Some((".tls", "terminate".to_owned(), accepted))
        }
        Proxy::Pep(pep) if !(1..=64).contains(&pep.connections) => {
            Some((".connections", pep.connections.to_string(), "1 to 64"))
        }
        Proxy::Pep(pep)
            if pep
                .classes
                .iter()
                .any(|class| class.share.is_nan() || class.share <= 0.0 || class.dscp > 63) =>
        {
            Some((".classes", format!("{:?}", pep.classes), "shares above 0 and code points of 0 to 63"))
        }
        Proxy::Split(Split { buffer_bytes: 0, .. }) | Proxy::Pep(Pep { buffer_bytes: 0, .. }) => {
            Some((".buffer_bytes", "0".to_owned(), "at least 1 byte"))
        }
        _ => None,
    }
}

/// Browsers, proxies and the replay server set TCP_NODELAY.
fn quick(config: Arc<Config>) -> Arc<Config> {
    Arc::new(Config { nodelay: true, ..Config::clone(&config) })
}
