//! Acknowledgement scripts: events of the path, and the windows that must follow.
//!
//! One line is one event; its checks follow `=>`; `#` starts a comment.
//!
//! ```text
//! cc fld fld_threshold=50000          # first: the algorithm and its parameters; or a file: cc mine.c
//! open iw=10 mss=1500 rtt=100ms       # established; also rto=304ms after_idle=0
//! write bulk                          # the application writes without end; or: write 30, write 500kB
//! round          => cwnd 30, flight 30
//! lose 3 at 5                         # three segments in flight vanish, from the 5th on
//! round x2       => cwnd 27, ssthresh 27, state Open
//! +1.2s write 40 => flight 10         # time passes first; arrivals meanwhile are acknowledged
//! ```
//!
//! Events: `write N|NkB|bulk|nothing`, `round`, `ack N [ece]` (the next N segments arrive, one ACK each),
//! `stretch N [ece]` (one ACK for N), `lose N [at K]`, `hold N [at K]` and `arrive` (they arrive late), `rtt
//! TIME` (of what is sent from now on), `rwnd N` (the receiver's window), `native REASON` (not for the
//! kernel), `rto`, `tlp`, `local-drop`, `idle TIME`, `finish` (rounds until all is acknowledged), `switch
//! NAME [parameter=value...]`, `close`. Suffix `xN` repeats an event. Checks: `cwnd`, `ssthresh` (or `inf`),
//! `flight`, `state`, `lost`, `retransmitted`, `sent_kb`, `rounds`, `cc`.
//!
//! Several connections have names and run at the same time; those of one `cc` line share its groups:
//!
//! ```text
//! open a to=10.1.2.3                  # a receiver, for algorithms that group by address
//! open b to=10.1.2.200
//! a: write bulk                       # an event or a check of one of them
//! round                               # of all; so are idle, finish and +TIME
//! a: => cwnd 20
//! group 10.1.2.0/24 => members 2, cwnd_sum 40     # or: group 10.1.2.0/24 server 1 slot 1
//! a: close
//! ```

mod checks;
mod player;
mod words;

use crate::sender::{Config, Sender};
use player::Script;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wirepaint_congestion_native::{Instance, external};

/// Why a script stopped: a line that could not be read, or a check that did not hold.
#[derive(Debug, thiserror::Error)]
pub struct ScriptError {
    /// The script.
    pub path: PathBuf,
    /// Line from 1; 0 where the whole file is meant.
    pub line: usize,
    /// The text found, and the text accepted or expected.
    pub message: String,
    /// True if the script was read and the algorithm behaved differently.
    pub differs: bool,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.message)
    }
}

/// A played script: every connection, every event and every check.
#[derive(Default)]
pub struct Played {
    /// The connections in the order of `open`, as they ended.
    pub connections: Vec<Opened>,
    /// Events with the sender after them.
    pub exchange: Vec<Exchange>,
    /// Checks in order, including those that did not hold.
    pub checks: Vec<Check>,
    /// Looks at groups, in order.
    pub looks: Vec<Look>,
    /// Place of a connection in `connections`, and the instance and prefix of a group that it was in.
    pub memberships: Vec<(usize, Arc<Instance>, String)>,
}

/// A look at a group.
pub struct Look {
    /// Place in the order of all events.
    pub order: u64,
    /// The script's clock.
    pub at_us: u64,
    /// Instance of the group.
    pub instance: Arc<Instance>,
    /// The group's prefix.
    pub prefix: String,
    /// Number of its server.
    pub server: u8,
    /// Its slot.
    pub slot: u8,
}

/// A connection of a script.
pub struct Opened {
    /// Line of its `open`.
    pub line: usize,
    /// Its name; empty if it has none.
    pub name: String,
    /// True until its `close`, and for one without a name until the next `open`.
    pub lives: bool,
    /// The instance at its `open`; `switch` may have changed the sender's.
    pub instance: Arc<Instance>,
    /// Its path and settings.
    pub config: Config,
    /// The sender and its journal.
    pub sender: Sender,
}

/// An event and the sender after it.
pub struct Exchange {
    /// Line of the script.
    pub line: usize,
    /// The event, as written there.
    pub event: String,
    /// The sender in words.
    pub sender: String,
}

