//! State that connections share: the groups of `congestion/include/cc_group.h`.
//!
//! [`Groups`] is the native counterpart of the kernel's group maps: one per simulated run, shared by its
//! connections, with a table of [`Group`]s per instance of an algorithm. Iteration is in the order of keys,
//! so it is deterministic. [`GroupRecord`] is one event of a group; the kernel's arm reads the same record
//! from its ring buffer.

use crate::Instance;
use std::cell::{RefCell, UnsafeCell};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

/// Address families as Linux numbers them.
pub(crate) const AF_INET: u16 = 2;
pub(crate) const AF_INET6: u16 = 10;

/// Most groups of one instance (CC_GROUPS_MAX).
pub const GROUPS_MAX: usize = 4096;
/// Prefix length of a server's addresses (CC_SERVER_PLEN4, CC_SERVER_PLEN6).
const SERVER_PLEN4: u8 = 24;
const SERVER_PLEN6: u8 = 64;

/// Kinds of events of a group, in the order of C's enum.
pub const EVENTS: [&str; 5] = ["join", "loss", "leave", "delay", "undo"];

/// Identifies a group: `struct cc_group_key`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct GroupKey {
    /// The sending host: the inode of its network namespace.
    pub netns: u32,
    family: u8,
    plen: u8,
    /// Groups of one server and prefix are numbered.
    pub slot: u8,
    unused: u8,
    /// Network order; IPv4 in the first.
    prefix: [u32; 4],
    /// Prefix of the senders' own addresses, in the same form.
    server: [u32; 2],
}

impl GroupKey {
    /// The network of the senders' addresses, such as 10.65.0.0/24: hosts in it are one server.
    pub fn server(&self) -> String {
        let [first, second] = self.server;
        let plen = if u16::from(self.family) == AF_INET { SERVER_PLEN4 } else { SERVER_PLEN6 };
        format!("{}/{plen}", address(self.family, [first, second, 0, 0]))
    }
}

/// The prefix of the receivers' addresses, such as 10.1.2.0/24.
impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", address(self.family, self.prefix), self.plen)
    }
}

/// The last event of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct GroupEvent {
    /// Events so far; wraps.
    pub count: u32,
    /// Value that the algorithm reports with it, in segments.
    pub cwnd: u32,
    /// As above.
    pub ssthresh: u32,
}

/// The state of a group: `struct cc_group`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Group {
    lock: u32,
    /// Members.
    pub members: u32,
    /// Round-trip time of the group; 0 if the algorithm keeps none.
    pub rtt_us: u32,
    /// Number of times that a first member joined.
    pub generation: u32,
    /// Sum of the windows that the members contributed.
    pub cwnd_sum: u64,
    /// Sum of the slow-start thresholds that the members contributed.
    pub ssthresh_sum: u64,
    /// The last event of each kind, in the order of [`EVENTS`].
    pub events: [GroupEvent; EVENTS.len()],
    /// The algorithm's own state.
    pub own: [u64; 8],
}

/// An event of a group and the connection that caused it: `struct cc_group_record`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct GroupRecord {
    /// The sender's clock: nanoseconds of CLOCK_MONOTONIC in the kernel.
    pub time_ns: u64,
    /// The group.
    pub key: GroupKey,
    local: [u32; 4],
    remote: [u32; 4],
    local_port: u16,
    remote_port: u16,
    unused: u32,
    kind: u32,
    /// Members after the event.
    pub members: u32,
    /// Sum of their windows.
    pub cwnd_sum: u64,
    /// Sum of their slow-start thresholds.
    pub ssthresh_sum: u64,
    /// Value that the algorithm reports with the event, in segments.
    pub cwnd: u32,
    /// As above.
    pub ssthresh: u32,
}

impl GroupRecord {
    /// One of [`EVENTS`].
    pub fn event(&self) -> &'static str {
        EVENTS[self.kind as usize]
    }

    /// The sender's end of the connection.
    pub fn local(&self) -> SocketAddr {
        (address(self.key.family, self.local), u16::from_be(self.local_port)).into()
    }

    /// The receiver's end of the connection.
    pub fn remote(&self) -> SocketAddr {
        (address(self.key.family, self.remote), u16::from_be(self.remote_port)).into()
    }
}

fn address(family: u8, words: [u32; 4]) -> IpAddr {
    if u16::from(family) == AF_INET {
        return Ipv4Addr::from(u32::from_be(words[0])).into();
    }
    Ipv6Addr::from(words.iter().fold(0, |all, word| all << 32 | u128::from(u32::from_be(*word)))).into()
}

/// The groups of a run, by instance. Connections of a run share one.
#[derive(Default)]
pub struct Groups {
    // A store must not move: connections hold its address.
    stores: RefCell<Vec<(Arc<Instance>, Box<Store>)>>,
    records: Rc<RefCell<Vec<(usize, GroupRecord)>>>,
}

/// The store that the hooks use: `struct cc_group_store`.
#[repr(C)]
pub struct Store {
    find: extern "C" fn(*const Store, *const GroupKey) -> *mut Group,
    make: extern "C" fn(*const Store, *const GroupKey) -> *mut Group,
    record: extern "C" fn(*const Store) -> *mut GroupRecord,
    groups: RefCell<BTreeMap<GroupKey, Box<UnsafeCell<Group>>>>,
    /// Place among the stores.
    place: usize,
    /// Records of all stores, each with the place of its store.
    records: Rc<RefCell<Vec<(usize, GroupRecord)>>>,
}

impl Groups {
    /// No groups.
    pub fn new() -> Rc<Groups> {
        Rc::default()
    }

