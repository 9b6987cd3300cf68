//! Groups of connections in the kernel: the maps of `congestion/include/cc_group.h`.
//!
//! [`record`] writes their events as the table `group` of the trace while a run's congestion controls
//! are loaded; [`command`] is the verb `cc groups`, which prints every group on this host.

use crate::Loaded;
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object, RingBufferBuilder};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use wirepaint_congestion_native::{Group, GroupKey, GroupRecord, INFINITE_SSTHRESH};
use wirepaint_run::Congestion;
use wirepaint_run::signals::Signals;
use wirepaint_trace::schema::Group as GroupRow;
use wirepaint_trace::{TableWriter, TraceError, Value, row};

/// Maps of an object, as cc_group.h names them.
const GROUPS: &str = "cc_groups";
const RECORDS: &str = "cc_group_records";
const INSTANCE: &str = "cc_instance";

/// Pause between two readings of the ring buffers, which hold 1 MiB: over 6,000 records each.
const PAUSE: Duration = Duration::from_millis(20);

/// Why the groups could not be read or their events could not be written.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// The kernel or libbpf refused.
    #[error("reading groups of connections: {0} (needs root: CAP_BPF, CAP_SYS_ADMIN)")]
    Kernel(#[from] libbpf_rs::Error),
    /// The table could not be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// The instance of a map of groups: `struct cc_instance`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instance {
    algorithm: [u8; 16],
    name: [u8; 16],
    /// Records that found the ring buffer full.
    lost: u64,
}

impl Instance {
    fn read(map: &impl MapCore) -> Result<Instance, libbpf_rs::Error> {
        let bytes = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)?.expect("an array has its element");
        // SAFETY: the map's values have this size, and every bit pattern is an instance.
        Ok(unsafe { bytes.as_ptr().cast::<Instance>().read_unaligned() })
    }

    /// Up to the first zero.
    fn text(bytes: &[u8; 16]) -> String {
        String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
    }
}

fn map<'a>(object: &'a Object, name: &str) -> Option<libbpf_rs::Map<'a>> {
    object.maps().find(|map| map.name() == name)
}

/// Writes the instance into the map of a newly loaded object; does nothing if it has no groups.
pub(crate) fn label(object: &Object, congestion: &Congestion) -> Result<(), libbpf_rs::Error> {
    let Some(map) = map(object, INSTANCE) else { return Ok(()) };
    let fixed = |text: &str| {
        let mut bytes = [0; 16];
        bytes.iter_mut().take(15).zip(text.bytes()).for_each(|(to, from)| *to = from);
        bytes
    };
    // A user's own file is named by its stem.
    let algorithm = Path::new(&congestion.algorithm).file_stem().unwrap_or_default().to_string_lossy();
    let value = [fixed(&algorithm), fixed(&congestion.name), [0; 16]].concat();
    map.update(&0_u32.to_ne_bytes(), &value[..size_of::<Instance>()], MapFlags::ANY)
}

/// Counts of `record`.
#[derive(Default)]
pub(crate) struct Recorded {
    /// Rows of the table `group`.
    pub events: u64,
    /// Events that found a ring buffer full.
    pub lost: u64,
}

/// Calls `ready`, then writes the events of all groups into the table `group` until SIGTERM or SIGINT. If no
/// algorithm has groups, it only waits, and there is no table.
pub(crate) fn record(
    loaded: &Loaded,
    trace_dir: &Path,
    epoch_ns: u64,
    signals: &Signals,
    ready: impl FnOnce(),
) -> Result<Recorded, GroupError> {
    let sharing: Vec<&Object> =
        loaded.objects.iter().filter(|object| map(object, GROUPS).is_some()).collect();
    if sharing.is_empty() {
        ready();
        signals.wait();
        return Ok(Recorded::default());
    }
    let mut table = TableWriter::create(trace_dir)?;
    // The callbacks cannot return our error: the first one is kept and ends the loop.
    let sink = RefCell::new((&mut table, 0_u64, None));
    let rings: Vec<_> =
        sharing.iter().map(|object| map(object, RECORDS).expect("beside the groups")).collect();
    let mut builder = RingBufferBuilder::new();
    for (object, ring) in sharing.iter().zip(&rings) {
        let instance = Instance::read(&map(object, INSTANCE).expect("beside the groups"))?;
        let (algorithm, name) = (Instance::text(&instance.algorithm), Instance::text(&instance.name));
        let sink = &sink;
        builder.add(ring, move |bytes| {
            let (table, events, failure) = &mut *sink.borrow_mut();
            *events += 1;
            match table.push(&group_row(&read_record(bytes), epoch_ns, &algorithm, &name)) {
                Ok(()) => 0,
                Err(error) => {
                    *failure = Some(error);
                    -1
                }
            }
        })?;
    }
    let reader = builder.build()?;
    ready();
    let mut stop = false;
    while !stop {
        stop = signals.wait_for(PAUSE);
        let result = reader.consume();
        if let Some(error) = sink.borrow_mut().2.take() {
            return Err(error.into());
        }
        result?;
    }
    drop(reader);
    let events = sink.into_inner().1;
    table.finish()?;
    let lost = sharing.iter().map(|object| {
        Instance::read(&map(object, INSTANCE).expect("beside the groups")).map(|instance| instance.lost)
    });
    Ok(Recorded { events, lost: lost.sum::<Result<u64, _>>()? })
}

