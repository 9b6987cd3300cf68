//! An answer and its turns.

use wirepaint_http_model::Priority;

/// Most bytes of a grant while one user of a class has something to send: the payload of a large TLS record.
pub const LARGE_FRAME: u64 = 16_384;
/// Most bytes of a grant with `fair` while users take turns, about a TCP segment. Users whose answers have ten
/// kilobytes end their turns within a tenth of an answer of each other.
pub const SMALL_FRAME: u64 = 1_400;

/// What a grant takes of the link beside its bytes: the header of a frame, and for each segment of 1,448 bytes the
/// headers of TCP with timestamps, IP and Ethernet.
pub(crate) fn wire_bytes(bytes: u64) -> u64 {
    const FRAME: u64 = 14;
    (bytes + FRAME) * 1_514 / 1_448
}

/// Who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The browser asked for it.
    Asked(Priority),
    /// Nobody asked yet: it is sent ahead.
    Ahead,
}

/// A turn: the caller sends so many bytes of the answer on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// A connection that had room.
    pub connection: usize,
    /// An answer that was [added](crate::Scheduler::add).
    pub answer: u32,
    /// Bytes of it; 0 only if `last` comes after all bytes are gone.
    pub bytes: u64,
    /// Nothing of the answer follows; the scheduler has forgotten it.
    pub last: bool,
}

/// What is known of an answer in any order.
pub(crate) struct Answer {
    pub class: usize,
    pub user: u32,
    /// Bytes that can be sent now.
    pub ready: u64,
    /// No more bytes come.
    pub finished: bool,
}

impl Answer {
    pub fn is_sendable(&self) -> bool {
        self.ready > 0 || self.finished
    }

    /// Takes at most `most` bytes; true if nothing is left.
    pub fn take(&mut self, most: u64) -> (u64, bool) {
        let bytes = self.ready.min(most);
        self.ready -= bytes;
        (bytes, self.finished && self.ready == 0)
    }
}
