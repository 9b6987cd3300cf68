//! Clients: whose packet a frame is, and how many each sent and received.

use crate::Error;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::path::Path;
use wirepaint_run::{Host, Role};
use wirepaint_trace::row;
use wirepaint_trace::schema::Client as Row;

/// The clients of a run that have an address.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    places: HashMap<Ipv4Addr, u16>,
    known: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    name: String,
    address: Ipv4Addr,
    dscp: Option<u8>,
    sent: Count,
    received: Count,
}

/// Packets and IP bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    packets: u64,
    bytes: u64,
}

impl Count {
    fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

impl Clients {
    /// The clients among `hosts`; errors name the run description `path`.
    pub fn new(hosts: &[Host], path: &Path) -> Result<Clients, Error> {
        let mut clients = Clients::default();
        for host in hosts.iter().filter(|host| host.role == Role::Client) {
            let Some(address) = host.address else { continue };
            if let Some(dscp) = host.dscp.filter(|dscp| *dscp > 63) {
                let place = format!("{}: hosts, {}: dscp", path.display(), host.name);
                return Err(Error::Usage(format!("{place}: found {dscp}, accepted: 0 to 63")));
            }
            clients.places.insert(address, clients.known.len() as u16);
            let (sent, received) = Default::default();
            clients.known.push(Client { name: host.name.clone(), address, dscp: host.dscp, sent, received });
        }
        Ok(clients)
    }

    /// The place of the client of that address.
    pub fn at(&self, address: Ipv4Addr) -> Option<u16> {
        self.places.get(&address).copied()
    }

    /// The code point that the path sees on the client's packets; `None` for what they carry.
    pub fn dscp(&self, client: u16) -> Option<u8> {
        self.known[usize::from(client)].dscp
    }

    /// A packet of the client entered the path.
    pub fn sent(&mut self, client: u16, ip_bytes: u32) {
        self.known[usize::from(client)].sent.add(ip_bytes);
    }

    /// A packet to the client left the path.
    pub fn received(&mut self, client: u16, ip_bytes: u32) {
        self.known[usize::from(client)].received.add(ip_bytes);
    }

    /// The rows of the table `client`.
    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        self.known.iter().map(|client| {
            row!(Row {
                host: client.name.as_str(),
                address: client.address.to_string(),
                dscp: client.dscp.map(u64::from),
                sent_packets: client.sent.packets,
                sent_bytes: client.sent.bytes,
                received_packets: client.received.packets,
                received_bytes: client.received.bytes,
            })
        })
    }
}
