//! The HTTP performance-enhancing proxy after HTTP-AE (section IV-D): a pair of sides with persistent connections
//! between them. The ground side fetches what a page refers to and sends it ahead of the browser.
//!
//! ```text
//! remote   browsers ─► requests ═══ link: wire, exchange ═══ ground   scheduler ◄─ origins
//!                                   coding: compression between the sides
//! ```

mod coding;
mod exchange;
mod ground;
mod http1;
mod limits;
mod link;
mod parts;
mod remote;
mod wire;

use crate::records::{AskedFor, Records};
use crate::{Failure, stage};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::rc::Rc;
use wirepaint_pep_model::Policy;
use wirepaint_run::{Ahead, Compression, Origin, Pep, Proxy, Role, Run, Site, Transport};
use wirepaint_serving::{AUTHORITY, Authority};

/// Most requests of browsers under way; others wait. Each has a part of the memory for itself.
const REQUESTS: usize = 512;

/// A side of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Near the clients.
    Remote,
    /// Near the servers.
    Ground,
}

/// The origins at one address and port.
struct Origins {
    encrypted: bool,
    hosts: Vec<String>,
    /// Port of the socket.
    listen_port: u16,
}

/// Where to connect for a scheme (encrypted or not), host and port of a site.
type Hosts = BTreeMap<(bool, String, u16), SocketAddrV4>;

/// What a side is told by the run description.
struct Settings {
    policy: Policy,
    /// Class of each user's address.
    classes: BTreeMap<Ipv4Addr, usize>,
    origins: BTreeMap<SocketAddrV4, Origins>,
    /// Hosts of each origin's site. Sites may name the same host at different addresses.
    hosts: BTreeMap<SocketAddrV4, Rc<Hosts>>,
    /// Ports of the origins.
    ports: BTreeSet<u16>,
    ground: SocketAddrV4,
    congestion: String,
    upstream_congestion: String,
    buffer_bytes: u64,
    compression: Compression,
    ahead: Ahead,
    /// Addresses that each page's rehearsals asked for, by the page's origin and address.
    rehearsed: BTreeMap<(SocketAddrV4, String), Vec<String>>,
    transport: Transport,
    /// `None` where no origin is encrypted.
    authority: Option<Authority>,
}

/// Serves a side of the proxy until SIGTERM or SIGINT; `path` is where `run` was read from.
pub fn serve(path: &Path, run: &Run, side: Side) -> Result<(), Failure> {
    let pep = run.proxies.iter().enumerate().find_map(|(place, proxy)| match proxy {
        Proxy::Pep(pep) => Some((place, pep)),
        _ => None,
    });
    let pep = pep.ok_or_else(|| Failure::value(path, "proxies", "none of kind \"pep\"", "one"))?;
    check(path, pep)?;
    let name = if side == Side::Remote { &pep.1.remote } else { &pep.1.ground };
    let (host, upstream) = stage::host(path, run, name)?;
    let settings = Settings::new(path, run, pep, host, upstream)?;
    let asked_for = AskedFor {
        accepted: (host.congestion.clone(), host.initial_window),
        opened: (upstream.congestion.clone(), upstream.initial_window),
    };
    let records = Records::new(name, run.epoch_ns, asked_for);
    let remote = OnceCell::new();
    let begin = async || match side {
        Side::Remote => {
            let begun = remote::begin(&settings, &records).await?;
            drop(remote.set(begun));
            Ok(())
        }
        Side::Ground => ground::begin(&settings, &records).await,
    };
    stage::play(run, &records, begin, || {
        if let Some(remote) = remote.get() {
            remote.note_rest();
        }
    })
}

fn check(path: &Path, (place, pep): (usize, &Pep)) -> Result<(), Failure> {
    let refuse = |key: &str, found: String, accepted: &str| {
        Err(Failure::value(path, format!("proxies[{place}].{key}"), found, accepted))
    };
    if !(1..=64).contains(&pep.connections) {
        return refuse("connections", pep.connections.to_string(), "1 to 64");
    }
    if !(262_144..=1 << 30).contains(&pep.buffer_bytes) {
        return refuse("buffer_bytes", pep.buffer_bytes.to_string(), "262144 to 1073741824");
    }
    if pep.classes.len() > 64 {
        return refuse("classes", format!("{} classes", pep.classes.len()), "64 at most");
    }
    for (number, class) in pep.classes.iter().enumerate() {
        if class.dscp > 63 {
            return refuse(&format!("classes[{number}].dscp"), class.dscp.to_string(), "0 to 63");
        }
        if !(class.share > 0.0 && class.share <= 100.0) {
            let key = format!("classes[{number}].share");
            return refuse(&key, class.share.to_string(), "a share above 0, at most 100");
        }
    }
    Ok(())
}

