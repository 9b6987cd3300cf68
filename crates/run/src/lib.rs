//! Door 2: what a run is asked to do, complete and resolved.
//!
//! One JSON document describes a run, on the testbed and in the simulator. Every verb of the data plane reads
//! what is its own, so a run can be repeated piece by piece at a shell. The types here are the only declaration;
//! `dataplane schema` writes them as `schema/run.schema.json`. Times count from the run's epoch.

mod capture;
mod flow;
mod host;
pub mod process;
mod proxy;
mod segment;
pub mod signals;
mod site;
mod transport;
mod visit;

pub use capture::Capture;
pub use flow::{Flow, Reroute, Side, Tool};
pub use host::{Host, Role, Sending};
pub use proxy::{Ahead, Cache, Compression, Pep, Proxy, ProxyTls, Split, Squid};
pub use segment::{Interfaces, Segment, default_mtu, default_sample_interval};
pub use site::{Origin, Response, Site};
pub use transport::{HttpVersion, Tls, Transport};
pub use visit::{BrowserCache, Navigation, Visit};
pub use wirepaint_flow_model::{FlowKind, RateFrom};
pub use wirepaint_page_model::Browser;
use wirepaint_page_model::Page;
pub use wirepaint_pep_model::{PepClass, PepSchedule};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use wirepaint_units::{Duration, Time};

/// Version of the document; a program refuses another one.
pub const FORMAT: u32 = 5;

fn default_flow_interval() -> Duration {
    Duration::from_millis(100)
}

/// A run description.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Version of this document: 5.
    pub format: u32,
    /// Short unique id (at most 8 characters of a-z0-9); everything the run owns carries it.
    pub id: String,
    /// Seed of every random element.
    pub seed: u64,
    /// CLOCK_MONOTONIC in nanoseconds at the time 0 of the trace (testbed only).
    #[serde(default)]
    pub epoch_ns: u64,
    /// Folder into which the trace's tables are written.
    pub trace_dir: PathBuf,
    /// Folder for files that pass between the parts of this run.
    pub work_dir: PathBuf,
    /// Who takes part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Host>,
    /// The stretches of the path, from the clients on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Segment>,
    /// Congestion controls that the hosts use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub congestion: Vec<Congestion>,
    /// What all connections have in common.
    #[serde(default)]
    pub transport: Transport,
    /// What the servers of pages answer, by a name that visits refer to (testbed only).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sites: BTreeMap<String, Site>,
    /// Pages as a model of a browser sees them, by a name that visits refer to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pages: BTreeMap<String, Page>,
    /// Proxies between clients and the servers of pages, from the clients on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proxies: Vec<Proxy>,
    /// Names of segments and of proxies' hosts, from the clients to the servers: what a visit crosses in a run with
    /// proxies. Two hosts in a row have a link without delay between them, as has the last one with the servers.
    /// Empty without proxies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// Browsers of the model and of light users, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub browsers: BTreeMap<String, Browser>,
    /// Page visits, one or more users.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub visits: Vec<Visit>,
    /// Flows without a browser.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Flow>,
    /// Changes of a group's route, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reroutes: Vec<Reroute>,
    /// Latest end of the run, counted from its epoch. It ends when every visit is
    /// over and every flow that is no background; a flow without end never is. Its flows alone count it from their
    /// beginning on the testbed.
    #[serde(default)]
    pub until_ns: Time,
    /// Tables to write (simulator only); empty for every table that has rows, with `packet` only where a segment
    /// asks for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<String>,
    /// Links whose packets the table `packet` holds, such as `access.down` (simulator only); empty for every
    /// link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packet_links: Vec<String>,
    /// Period of the rows of the table `flow`.
    #[serde(default = "default_flow_interval")]
    pub flow_interval_ns: Duration,
    /// Cells of the table `run` by column (simulator only); without them there is no such table. The simulator adds
    /// what it found: `started_unix`, `duration`, `server_congestion`, `server_initial_window` and what a PEP sent ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<BTreeMap<String, serde_json::Value>>,
    /// Packet captures of the run (testbed only). The data plane does not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
    /// What the checks of a testbed run compare with. The data plane does not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<serde_json::Value>,
}