fn read_record(bytes: &[u8]) -> GroupRecord {
    assert!(bytes.len() >= size_of::<GroupRecord>(), "the ring buffer holds whole records");
    // SAFETY: long enough, and every bit pattern is a record.
    unsafe { bytes.as_ptr().cast::<GroupRecord>().read_unaligned() }
}

/// The row of the table `group`; times from the run's epoch.
fn group_row(record: &GroupRecord, epoch_ns: u64, algorithm: &str, name: &str) -> GroupRow {
    let (server, client) = (record.local(), record.remote());
    let known = |segments: u32| (1..INFINITE_SSTHRESH).contains(&segments).then_some(segments);
    row!(GroupRow {
        time: record.time_ns as i64 - epoch_ns as i64,
        algorithm: algorithm,
        congestion: name,
        prefix: record.key.to_string(),
        server: record.key.server(),
        slot: i64::from(record.key.slot),
        event: record.event(),
        connection: Value::Null,
        server_address: server.ip().to_string(),
        server_port: server.port(),
        client_address: client.ip().to_string(),
        client_port: client.port(),
        members: record.members,
        cwnd_sum: record.cwnd_sum,
        ssthresh_sum: record.ssthresh_sum,
        cwnd: known(record.cwnd),
        ssthresh: known(record.ssthresh),
    })
}

/// The verb `cc groups`: prints every group of every loaded congestion control on this host as JSON, a list
/// of flat objects. With `each_line` it prints one line for each line on stdin.
pub fn command(each_line: bool) -> ExitCode {
    let printed = if each_line {
        std::io::stdin().lines().map_while(Result::ok).try_for_each(|_| {
            println!("{}", serde_json::to_string(&all()?).expect("groups are plain data"));
            Ok(())
        })
    } else {
        all().map(|groups| {
            println!("{}", serde_json::to_string_pretty(&groups).expect("groups are plain data"));
        })
    };
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error: GroupError = error;
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn all() -> Result<Vec<Described>, GroupError> {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        // Without the privilege, iteration ends silently at once.
        return Err(libbpf_rs::Error::from_raw_os_error(libc::EPERM).into());
    }
    let mut owners = BTreeMap::new();
    let mut maps = Vec::new();
    for info in MapInfoIter::default() {
        // A map may be removed between the listing and this look-up.
        let Ok(map) = MapHandle::from_map_id(info.id) else { continue };
        if info.name == INSTANCE && info.value_size as usize == size_of::<Instance>() {
            owners.insert(info.btf_id, Instance::read(&map)?);
        } else if info.name == GROUPS
            && info.ty == MapType::Hash
            && info.key_size as usize == size_of::<GroupKey>()
            && info.value_size as usize == size_of::<Group>()
        {
            maps.push((info.btf_id, map));
        }
    }
    let mut groups = Vec::new();
    for (btf, map) in maps {
        // The maps of one object share their BTF.
        let Some(owner) = owners.get(&btf) else { continue };
        for key in map.keys() {
            let Some(value) = map.lookup(&key, MapFlags::LOCK)? else { continue };
            // SAFETY: keys and values of the map have these sizes, and every bit pattern is one.
            let (key, group) = unsafe {
                (
                    key.as_ptr().cast::<GroupKey>().read_unaligned(),
                    value.as_ptr().cast::<Group>().read_unaligned(),
                )
            };
            groups.push(Described::new(owner, &key, &group));
        }
    }
    groups.sort();
    Ok(groups)
}

/// A group as `cc groups` prints it.
#[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct Described {
    /// Name that the instance is registered under.
    congestion: String,
    /// Inode of the sender's network namespace.
    namespace: u32,
    prefix: String,
    server: String,
    slot: u8,
    members: u32,
    cwnd_sum: u64,
    ssthresh_sum: u64,
    /// 0 if the algorithm keeps none.
    rtt_us: u32,
    /// Events so far.
    joins: u32,
    losses: u32,
    leaves: u32,
    delays: u32,
    undos: u32,
    algorithm: String,
}

impl Described {
    fn new(owner: &Instance, key: &GroupKey, group: &Group) -> Described {
        let [joins, losses, leaves, delays, undos] = group.events.map(|event| event.count);
        Described {
            congestion: Instance::text(&owner.name),
            namespace: key.netns,
            prefix: key.to_string(),
            server: key.server(),
            slot: key.slot,
            members: group.members,
            cwnd_sum: group.cwnd_sum,
            ssthresh_sum: group.ssthresh_sum,
            rtt_us: group.rtt_us,
            joins,
            losses,
            leaves,
            delays,
            undos,
            algorithm: Instance::text(&owner.algorithm),
        }
    }
}