    /// The table of an instance. It lives as long as self, so the connection holds self.
    pub(crate) fn store(&self, instance: &Arc<Instance>) -> *const Store {
        let mut stores = self.stores.borrow_mut();
        if let Some((_, store)) = stores.iter().find(|(known, _)| Arc::ptr_eq(known, instance)) {
            return &raw const **store;
        }
        let store = Box::new(Store {
            find,
            make,
            record,
            groups: RefCell::default(),
            place: stores.len(),
            records: Rc::clone(&self.records),
        });
        let address = &raw const *store;
        stores.push((Arc::clone(instance), store));
        address
    }

    /// Every group that an instance has had, with or without members, in the order of the keys.
    pub fn of(&self, instance: &Arc<Instance>) -> Vec<(GroupKey, Group)> {
        let stores = self.stores.borrow();
        let Some((_, store)) = stores.iter().find(|(known, _)| Arc::ptr_eq(known, instance)) else {
            return Vec::new();
        };
        // SAFETY: hooks write only while they run, and none does now.
        store.groups.borrow().iter().map(|(key, group)| (*key, unsafe { *group.get() })).collect()
    }

    /// The events since the last call, in their order, over all instances.
    pub fn take_records(&self) -> Vec<(Arc<Instance>, GroupRecord)> {
        let stores = self.stores.borrow();
        let records = self.records.take().into_iter();
        records.map(|(place, record)| (Arc::clone(&stores[place].0), record)).collect()
    }
}

extern "C" fn find(store: *const Store, key: *const GroupKey) -> *mut Group {
    // SAFETY: a hook passes its socket's store and a key on its stack.
    let (store, key) = unsafe { (&*store, &*key) };
    store.groups.borrow().get(key).map_or(std::ptr::null_mut(), |group| group.get())
}

extern "C" fn make(store: *const Store, key: *const GroupKey) -> *mut Group {
    // SAFETY: as in find().
    let (store, key) = unsafe { (&*store, &*key) };
    let mut groups = store.groups.borrow_mut();
    if groups.len() == GROUPS_MAX && !groups.contains_key(key) {
        return std::ptr::null_mut();
    }
    groups.entry(*key).or_default().get()
}

/// Room for a record; the hook fills it before anything else happens to the store.
extern "C" fn record(store: *const Store) -> *mut GroupRecord {
    // SAFETY: as in find().
    let store = unsafe { &*store };
    let mut records = store.records.borrow_mut();
    records.push((store.place, GroupRecord::default()));
    &mut records.last_mut().expect("it was pushed").1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::layout;
    use std::mem::offset_of;

    #[test]
    fn the_mirrors_have_the_offsets_of_c() {
        let rust = [
            ("time_ns", offset_of!(GroupRecord, time_ns)),
            ("key.netns", offset_of!(GroupRecord, key.netns)),
            ("key.family", offset_of!(GroupRecord, key.family)),
            ("key.plen", offset_of!(GroupRecord, key.plen)),
            ("key.slot", offset_of!(GroupRecord, key.slot)),
            ("key.prefix", offset_of!(GroupRecord, key.prefix)),
            ("key.server", offset_of!(GroupRecord, key.server)),
            ("local", offset_of!(GroupRecord, local)),
            ("remote", offset_of!(GroupRecord, remote)),
            ("local_port", offset_of!(GroupRecord, local_port)),
            ("remote_port", offset_of!(GroupRecord, remote_port)),
            ("note.kind", offset_of!(GroupRecord, kind)),
            ("note.n", offset_of!(GroupRecord, members)),
            ("note.cwnd_tot", offset_of!(GroupRecord, cwnd_sum)),
            ("note.ssth_tot", offset_of!(GroupRecord, ssthresh_sum)),
            ("note.cwnd", offset_of!(GroupRecord, cwnd)),
            ("note.ssthresh", offset_of!(GroupRecord, ssthresh)),
            ("record", size_of::<GroupRecord>()),
            ("lock", offset_of!(Group, lock)),
            ("n", offset_of!(Group, members)),
            ("rtt_us", offset_of!(Group, rtt_us)),
            ("gen", offset_of!(Group, generation)),
            ("cwnd_tot", offset_of!(Group, cwnd_sum)),
            ("ssth_tot", offset_of!(Group, ssthresh_sum)),
            ("ev", offset_of!(Group, events)),
            ("own", offset_of!(Group, own)),
            ("group", size_of::<Group>()),
        ];
        assert_eq!(layout::of_groups(), rust);
    }

    #[test]
    fn a_key_reads_as_its_prefix_and_its_server() {
        let v4 = GroupKey {
            family: 2,
            plen: 24,
            prefix: [u32::from_ne_bytes([10, 1, 2, 0]), 0, 0, 0],
            server: [u32::from_ne_bytes([10, 65, 3, 0]), 0],
            ..GroupKey::default()
        };
        assert_eq!((v4.to_string().as_str(), v4.server().as_str()), ("10.1.2.0/24", "10.65.3.0/24"));
        let v6 = GroupKey {
            family: 10,
            plen: 64,
            prefix: [u32::from_ne_bytes([0x20, 1, 0xd, 0xb8]), 0, 0, 0],
            server: [u32::from_ne_bytes([0xfd, 0, 0, 0x65]), u32::from_ne_bytes([0, 0, 0, 3])],
            ..GroupKey::default()
        };
        assert_eq!((v6.to_string().as_str(), v6.server().as_str()), ("2001:db8::/64", "fd00:65:0:3::/64"));
    }
}
