//! The recording, and the origins of each address.

use crate::Failure;
use crate::answer::{Answer, Ask};
use crate::matching::{Matched, Target};
use crate::recording::Recording;
use crate::records::Records;
use http::StatusCode;
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::path::Path;
use std::rc::Rc;
use wirepaint_run::Origin;

/// A page's recording, and what all connections share.
pub struct Site {
    /// Its name in the run.
    pub(crate) name: String,
    pub(crate) recording: Recording,
    /// Records of connections and requests.
    pub records: Rc<Records>,
}

impl Site {
    /// Answers a request at an address; with 421 if the host has another address.
    pub fn answer(&self, origins: &Origins, ask: &Ask, target: &Target) -> Answer {
        if origins.names.contains(&target.origin) {
            self.recording.answer(ask, target)
        } else {
            Answer::empty(StatusCode::MISDIRECTED_REQUEST, Matched::None)
        }
    }
}

/// The origins of one address and port.
pub struct Origins {
    pub(crate) address: SocketAddrV4,
    pub(crate) encrypted: bool,
    pub(crate) hosts: Vec<String>,
    /// `scheme://host[:port]` of each.
    names: Vec<String>,
}

impl Origins {
    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.encrypted { "https" } else { "http" }
    }

    /// Host and port of the first origin.
    pub fn first_authority(&self) -> &str {
        self.names[0].split_once("://").map_or("", |(_, authority)| authority)
    }

    /// Groups the origins of the site `name` by address and port.
    pub(crate) fn group(path: &Path, name: &str, origins: &[Origin]) -> Result<Vec<Origins>, Failure> {
        let refuse = |i: usize, key: &str, found: String, accepted| Failure::Value {
            path: path.to_owned(),
            key: format!("sites.{name}.origins[{i}].{key}"),
            found,
            accepted,
        };
        let mut groups: BTreeMap<SocketAddrV4, Origins> = BTreeMap::new();
        for (i, origin) in origins.iter().enumerate() {
            let address = SocketAddrV4::new(origin.address, origin.listen_port.unwrap_or(origin.port));
            let group = groups.entry(address).or_insert_with(|| Origins {
                address,
                encrypted: origin.encrypted,
                hosts: Vec::new(),
                names: Vec::new(),
            });
            if group.encrypted != origin.encrypted {
                let found = format!("{} at {address}, where it is {}", origin.encrypted, group.encrypted);
                return Err(refuse(i, "encrypted", found, "the same for one address and port"));
            }
            let authority = format!("{}:{}", origin.host, origin.port);
            let plain_host = !origin.host.contains(['/', '?', '#', '@', ':', ' ']);
            let target = Target::new(group.scheme(), &authority, "/").filter(|_| plain_host);
            let target =
                target.ok_or_else(|| refuse(i, "host", format!("{:?}", origin.host), "a host name"))?;
            group.hosts.push(origin.host.clone());
            group.names.push(target.origin);
        }
        Ok(groups.into_values().collect())
    }
}
