//! The congestion controls of `congestion/`, compiled for the host.
//!
//! The C sources are the ones that the kernel runs as BPF (crate congestion-kernel). Here they serve the
//! simulator, the acknowledgement scripts (crate congestion-scripts) and the catalogue of congestion controls and parameters.
//!
//! * [`algorithms`] and [`find`]: the catalogue, with summaries and [`Parameter`]s;
//! * [`Algorithm::instance`]: a parameter set; [`Connection`]: one connection's socket under an
//!   instance, with one method per hook;
//! * [`groups`]: state that connections share;
//! * [`Watch`]: finds a hook that never ends;
//! * [`command`]: the verbs `cc list`, `cc source` and `cc scripts`.
//!
//! A [`Connection`] does nothing by itself. Its owner plays the kernel: it maintains the fields of
//! [`TcpSock`] and calls the hooks in the kernel's order.

mod calls;
pub mod command;
mod dialect;
pub mod external;
mod floats;
pub mod groups;
mod socket;

pub use calls::Watch;
pub use groups::{Group, GroupKey, GroupRecord, Groups};
pub use socket::{AckSample, CaEvent, CaState, INFINITE_SSTHRESH, RateSample, TcpSock, ack_flags};

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

include!(concat!(env!("OUT_DIR"), "/table.rs"));

const PARAMETERS_MAX: usize = 32;

/// One parameter of a congestion control.
#[repr(C)]
pub struct Parameter {
    name: *const c_char,
    /// Default value.
    pub default: u64,
    /// Smallest value that is accepted.
    pub min: u64,
    /// Largest value that is accepted.
    pub max: u64,
    doc: *const c_char,
    /// The kernel supports only the default.
    pub simulated: bool,
}

/// Hooks of a congestion control, in the order of `struct tcp_congestion_ops` of cc_native.h.
#[repr(C)]
struct Ops {
    ssthresh: Option<unsafe extern "C" fn(*mut TcpSock) -> u32>,
    cong_avoid: Option<unsafe extern "C" fn(*mut TcpSock, u32, u32)>,
    set_state: Option<unsafe extern "C" fn(*mut TcpSock, u8)>,
    cwnd_event: Option<unsafe extern "C" fn(*mut TcpSock, CaEvent)>,
    in_ack_event: Option<unsafe extern "C" fn(*mut TcpSock, u32)>,
    pkts_acked: Option<unsafe extern "C" fn(*mut TcpSock, *const AckSample)>,
    min_tso_segs: Option<unsafe extern "C" fn(*mut TcpSock) -> u32>,
    cong_control: Option<unsafe extern "C" fn(*mut TcpSock, u32, i32, *const RateSample)>,
    undo_cwnd: Option<unsafe extern "C" fn(*mut TcpSock) -> u32>,
    sndbuf_expand: Option<unsafe extern "C" fn(*mut TcpSock) -> u32>,
    init: Option<unsafe extern "C" fn(*mut TcpSock)>,
    release: Option<unsafe extern "C" fn(*mut TcpSock)>,
    cc_room: Option<unsafe extern "C" fn(*mut TcpSock) -> u32>,
    cc_lost: Option<unsafe extern "C" fn(*mut TcpSock, u64)>,
}

/// A sysctl of the network namespace that an algorithm needs.
#[repr(C)]
struct Sysctl {
    name: *const c_char,
    value: *const c_char,
}

/// One congestion control, as its file registers it.
#[repr(C)]
pub struct Algorithm {
    name: *const c_char,
    summary: *const c_char,
    sysctl: *const Sysctl,
    own_initial_window: *const bool,
    parameters: [*const Parameter; PARAMETERS_MAX],
    ops: Ops,
}

// SAFETY: both are constants of the C sources, never written, and so are the texts they point to.
unsafe impl Sync for Algorithm {}
// SAFETY: as above.
unsafe impl Sync for Parameter {}

fn text(pointer: *const c_char) -> &'static str {
    // SAFETY: called only with string literals of the C sources, which live as long as the program.
    unsafe { CStr::from_ptr(pointer) }.to_str().expect("the sources are UTF-8")
}

impl Parameter {
    /// Name, as in the C source.
    pub fn name(&self) -> &'static str {
        text(self.name)
    }

    /// What it is, with its unit.
    pub fn doc(&self) -> &'static str {
        text(self.doc)
    }
}