/// One congestion control that hosts use.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Congestion {
    /// Name of the algorithm's file in congestion/algorithms, or the path of a C file.
    pub algorithm: String,
    /// Name under which hosts and the kernel know it, at most 15 characters, unique in the run and the kernel.
    pub name: String,
    /// Parameters that differ from their defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, i64>,
    /// True for one that the kernel has under this name and that is not loaded; the simulator runs `algorithm`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_kernel: bool,
}

/// Why a run description was refused.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The file could not be read.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The document is not a run description.
    #[error("{path}: {source}")]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: serde_json::Error,
    },
    /// A field has a value that is not accepted.
    #[error("{path}: {key}: found {found}, accepted: {accepted}")]
    Value {
        /// The file.
        path: PathBuf,
        /// Key in the document.
        key: &'static str,
        /// What it held.
        found: String,
        /// What it may hold.
        accepted: &'static str,
    },
    /// A flow or visit has a value that is not accepted.
    #[error("{path}: {key}: found {found}, accepted: {accepted}")]
    Part {
        /// The file.
        path: PathBuf,
        /// Key in the document.
        key: String,
        /// What it held.
        found: String,
        /// What it may hold.
        accepted: String,
    },
}

impl Run {
    /// Reads and checks a run description.
    pub fn read(path: &Path) -> Result<Run, RunError> {
        let bytes = std::fs::read(path).map_err(|source| RunError::Io { path: path.to_owned(), source })?;
        Run::parse(&bytes, path)
    }

    /// The run description in `text`; `path` is named in errors.
    pub fn parse(text: &[u8], path: &Path) -> Result<Run, RunError> {
        let run: Run = serde_json::from_slice(text)
            .map_err(|source| RunError::Json { path: path.to_owned(), source })?;
        let refuse = |key, found: String, accepted| {
            Err(RunError::Value { path: path.to_owned(), key, found, accepted })
        };
        if run.format != FORMAT {
            return refuse("format", run.format.to_string(), "5");
        }
        let id_ok = (1..=8).contains(&run.id.len())
            && run.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if !id_ok {
            return refuse("id", format!("{:?}", run.id), "1 to 8 characters of a-z and 0-9");
        }
        Ok(run)
    }

