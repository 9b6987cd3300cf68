//! The split TCP proxy: it accepts connections to the run's origins and opens one to the destination for each.

use crate::Failure;
use crate::listening::{self, v4};
use crate::records::{AskedFor, Ended, Records};
use crate::relay::{self, End};
use crate::stage;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use wirepaint_observed_sockets::Socket;
use wirepaint_run::{Proxy, Run};

/// What all connections share.
struct Split {
    congestion: String,
    buffer_bytes: usize,
    /// Addresses of the run's proxies: a connection to one would be a connection to this proxy itself.
    own: BTreeSet<Ipv4Addr>,
    /// Sockets of origins that listen on another port than their own.
    elsewhere: BTreeMap<SocketAddrV4, u16>,
    records: Rc<Records>,
}

/// Serves the split proxy on the host `name` until SIGTERM or SIGINT; `path` is where `run` was read from.
pub fn serve(path: &Path, run: &Run, name: &str) -> Result<(), Failure> {
    let (host, upstream) = stage::host(path, run, name)?;
    let found = run.proxies.iter().enumerate().find_map(|(place, proxy)| match proxy {
        Proxy::Split(split) if split.host == name => Some((place, split.buffer_bytes)),
        _ => None,
    });
    let (place, buffer_bytes) = found.ok_or_else(|| {
        Failure::value(path, "proxies", format!("none of kind \"split\" on {name:?}"), "one")
    })?;
    if !(4_096..=1 << 30).contains(&buffer_bytes) {
        let key = format!("proxies[{place}].buffer_bytes");
        return Err(Failure::value(path, key, buffer_bytes.to_string(), "4096 to 1073741824"));
    }
    let origins = || run.sites.values().flat_map(|site| &site.origins);
    let ports: BTreeSet<u16> = origins().map(|origin| origin.port).collect();
    if ports.is_empty() {
        return Err(Failure::value(path, "sites", "no origin", "one at least"));
    }
    let elsewhere = origins()
        .filter_map(|origin| Some((SocketAddrV4::new(origin.address, origin.port), origin.listen_port?)));
    let asked_for = AskedFor {
        accepted: (host.congestion.clone(), host.initial_window),
        opened: (upstream.congestion.clone(), upstream.initial_window),
    };
    let records = Records::new(name, run.epoch_ns, asked_for);
    let split = Rc::new(Split {
        congestion: upstream.congestion.clone(),
        buffer_bytes: buffer_bytes as usize,
        own: run.proxies.iter().flat_map(Proxy::hosts).filter_map(|name| address(run, name)).collect(),
        elsewhere: elsewhere.collect(),
        records: records.clone(),
    });
    let begin = async || {
        for port in ports {
            let listener = listening::transparent(port, &host.congestion)?;
            tokio::task::spawn_local(accept(listener, split.clone()));
        }
        Ok(())
    };
    stage::play(run, &records, begin, || {})
}

fn address(run: &Run, name: &str) -> Option<Ipv4Addr> {
    run.hosts.iter().find(|host| host.name == name)?.address
}

async fn accept(listener: TcpListener, split: Rc<Split>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::task::spawn_local(split.clone().connection(stream))),
            // Out of descriptors or memory, or the client gave up; later accepts may succeed.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

impl Split {
    /// Opens a connection to the destination of one that was accepted, and relays.
    async fn connection(self: Rc<Split>, stream: TcpStream) {
        let (Ok(client), Ok(destination)) = (v4(stream.peer_addr()), v4(stream.local_addr())) else { return };
        // Without a second descriptor the kernel cannot be asked about the connection, so it is not served.
        let Ok(socket) = Socket::of(stream.as_fd()).map(Rc::new) else { return };
        let _ = stream.set_nodelay(true);
        let id = self.records.accepted(client, destination, socket.clone());
        let client = End::new(stream, socket, id);
        match self.open(destination, client.id).await {
            Ok(server) => relay::relay(client, server, self.buffer_bytes, &self.records).await,
            Err(error) => {
                self.records.refused(destination, Some(client.id), error.to_string());
                self.records.closed(client.id, Ended::Reset);
            }
        }
    }

    async fn open(
        &self,
        destination: SocketAddrV4,
        carries: crate::records::ConnectionId,
    ) -> std::io::Result<End> {
        if self.own.contains(destination.ip()) {
            return Err(std::io::Error::other("the destination is a proxy of the run"));
        }
        let port = self.elsewhere.get(&destination).copied().unwrap_or(destination.port());
        let target = SocketAddrV4::new(*destination.ip(), port);
        let stream = listening::connect(target, &self.congestion).await?;
        let socket = Rc::new(Socket::of(stream.as_fd())?);
        let id = self.records.opened(v4(stream.local_addr())?, target, socket.clone());
        self.records.carries(id, carries);
        Ok(End::new(stream, socket, id))
    }
}