impl Settings {
    fn new(
        path: &Path,
        run: &Run,
        (place, pep): (usize, &Pep),
        host: &wirepaint_run::Host,
        upstream: &wirepaint_run::Sending,
    ) -> Result<Settings, Failure> {
        let policy = pep.policy();
        let mut classes = BTreeMap::new();
        for (number, client) in run.hosts.iter().enumerate().filter(|(_, host)| host.role == Role::Client) {
            let class = policy.class_of(client.dscp.unwrap_or(0)).ok_or_else(|| {
                let key = format!("hosts[{number}].dscp");
                let accepted = format!("a class of proxies[{place}].classes");
                Failure::value(path, key, format!("{:?}", client.dscp), accepted)
            })?;
            classes.extend(client.address.map(|address| (address, class)));
        }
        let mut origins: BTreeMap<SocketAddrV4, Origins> = BTreeMap::new();
        for origin in run.sites.values().flat_map(|site| &site.origins) {
            let address = SocketAddrV4::new(origin.address, origin.port);
            let group = origins.entry(address).or_insert_with(|| Origins {
                encrypted: origin.encrypted,
                hosts: Vec::new(),
                listen_port: origin.listen_port.unwrap_or(origin.port),
            });
            group.hosts.push(origin.host.clone());
        }
        if origins.is_empty() {
            return Err(Failure::value(path, "sites", "no origin", "one at least"));
        }
        let mut hosts = BTreeMap::new();
        for site in run.sites.values() {
            let of_site: Rc<Hosts> = Rc::new(hosts_of(site));
            hosts.extend(of_site.values().map(|&address| (address, of_site.clone())));
        }
        let ground = run.hosts.iter().enumerate().find(|(_, host)| host.name == pep.ground);
        let (number, ground) = ground.ok_or_else(|| {
            Failure::value(path, format!("proxies[{place}].ground"), &*pep.ground, "the name of a host")
        })?;
        let address = ground.address.ok_or_else(|| {
            Failure::value(
                path,
                format!("hosts[{number}].address"),
                "nothing",
                "the address of the ground side",
            )
        })?;
        let encrypted = origins.values().any(|origins| origins.encrypted);
        Ok(Settings {
            policy,
            classes,
            ports: origins.keys().map(SocketAddrV4::port).collect(),
            origins,
            hosts,
            ground: SocketAddrV4::new(address, pep.port),
            congestion: host.congestion.clone(),
            upstream_congestion: upstream.congestion.clone(),
            buffer_bytes: pep.buffer_bytes,
            compression: pep.compression,
            ahead: pep.ahead,
            rehearsed: if pep.ahead == Ahead::Rehearsed { rehearsed(run) } else { BTreeMap::new() },
            transport: run.transport.clone(),
            authority: encrypted.then(|| authority(&run.work_dir)).transpose()?,
        })
    }
}

/// The authority that the replay server has made.
fn authority(folder: &Path) -> Result<Authority, Failure> {
    let path = folder.join(AUTHORITY);
    let pem = std::fs::read_to_string(&path).map_err(Failure::system(path.display().to_string()))?;
    Ok(Authority::read(&pem)?)
}

fn hosts_of(site: &Site) -> Hosts {
    let named = |origin: &Origin| (origin.encrypted, origin.host.to_ascii_lowercase(), origin.port);
    let origins = site.origins.iter();
    origins.map(|origin| (named(origin), SocketAddrV4::new(origin.address, origin.port))).collect()
}

/// What each page's browser fetches with GET, by the page's origin and address. A page that was rehearsed twice, in
/// view ports of two sizes, has what either asked for.
fn rehearsed(run: &Run) -> BTreeMap<(SocketAddrV4, String), Vec<String>> {
    let mut pages: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for page in run.pages.values() {
        let Some((base, others)) = page.resources.split_first() else { continue };
        let Some(origin) = page.origins.get(base.origin as usize) else { continue };
        let key = (SocketAddrV4::new(origin.address, origin.port), base.url.clone());
        let known = pages.entry(key).or_default();
        for resource in others.iter().filter(|resource| resource.method == "GET") {
            if !known.contains(&resource.url) {
                known.push(resource.url.clone());
            }
        }
    }
    pages
}