    /// The one segment with interfaces: what the emulator carries.
    pub fn emulated<'a>(&'a self, path: &Path) -> Result<(&'a Segment, &'a Interfaces), RunError> {
        let mut ends = self.segments.iter().filter_map(|s| s.interfaces.as_ref().map(|ends| (s, ends)));
        match (ends.next(), ends.next()) {
            (Some(found), None) => Ok(found),
            (first, _) => Err(RunError::Value {
                path: path.to_owned(),
                key: "segments",
                found: if first.is_none() { "none with interfaces" } else { "several with interfaces" }
                    .to_owned(),
                accepted: "one with interfaces",
            }),
        }
    }

    /// For each flow, the earlier flow that it waits for. Refuses values that are not accepted.
    pub fn flows_checked(&self, path: &Path) -> Result<Vec<Option<usize>>, RunError> {
        let refuse = |place: usize, key: &str, found: String, accepted: String| RunError::Part {
            path: path.to_owned(),
            key: format!("flows[{place}].{key}"),
            found,
            accepted,
        };
        let mut waits = Vec::with_capacity(self.flows.len());
        for (place, flow) in self.flows.iter().enumerate() {
            flow.check().map_err(|(key, found, accepted)| refuse(place, key, found, accepted.to_owned()))?;
            let Some(after) = &flow.after else {
                waits.push(None);
                continue;
            };
            let earlier = self.flows[..place].iter().position(|other| other.name == *after);
            let accepted = "the name of an earlier flow".to_owned();
            waits.push(Some(earlier.ok_or_else(|| refuse(place, "after", format!("{after:?}"), accepted))?));
        }
        Ok(waits)
    }

    /// For each visit, the earlier visit that it waits for. Refuses values that are not accepted.
    pub fn visits_checked(&self, path: &Path) -> Result<Vec<Option<usize>>, RunError> {
        let waits = self.visits.iter().enumerate().map(|(place, visit)| match visit.after {
            None => Ok(None),
            Some(after) if (after as usize) < place => Ok(Some(after as usize)),
            Some(after) => Err(RunError::Part {
                path: path.to_owned(),
                key: format!("visits[{place}].after"),
                found: after.to_string(),
                accepted: format!("the number of an earlier visit, below {place}"),
            }),
        });
        waits.collect()
    }

    /// The first host of a role.
    pub fn host(&self, role: Role, path: &Path) -> Result<&Host, RunError> {
        self.hosts.iter().find(|host| host.role == role).ok_or_else(|| RunError::Value {
            path: path.to_owned(),
            key: "hosts",
            found: format!("no {}", role.name()),
            accepted: "a host of this role",
        })
    }

    /// The host that sends down the first segment: the first proxy beyond it, else the server.
    pub fn sender(&self, path: &Path) -> Result<&Host, RunError> {
        let main = self.segments.first().map(|segment| &segment.name);
        let beyond = self.path.iter().skip_while(|name| Some(*name) != main);
        let proxy = beyond.filter_map(|name| self.hosts.iter().find(|host| host.name == *name)).next();
        proxy.map_or_else(|| self.host(Role::Server, path), Ok)
    }

    /// The part of a verb, or the error that names it.
    pub fn part<'a, T>(
        &'a self,
        path: &Path,
        key: &'static str,
        part: &'a Option<T>,
    ) -> Result<&'a T, RunError> {
        part.as_ref().ok_or_else(|| RunError::Value {
            path: path.to_owned(),
            key,
            found: "nothing".to_owned(),
            accepted: "an object (see schema/run.schema.json)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_proxy_beyond_the_first_segment_sends_down_it() {
        let way = r#"{"capacity":{"kind":"unlimited"},"delay_ns":0,"queue":{"kind":"droptail"}}"#;
        let host = |name: &str, role| format!(r#"{{"name":"{name}","role":"{role}","congestion":"std"}}"#);
        let hosts = [host("near", "proxy"), host("far", "proxy"), host("server", "server")].join(",");
        let sender = |path: &str| {
            let run = format!(
                r#"{{"format":5,"id":"a","seed":1,"trace_dir":"t","work_dir":"w","path":{path},"hosts":[{hosts}],
                    "segments":[{{"name":"main","down":{way},"up":{way}}}]}}"#
            );
            let run = Run::parse(run.as_bytes(), Path::new("run.json")).unwrap();
            run.sender(Path::new("run.json")).unwrap().name.clone()
        };
        assert_eq!(sender(r#"["near","main","far"]"#), "far");
        assert_eq!(sender(r#"["near","main"]"#), "server");
        assert_eq!(sender("[]"), "server");
    }

    fn read(text: &str) -> Result<Run, RunError> {
        let path = std::env::temp_dir().join(format!("wirepaint-run-{}-{}", std::process::id(), text.len()));
        std::fs::write(&path, text).unwrap();
        let result = Run::read(&path);
        std::fs::remove_file(&path).unwrap();
        result
    }

    #[test]
    fn an_unknown_key_is_refused_by_name() {
        let error =
            read(r#"{"format": 5,"id":"a","seed":1,"trace_dir":"t","work_dir":"w","colour":2}"#).unwrap_err();
        assert!(error.to_string().contains("unknown field `colour`"), "{error}");
    }

    #[test]
    fn an_id_that_could_leave_its_folder_is_refused() {
        let error = read(r#"{"format": 5,"id":"../x","seed":1,"trace_dir":"t","work_dir":"w"}"#).unwrap_err();
        assert!(error.to_string().contains("1 to 8 characters"), "{error}");
    }
}
