//! The names of a description, resolved.

use crate::error::Error;
use crate::fabric::{LinkId, RouteId};
use crate::link_name::LinkName;
use crate::settings;
use crate::visited::Visited;
use crate::world::{Path as RoutePair, World};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use wirepaint_congestion_native::Instance;
use wirepaint_page_model::Prepared;
use wirepaint_run::{Browser, Host, Proxy, Role, Run, Sending, Visit};
use wirepaint_tcp_model::Config;

/// Resolves the names of a description.
pub(crate) struct Plan<'a> {
    /// The file that errors name.
    pub place: &'a Path,
    /// The description.
    pub run: &'a Run,
    /// The links by their numbers; the last one is a wire.
    pub links: Vec<LinkName>,
    /// The congestion controls.
    pub instances: BTreeMap<&'a str, Arc<Instance>>,
    /// The hosts.
    pub hosts: BTreeMap<&'a str, Resolved<'a>>,
    /// Smallest MTU of the segments.
    pub mtu: u32,
}

/// A host, with its address where it has one of its own.
#[derive(Clone, Copy)]
pub(crate) struct Resolved<'a> {
    /// The host.
    pub host: &'a Host,
    /// Its address.
    pub address: Ipv4Addr,
}

impl Resolved<'_> {
    /// Of connections that it accepts ([`Dial::accepted_on`](crate::world::Dial::accepted_on)).
    pub fn accepts_on(&self) -> u32 {
        if self.host.role == Role::Proxy { self.address.into() } else { 0 }
    }
}

impl<'a> Plan<'a> {
    pub fn host(&self, name: &str, key: &str, side: &str) -> Result<Resolved<'a>, Error> {
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
    pub fn config(&self, host: &Host, own: Option<&str>, key: &str) -> Result<Arc<Config>, Error> {
        match own {
            Some(name) => self.sending(name, host.initial_window, format!("{key}.congestion")),
            None => {
                let key = format!("hosts, {}: congestion", host.name);
                self.sending(&host.congestion, host.initial_window, key)
            }
        }
    }

    /// TCP of connections that a proxy opens: as its host says, else as those that it accepts.
    pub fn upstream(&self, host: &Host) -> Result<Arc<Config>, Error> {
        match &host.upstream {
            Some(Sending { congestion, initial_window }) => {
                let key = format!("hosts, {}: upstream.congestion", host.name);
                self.sending(congestion, *initial_window, key)
            }
            None => self.config(host, None, ""),
        }
    }

    fn sending(&self, congestion: &str, initial_window: u32, key: String) -> Result<Arc<Config>, Error> {
        let Some(instance) = self.instances.get(congestion) else {
            let names: Vec<&str> = self.instances.keys().copied().collect();
            let accepted = if names.is_empty() {
                "a name in congestion, which is empty".to_owned()
            } else {
                names.join(", ")
            };
            return Err(Error::value(self.place, key, format!("{congestion:?}"), accepted));
        };
        settings::config(&self.run.transport, self.mtu, instance.clone(), initial_window)
            .map(Arc::new)
            .map_err(|(name, found, accepted)| Error::value(self.place, name, found, accepted))
    }

    /// A browser of the run.
    pub fn browser(&self, name: &str, key: &str) -> Result<Browser, Error> {
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
    pub fn dscp(&self, client: &Resolved, own: u8, key: &str) -> Result<u8, Error> {
        let (dscp, key) = match client.host.dscp {
            Some(dscp) => (dscp, format!("hosts, {}", client.host.name)),
            None => (own, key.to_owned()),
        };
        if dscp < 64 {
            return Ok(dscp);
        }
        Err(Error::value(self.place, format!("{key}.dscp"), dscp.to_string(), "0 to 63".to_owned()))
    }

    /// What proxies know of a visit.
    pub fn visited(
        &self,
        visit: &Visit,
        page: &Prepared,
        browser: &Browser,
        key: &str,
    ) -> Result<Visited, Error> {
        let client = self.host(&visit.client, key, "client")?.host;
        let user = self.hosts.keys().position(|name| *name == client.name).expect("it is a host");
        let pep = self
            .run
            .proxies
            .iter()
            .find_map(|proxy| if let Proxy::Pep(pep) = proxy { Some(pep) } else { None });
        let class = match pep {
            Some(pep) => pep.policy().class_of(client.dscp.unwrap_or(0)).ok_or_else(|| {
                let (key, found) =
                    (format!("hosts, {}: dscp", client.name), client.dscp.unwrap_or(0).to_string());
                Error::value(self.place, key, found, "that of a class of the proxy".to_owned())
            })?,
            None => 0,
        };
        Ok(Visited {
            prepared: page.clone(),
            heads: browser.heads,
            tls: browser.tls,
            user: user as u32,
            class,
        })
    }

    /// The path of connections between a client and a server.
    pub fn path(
        &self,
        world: &mut World,
        through: Option<&[String]>,
        group: &str,
        key: &str,
    ) -> Result<usize, Error> {
        let (down, up) = self.routes(world, through, key)?;
        Ok(world.path(RoutePair { group: group.to_owned(), down, up }))
    }

    /// The routes from the server to the client and back.
    pub fn routes(
        &self,
        world: &mut World,
        through: Option<&[String]>,
        key: &str,
    ) -> Result<(RouteId, RouteId), Error> {
        let (down, up) = self.route(through, key)?;
        Ok((world.fabric.add_route(down), world.fabric.add_route(up)))
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
    pub fn watched(&self) -> Result<Vec<LinkId>, Error> {
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

/// The hosts by name. Those without an address are numbered.
pub(crate) fn hosts<'a>(run: &'a Run, place: &Path) -> Result<BTreeMap<&'a str, Resolved<'a>>, Error> {
    const MOST: usize = u16::MAX as usize;
    if run.hosts.len() > MOST {
        let found = run.hosts.len().to_string();
        return Err(Error::value(place, "hosts".to_owned(), found, format!("at most {MOST}")));
    }
    let mut hosts = BTreeMap::new();
    let (mut clients, mut servers, mut proxies) = (0, 0, 0);
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
                proxies += 1;
                proxy_address(proxies - 1)
            }
        };
        let refuse = |key: &str, found: String, accepted: &str| {
            Err(Error::value(place, format!("hosts[{i}].{key}"), found, accepted.to_owned()))
        };
        if host.initial_window == 0 {
            return refuse("initial_window", "0".to_owned(), "at least 1 segment");
        }
        if host.upstream.as_ref().is_some_and(|upstream| upstream.initial_window == 0) {
            return refuse("upstream.initial_window", "0".to_owned(), "at least 1 segment");
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

/// Address of a proxy's host, in a network apart from those of clients and servers.
fn proxy_address(host: u16) -> Ipv4Addr {
    Ipv4Addr::from((10 << 24) + (61 << 16) + u32::from(host) + 1)
}

/// Address of a server's host. As in the testbed, each has a /24 network of its own, from 10.65.0.0 on, and
/// its first address. Hosts beyond the first 48,896 take the second address, and so on.
pub(crate) fn server_address(host: u16) -> Ipv4Addr {
    const NETWORKS: u32 = (256 - 65) << 8;
    let (network, place) = (u32::from(host) % NETWORKS, u32::from(host) / NETWORKS);
    Ipv4Addr::from((10 << 24) + (65 << 16) + (network << 8) + place + 1)
}
