//! The congestion controls of `congestion/`, loaded into the running kernel.
//!
//! The same C sources as in crate congestion-native, compiled to BPF when wirepaint is built and embedded
//! here. [`load`] registers instances under names of the caller's choice, each with its own parameters. They
//! stay while the returned [`Loaded`] lives and end with the process, because a BPF link holds each and
//! nothing is pinned. Sockets that use one keep it until they close. Names are global to the host; network
//! namespaces share them.
//!
//! [`command`] is the verb `cc load RUN.json`, [`groups`] has the groups of connections.

mod command;
mod cost;
pub mod groups;
mod user_file;

pub use command::command;
pub use cost::HookCost;

use libbpf_rs::btf::types::{DataSec, Var};
use libbpf_rs::btf::{Btf, BtfType};
use libbpf_rs::{AsRawLibbpf, Link, MapCore, MapType, Object, ObjectBuilder, OpenObject};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Mutex;
use wirepaint_congestion_native::{Parameter, Refusal, external, find};
use wirepaint_run::Congestion;

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// Longest name that the kernel accepts, in bytes (TCP_CA_NAME_MAX less the final zero).
pub const NAME_MAX: usize = 15;
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Why a congestion control could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The algorithm or a parameter does not exist, or a value is out of range.
    #[error("congestion[{index}].{key}: {refusal}")]
    Refused {
        /// Place in the list.
        index: usize,
        /// `algorithm` or `parameters`.
        key: &'static str,
        /// The value found, and the accepted ones.
        refusal: Refusal,
    },
    /// The algorithm is the kernel's own.
    #[error(
        "congestion[{index}].algorithm: {found:?} is built into this kernel and is not loaded: use it by its name \
         (accepted here: {accepted})"
    )]
    BuiltIn {
        /// Place in the list.
        index: usize,
        /// The name asked for.
        found: String,
        /// What can be loaded.
        accepted: String,
    },
    /// The kernel does not accept the name, or it is taken.
    #[error("congestion[{index}].name: found {found:?}, accepted: {accepted}")]
    Name {
        /// Place in the list.
        index: usize,
        /// The name asked for.
        found: String,
        /// What is accepted.
        accepted: &'static str,
    },
    /// The kernel or libbpf refused.
    #[error("loading {algorithm} as {name:?}: {cause}{}", if *.root { "" } else { " (needs root: CAP_BPF, CAP_NET_ADMIN)" })]
    Kernel {
        /// Name of the algorithm.
        algorithm: String,
        /// Name to register under.
        name: String,
        /// The message of libbpf or the verifier.
        cause: String,
        /// True where the caller is root.
        root: bool,
    },
}

impl LoadError {
    /// True if the run description is wrong, false if the machine refused.
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, LoadError::Kernel { .. })
    }
}

/// Congestion controls that are registered as long as this lives.
pub struct Loaded {
    // Dropped first: a link holds the registration.
    _links: Vec<Link>,
    objects: Vec<Object>,
    names: Vec<String>,
}

/// Registers congestion controls. All or none: after an error nothing stays registered.
pub fn load(wanted: &[Congestion]) -> Result<Loaded, LoadError> {
    check(wanted)?;
    let images = images(wanted)?;
    let mut loaded = Loaded { _links: Vec::new(), objects: Vec::new(), names: Vec::new() };
    for (congestion, image) in wanted.iter().zip(&images) {
        let (object, link) = load_one(congestion, image).map_err(|cause| LoadError::Kernel {
            algorithm: congestion.algorithm.clone(),
            name: congestion.name.clone(),
            cause,
            // SAFETY: geteuid has no preconditions.
            root: unsafe { libc::geteuid() } == 0,
        })?;
        loaded._links.push(link);
        loaded.objects.push(object);
        loaded.names.push(congestion.name.clone());
    }
    Ok(loaded)
}

/// Names that the kernel offers now: its own and loaded ones.
pub fn available() -> Vec<String> {
    let text = std::fs::read_to_string(AVAILABLE).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Refuses bad input before the kernel is asked.
fn check(wanted: &[Congestion]) -> Result<(), LoadError> {
    let taken = available();
    for (index, congestion) in wanted.iter().enumerate() {
        let Congestion { algorithm, name, parameters, .. } = congestion;
        let found = find(algorithm).map_err(|refusal| match refusal {
            Refusal::Algorithm { found, accepted } if taken.contains(&found) => {
                LoadError::BuiltIn { index, found, accepted }
            }
            refusal => LoadError::Refused { index, key: "algorithm", refusal },
        })?;
        found.resolve_for_kernel(parameters).map_err(|refusal| LoadError::Refused {
            index,
            key: "parameters",
            refusal,
        })?;
        let refuse = |accepted| Err(LoadError::Name { index, found: name.clone(), accepted });
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        if name.is_empty() || name.len() > NAME_MAX || !plain {
            return refuse("1 to 15 characters of a-z, A-Z, 0-9, _ . and -");
        }
        if taken.contains(name) || wanted[..index].iter().any(|other| other.name == *name) {
            return refuse("a name that no congestion control of this host has");
        }
    }
    Ok(())
}

/// The BPF objects: embedded, or compiled from the user's own files.
fn images(wanted: &[Congestion]) -> Result<Vec<Cow<'static, [u8]>>, LoadError> {
    let image = |(index, congestion): (usize, &Congestion)| {
        let algorithm = &congestion.algorithm;
        if external::is_file(algorithm) {
            let refuse =
                |message| LoadError::Refused { index, key: "algorithm", refusal: Refusal::File { message } };
            return user_file::compile(Path::new(algorithm)).map(Cow::Owned).map_err(refuse);
        }
        let (_, image) = OBJECTS
            .iter()
            .find(|(name, _)| name == algorithm)
            .expect("both arms are compiled from the same folder");
        Ok(Cow::Borrowed(*image))
    };
    wanted.iter().enumerate().map(image).collect()
}