/// Why a congestion control or its parameters were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no file of that name.
    #[error("found {found:?}, accepted: {accepted}")]
    Algorithm {
        /// The name asked for.
        found: String,
        /// The names that exist.
        accepted: String,
    },
    /// The algorithm has no such parameter.
    #[error("{algorithm} has no parameter {found:?}, accepted: {accepted}")]
    Parameter {
        /// Name of the algorithm.
        algorithm: &'static str,
        /// The name asked for.
        found: String,
        /// The parameters with their ranges.
        accepted: String,
    },
    /// The value is outside the parameter's range.
    #[error("{parameter}: found {found}, accepted: {min} to {max} ({doc})")]
    Range {
        /// Name of the parameter.
        parameter: &'static str,
        /// The value asked for.
        found: i64,
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
        /// What the parameter is.
        doc: &'static str,
    },
    /// Only the simulator supports the parameter's value.
    #[error("{parameter}: found {found}, accepted in the kernel: {default} ({doc})")]
    Simulated {
        /// Name of the parameter.
        parameter: &'static str,
        /// The value asked for.
        found: u64,
        /// The value that the kernel supports.
        default: u64,
        /// What the parameter is.
        doc: &'static str,
    },
    /// The user's own file cannot be read or compiled.
    #[error("{message}")]
    File {
        /// The file, the place in it and the cause.
        message: String,
    },
}

/// Every congestion control, in the order of their names.
pub fn algorithms() -> &'static [&'static Algorithm] {
    &TABLE
}

/// The congestion control of a name, or of the user's own file when the name ends in `.c`.
pub fn find(name: &str) -> Result<&'static Algorithm, Refusal> {
    if external::is_file(name) {
        return external::load(Path::new(name));
    }
    algorithms().iter().copied().find(|algorithm| algorithm.name() == name).ok_or_else(|| {
        let names: Vec<_> = algorithms().iter().map(|algorithm| algorithm.name()).collect();
        Refusal::Algorithm { found: name.to_owned(), accepted: names.join(", ") }
    })
}

impl Algorithm {
    /// Name: that of the file.
    pub fn name(&self) -> &'static str {
        text(self.name)
    }

    /// A summary in one line.
    pub fn summary(&self) -> &'static str {
        text(self.summary)
    }

    /// The sysctl that the algorithm needs, and its value.
    pub fn sysctl(&self) -> Option<(&'static str, &'static str)> {
        // SAFETY: points to a constant of the C source; one that needs none has no name.
        let sysctl = unsafe { &*self.sysctl };
        (!sysctl.name.is_null()).then(|| (text(sysctl.name), text(sysctl.value)))
    }

    /// Whether it has the hooks that the kernel requires.
    fn complete(&self) -> Result<(), String> {
        let ops = &self.ops;
        let hooks = [
            ("ssthresh", ops.ssthresh.is_some()),
            ("undo_cwnd", ops.undo_cwnd.is_some()),
            ("cong_avoid", ops.cong_avoid.is_some() || ops.cong_control.is_some()),
        ];
        match hooks.iter().find(|(_, there)| !there) {
            None => Ok(()),
            Some((hook, _)) => Err(format!("it registers no .{hook}, without which the kernel refuses it")),
        }
    }

    /// True if the algorithm sets the window of a new connection itself and ignores the route's.
    pub fn own_initial_window(&self) -> bool {
        // SAFETY: points to a constant of the C source.
        unsafe { *self.own_initial_window }
    }

    /// Parameters in the order of the source.
    pub fn parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        self.parameters
            .iter()
            // SAFETY: each points to a constant of the C source; those unused have no name.
            .map(|pointer| unsafe { &**pointer })
            .take_while(|parameter| !parameter.name.is_null())
    }

    /// The values of all parameters in the order of the source; those in `given` override the defaults.
    pub fn resolve(&'static self, given: &BTreeMap<String, i64>) -> Result<Vec<u64>, Refusal> {
        if let Some(found) = given.keys().find(|name| self.parameters().all(|p| p.name() != *name)) {
            let known: Vec<_> =
                self.parameters().map(|p| format!("{} ({} to {})", p.name(), p.min, p.max)).collect();
            return Err(Refusal::Parameter {
                algorithm: self.name(),
                found: found.clone(),
                accepted: if known.is_empty() { "none".to_owned() } else { known.join(", ") },
            });
        }
        self.parameters()
            .map(|parameter| match given.get(parameter.name()) {
                None => Ok(parameter.default),
                Some(&found) => u64::try_from(found)
                    .ok()
                    .filter(|value| (parameter.min..=parameter.max).contains(value))
                    .ok_or_else(|| Refusal::Range {
                        parameter: parameter.name(),
                        found,
                        min: parameter.min,
                        max: parameter.max,
                        doc: parameter.doc(),
                    }),
            })
            .collect()
    }

    /// Like [`resolve`](Self::resolve), but refuses values that only the simulator supports.
    pub fn resolve_for_kernel(&'static self, given: &BTreeMap<String, i64>) -> Result<Vec<u64>, Refusal> {
        let values = self.resolve(given)?;
        let beyond =
            |(parameter, found): &(&Parameter, &u64)| parameter.simulated && **found != parameter.default;
        match self.parameters().zip(&values).find(beyond) {
            None => Ok(values),
            Some((parameter, found)) => Err(Refusal::Simulated {
                parameter: parameter.name(),
                found: *found,
                default: parameter.default,
                doc: parameter.doc(),
            }),
        }
    }

    /// The algorithm with a set of parameters.
    pub fn instance(&'static self, given: &BTreeMap<String, i64>) -> Result<Arc<Instance>, Refusal> {
        Ok(Arc::new(Instance { algorithm: self, parameters: self.resolve(given)? }))
    }
}