/// A script's expectation of the sender at one point.
pub struct Check {
    /// Line of the script.
    pub line: usize,
    /// The event that it follows.
    pub event: String,
    /// Place of the connection in [`Played::connections`].
    pub connection: usize,
    /// Entries of the connection's journal by then.
    pub entries: usize,
    /// Place in the order of all events.
    pub order: u64,
    /// The script's clock.
    pub at_us: u64,
    /// Place in [`Played::looks`] where the check is about a group.
    pub look: Option<usize>,
    /// Data segments delivered, sent and retransmitted by then.
    pub delivered: u32,
    /// Retransmissions included.
    pub sent: u32,
    /// Retransmissions alone.
    pub retransmitted: u32,
    /// The value that is checked.
    pub key: String,
    /// The script's value.
    pub expected: String,
    /// The native sender's value.
    pub found: String,
}

impl Check {
    /// True if the native sender's value is the expected one.
    pub fn holds(&self) -> bool {
        self.found == self.expected
    }
}

/// Runs a script file. Returns the number of checks that held.
pub fn run(path: &Path) -> Result<usize, ScriptError> {
    let played = play(path)?;
    match played.checks.iter().find(|check| !check.holds()) {
        None => Ok(played.checks.len()),
        Some(Check { line, event, key, expected, found, .. }) => {
            let after = played.exchange.iter().rfind(|exchange| exchange.line == *line);
            let sender = after.map_or("", |exchange| &exchange.sender);
            let message = format!("after `{event}`: {key} is {found}, expected {expected} ({sender})");
            Err(ScriptError { path: path.to_owned(), line: *line, message, differs: true })
        }
    }
}

/// Plays a script to its end, even if checks do not hold. A bare file name may be that of a script that
/// ships.
pub fn play(path: &Path) -> Result<Played, ScriptError> {
    let error = |line, message| ScriptError { path: path.to_owned(), line, message, differs: false };
    let shipped = external::scripts().iter().find(|(file, _)| path == Path::new(file) && !path.exists());
    let text = match shipped {
        Some((_, text)) => (*text).to_owned(),
        None => std::fs::read_to_string(path).map_err(|e| error(0, e.to_string()))?,
    };
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let mut script = Script { folder, ..Script::default() };
    for (index, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or_default().trim();
        if !code.is_empty() {
            script.line = index + 1;
            script.perform(code).map_err(|message| error(index + 1, message))?;
        }
    }
    if script.played.checks.is_empty() {
        return Err(error(0, "the script checks nothing".to_owned()));
    }
    script.note_memberships();
    Ok(script.played)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_text(name: &str, text: &str) -> Result<usize, ScriptError> {
        let path = std::env::temp_dir().join(format!("wirepaint-{}-{name}.ack", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let result = run(&path);
        std::fs::remove_file(&path).unwrap();
        result
    }

    #[test]
    fn a_difference_names_line_event_value_and_expectation() {
        let error = run_text("differs", "cc std\nopen\nwrite bulk\nround => cwnd 21\n").unwrap_err();
        assert!(error.differs);
        let message = error.to_string();
        assert!(
            message.contains(":4: after `round`: cwnd is 20, expected 21 (cwnd 20, ssthresh inf"),
            "{message}"
        );
    }

    #[test]
    fn a_line_that_is_no_event_is_refused_with_those_that_exist() {
        let error = run_text("unknown", "cc std\nopen\nexplode 3 => cwnd 1\n").unwrap_err();
        assert!(!error.differs);
        assert!(error.to_string().contains(":3: found event \"explode 3\", accepted: cc, open"), "{error}");
    }

    #[test]
    fn a_parameter_that_does_not_exist_is_refused() {
        let error = run_text("parameter", "cc std std_x=1\nopen => cwnd 10\n").unwrap_err();
        assert!(error.to_string().contains("std has no parameter \"std_x\""), "{error}");
    }

    #[test]
    fn what_only_the_simulator_can_do_is_refused() {
        let error = run_text("simulated", "cc tcpint tcpint_exact=1\nopen => cwnd 10\n").unwrap_err();
        let said = "tcpint_exact: found 1, accepted in the kernel: 0";
        assert!(error.to_string().contains(said), "{error}");
    }

    #[test]
    fn a_script_without_checks_is_refused() {
        let error = run_text("nothing", "cc std\nopen\n").unwrap_err();
        assert!(error.to_string().contains("checks nothing"), "{error}");
    }

    #[test]
    fn losing_what_is_not_in_flight_is_refused() {
        let error = run_text("lose", "cc std\nopen\nwrite 2\nlose 3 => cwnd 10\n").unwrap_err();
        assert!(error.to_string().contains("not in flight"), "{error}");
    }
}