fn load_one(congestion: &Congestion, image: &[u8]) -> Result<(Object, Link), String> {
    let _log = Log::begin();
    let explain = |step: &str, error: libbpf_rs::Error| format!("{step}: {error}{}", Log::last_line());
    let mut open = ObjectBuilder::default()
        .name(&congestion.name)
        .and_then(|builder| builder.open_memory(image))
        .map_err(|error| explain("opening", error))?;
    set_parameters(&mut open, congestion);
    rename(&mut open, &congestion.name);
    let mut object = open.load().map_err(|error| explain("verifying", error))?;
    groups::label(&object, congestion).map_err(|error| explain("labelling", error))?;
    let link = object
        .maps_mut()
        .find(|map| map.map_type() == MapType::StructOps)
        .expect("CC_REGISTER declares the struct_ops")
        .attach_struct_ops()
        .map_err(|error| explain("registering", error))?;
    Ok((object, link))
}

/// Writes the instance's name over the file's, at the start of the struct (see cc_kernel.h).
fn rename(open: &mut OpenObject, name: &str) {
    let mut map =
        open.maps_mut().find(|map| map.map_type() == MapType::StructOps).expect("checked by the build");
    let value = map.initial_value_mut().expect("libbpf keeps the struct");
    value[..=NAME_MAX].fill(0);
    value[..name.len()].copy_from_slice(name.as_bytes());
}

/// Writes the parameters, defaults included, into the object's read-only data.
fn set_parameters(open: &mut OpenObject, congestion: &Congestion) {
    let algorithm = find(&congestion.algorithm).expect("checked");
    let values = algorithm.resolve(&congestion.parameters).expect("checked");
    let named: Vec<(&Parameter, u64)> = algorithm.parameters().zip(values).collect();
    if named.is_empty() {
        return;
    }
    // SAFETY: the object lives through this function and is not changed while its types are read.
    let raw = unsafe { open.as_libbpf_object().as_ref() };
    let btf = Btf::from_bpf_object(raw).ok().flatten().expect("objects are compiled with -g");
    let section: DataSec = btf.type_by_name(".rodata").expect("parameters live in .rodata");
    let places: Vec<(usize, u64)> = section
        .iter()
        .filter_map(|variable| {
            let var: BtfType = btf.type_by_id(variable.ty)?;
            let name = Var::try_from(var).ok()?.name()?.to_str()?.to_owned();
            let (_, value) = named.iter().find(|(parameter, _)| parameter.name() == name)?;
            Some((variable.offset as usize, *value))
        })
        .collect();
    assert_eq!(places.len(), named.len(), "every parameter has its place in .rodata");
    drop(btf);
    let mut rodata = open
        .maps_mut()
        .find(|map| map.name().to_string_lossy().ends_with(".rodata"))
        .expect("parameters live in .rodata");
    let bytes = rodata.initial_value_mut().expect("libbpf keeps the section");
    for (offset, value) in places {
        bytes[offset..offset + 8].copy_from_slice(&value.to_ne_bytes());
    }
}

/// The output of libbpf while one object was loaded. Its last line explains an error.
struct Log;

static LOG: Mutex<String> = Mutex::new(String::new());

impl Log {
    fn begin() -> Log {
        LOG.lock().expect("no holder panics").clear();
        libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Warn, |_, text| {
            LOG.lock().expect("no holder panics").push_str(&text);
        })));
        Log
    }

    /// The verifier's message if there is one, else libbpf's last line.
    fn last_line() -> String {
        let log = LOG.lock().expect("no holder panics");
        let useful = |line: &&str| {
            !line.is_empty() && !line.starts_with("processed ") && !line.contains("END PROG LOAD")
        };
        log.lines()
            .map(str::trim)
            .filter(useful)
            .rfind(|line| !line.starts_with("libbpf:"))
            .or_else(|| log.lines().map(str::trim).rfind(useful))
            .map(|line| format!(" ({line})"))
            .unwrap_or_default()
    }
}