/// An algorithm with the values of its parameters.
pub struct Instance {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    parameters: Vec<u64>,
}

impl Instance {
    /// The values of its parameters, in the order of [`Algorithm::parameters`].
    pub fn values(&self) -> &[u64] {
        &self.parameters
    }
}

impl PartialEq for Instance {
    fn eq(&self, other: &Instance) -> bool {
        std::ptr::eq(self.algorithm, other.algorithm) && self.parameters == other.parameters
    }
}

/// The socket of one connection under an instance of a congestion control.
pub struct Connection {
    /// Fields that the hooks read and write; the owner maintains them.
    pub tp: TcpSock,
    instance: Arc<Instance>,
    groups: Rc<Groups>,
}

impl Connection {
    /// A socket with all fields zero, alone in its groups. The owner fills it and then calls
    /// [`init`](Self::init).
    pub fn new(instance: Arc<Instance>) -> Connection {
        Connection::among(instance, Groups::new())
    }

    /// Like [`new`](Self::new), but sharing `groups` with other connections of the same instance. The owner
    /// also sets the addresses and, where there are several sending hosts, `tp.cc_netns` before `init`, and
    /// calls [`release`](Self::release) when the connection ends.
    pub fn among(instance: Arc<Instance>, groups: Rc<Groups>) -> Connection {
        let tp = TcpSock {
            cc_parameters: instance.parameters.as_ptr(),
            cc_groups: groups.store(&instance),
            ..TcpSock::default()
        };
        Connection { tp, instance, groups }
    }

    /// The algorithm in use.
    pub fn algorithm(&self) -> &'static Algorithm {
        self.instance.algorithm
    }

    /// Id of the group whose window the connection shares segment by segment, valid as long as the groups.
    /// Such a connection asks [`cc_room`](Self::cc_room) instead of using the window.
    pub fn shared_window(&self) -> Option<usize> {
        let group = self.tp.cc_shared;
        (!group.is_null()).then_some(group as usize)
    }

    /// Changes the congestion control as setsockopt does: `release`, cleared state, `init`.
    pub fn switch(&mut self, instance: Arc<Instance>) {
        self.release();
        self.tp.cc_parameters = instance.parameters.as_ptr();
        self.tp.cc_groups = self.groups.store(&instance);
        self.instance = instance;
        self.tp.icsk_ca_priv = Default::default();
        self.tp.prior_ssthresh = 0;
        self.init();
    }
}

macro_rules! hooks {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty, or $default:expr)?;)*) => {
        impl Connection {
            $($(#[$doc])* pub fn $name(&mut self $(, $argument: $type)*) $(-> $result)? {
                let algorithm = self.instance.algorithm;
                match algorithm.ops.$name {
                    // SAFETY: the hook has this signature, the socket has C's layout, and its
                    // parameters live in the instance, which self holds.
                    Some(hook) => calls::call(algorithm, || unsafe { hook(&mut self.tp $(, $argument)*) }),
                    None => { $($default)? }
                }
            })*
        }
    };
}

hooks! {
    /// The connection is established, or the algorithm was chosen on an open one.
    init();
    /// The connection ends or changes its algorithm.
    release();
    /// The new ssthresh at a loss, an ECN echo or a timeout.
    ssthresh() -> u32, or unreachable!("the kernel refuses an algorithm without ssthresh");
    /// The window after the proof that a reduction was unnecessary.
    undo_cwnd() -> u32, or unreachable!("the kernel refuses an algorithm without undo_cwnd");
    /// An ACK lets the window grow: its number and the segments newly acked or SACKed.
    cong_avoid(ack: u32, acked: u32);
    /// The state changes; `tp.icsk_ca_state` still holds the old one.
    set_state(state: u8);
    /// An event of the window.
    cwnd_event(event: CaEvent);
    /// An ACK arrived, with [`ack_flags`].
    in_ack_event(flags: u32);
    /// Called before each attempt to send.
    min_tso_segs() -> u32, or 2;
    /// Windows for which the send buffer must have room.
    sndbuf_expand() -> u32, or 2;
    /// The flight size has changed. Returns the segments that the group may still send. For a connection with
    /// [`shared_window`](Connection::shared_window).
    cc_room() -> u32, or 0;
    /// A segment that left at `sent_us` was found lost; before [`ssthresh`](Connection::ssthresh). For such
    /// connections only.
    cc_lost(sent_us: u64);
}

impl Connection {
    /// True if [`cong_control`](Self::cong_control) replaces `cong_avoid`, PRR and both idle rules.
    pub fn has_cong_control(&self) -> bool {
        self.instance.algorithm.ops.cong_control.is_some()
    }

    /// The end of an ACK, for algorithms that set window and pacing rate themselves. `flag` is as in
    /// tcp_input.c; no algorithm here reads it.
    pub fn cong_control(&mut self, ack: u32, flag: i32, sample: RateSample) {
        let algorithm = self.instance.algorithm;
        if let Some(hook) = algorithm.ops.cong_control {
            // SAFETY: as for the other hooks; the sample outlives the call.
            calls::call(algorithm, || unsafe { hook(&mut self.tp, ack, flag, &sample) });
        }
    }

    /// An ACK removed segments from the retransmission queue.
    pub fn pkts_acked(&mut self, sample: AckSample) {
        let algorithm = self.instance.algorithm;
        if let Some(hook) = algorithm.ops.pkts_acked {
            // SAFETY: as for the other hooks; the sample outlives the call.
            calls::call(algorithm, || unsafe { hook(&mut self.tp, &sample) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &str, value: i64) -> BTreeMap<String, i64> {
        BTreeMap::from([(name.to_owned(), value)])
    }

    #[test]
    fn every_algorithm_says_what_it_is_and_its_defaults_are_in_range() {
        assert!(!algorithms().is_empty());
        for algorithm in algorithms() {
            assert!(!algorithm.summary().is_empty());
            assert!(algorithm.name().len() <= 15, "{}", algorithm.name());
            for parameter in algorithm.parameters() {
                let prefix = parameter.name().split_once('_').expect("NAME_x").0;
                let first = algorithm.parameters().next().unwrap().name();
                assert!(first.starts_with(&format!("{prefix}_")), "{}", parameter.name());
                assert!((parameter.min..=parameter.max).contains(&parameter.default));
                assert!(!parameter.doc().is_empty());
            }
        }
    }

    #[test]
    fn an_unknown_algorithm_is_refused_with_those_that_exist() {
        let refusal = find("nonsense").err().unwrap().to_string();
        assert!(
            refusal.starts_with("found \"nonsense\", accepted: ") && refusal.contains("fld"),
            "{refusal}"
        );
    }

    #[test]
    fn an_unknown_parameter_is_refused_with_those_that_exist() {
        let refusal = find("std").unwrap().resolve(&given("std_flihgt", 1)).unwrap_err().to_string();
        assert!(
            refusal.contains("std has no parameter \"std_flihgt\", accepted: std_flight (0 to 1)"),
            "{refusal}"
        );
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_the_range() {
        for value in [-1, 2] {
            let refusal = find("std").unwrap().resolve(&given("std_flight", value)).unwrap_err().to_string();
            assert!(
                refusal.starts_with(&format!("std_flight: found {value}, accepted: 0 to 1")),
                "{refusal}"
            );
        }
    }
}
