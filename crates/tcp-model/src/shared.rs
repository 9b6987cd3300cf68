//! Connections of one host that share a congestion window segment by segment.
//!
//! The congestion control decides the size of the window and its reductions (`cc_room`, `cc_lost` of
//! `congestion/include/cc_native.h`). [`SharedWindows`] coordinates the sockets: it knows which one may send
//! next, and which segments were overtaken by segments of other connections.
//!
//! An endpoint that may not send joins the queue. When the window opens, or when three segments sent after
//! one of its own were acknowledged, [`SharedWindows::next`] names it, and the owner of the endpoints calls
//! [`Endpoint::take_turn`].

use crate::endpoint::{Endpoint, Stage};
use crate::scoreboard::{NONE, Sent, tag};
use crate::timers::Pending;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use wirepaint_congestion_native::CaState;

/// A segment is lost once this many segments sent after it were acknowledged (RFC 5681's three duplicate
/// ACKs).
const LATER_ACKS: usize = 3;

/// The shared windows of a run. See the module.
#[derive(Default)]
pub struct SharedWindows {
    groups: RefCell<Vec<Group>>,
    /// Groups with a member that may have to act.
    stirred: RefCell<Vec<usize>>,
}

/// The members of one window.
#[derive(Default)]
struct Group {
    /// Name of the congestion control's group.
    name: usize,
    /// Segments sent by all members, repeats included.
    transmissions: u32,
    /// The newest acknowledged transmissions, newest first. A segment sent before the last of them has
    /// `LATER_ACKS` later ACKs, so no list of outstanding segments is needed to count them.
    newest: [u32; LATER_ACKS],
    /// Free segments of the window, as the last member reported.
    room: u32,
    /// Members that wait to send, in the order of arrival.
    queue: BTreeMap<u64, u32>,
    tickets: u64,
    /// The member that may send one segment before the others.
    turn: Option<u32>,
    /// Members with duplicate ACKs, by the oldest transmission of each that may be lost.
    suspects: BTreeSet<(u32, u32)>,
    stirred: bool,
}

impl SharedWindows {
    /// No windows.
    pub fn new() -> Rc<SharedWindows> {
        Rc::default()
    }

    /// The endpoint that must act now, by its id in [`Peer`](crate::Peer): call its
    /// [`take_turn`](Endpoint::take_turn), then ask again. Ask after each call of an endpoint.
    pub fn next(&self) -> Option<u32> {
        loop {
            let index = *self.stirred.borrow().last()?;
            let group = &mut self.groups.borrow_mut()[index];
            if let Some(id) = group.overtaken().or_else(|| group.serve()) {
                return Some(id);
            }
            group.stirred = false;
            self.stirred.borrow_mut().pop();
        }
    }

    fn join(self: &Rc<Self>, name: usize, id: u32, transmissions: u32) -> Member {
        let mut groups = self.groups.borrow_mut();
        let index = groups.iter().position(|group| group.name == name).unwrap_or_else(|| {
            groups.push(Group { name, ..Group::default() });
            groups.len() - 1
        });
        // A connection that changed its congestion control has sent already, so its order continues.
        groups[index].transmissions = groups[index].transmissions.max(transmissions);
        let (ticket, suspect, found) = Default::default();
        Member { windows: self.clone(), index, id, ticket, suspect, found }
    }
}

impl Group {
    /// All transmissions before this one have enough later ACKs.
    fn overtaken_before(&self) -> u32 {
        self.newest[LATER_ACKS - 1]
    }

    /// A member may find a loss, which reduces the window, before anything is sent.
    fn has_overtaken(&self) -> bool {
        self.suspects.first().is_some_and(|&(order, _)| order < self.overtaken_before())
    }

    /// Takes such a member.
    fn overtaken(&mut self) -> Option<u32> {
        if self.has_overtaken() { self.suspects.pop_first().map(|(_, id)| id) } else { None }
    }

    /// The member whose turn it is.
    fn serve(&mut self) -> Option<u32> {
        if self.room == 0 {
            return None;
        }
        self.turn = self.queue.pop_first().map(|(_, id)| id);
        self.turn
    }
}

/// An endpoint's part in its shared window.
pub(crate) struct Member {
    windows: Rc<SharedWindows>,
    index: usize,
    id: u32,
    /// The last place in the queue; 0 before the first.
    ticket: Cell<u64>,
    suspect: Cell<Option<u32>>,
    /// A loss has just been found.
    found: Cell<bool>,
}

impl Member {
    fn group<T>(&self, work: impl FnOnce(&mut Group) -> T) -> T {
        work(&mut self.windows.groups.borrow_mut()[self.index])
    }

    /// A member may have to act.
    fn stir(&self, group: &mut Group) {
        if !std::mem::replace(&mut group.stirred, true) {
            self.windows.stirred.borrow_mut().push(self.index);
        }
    }

    /// A segment leaves. Returns its order among all members' transmissions.
    pub fn stamp(&self) -> u32 {
        self.group(|group| {
            group.transmissions += 1;
            group.transmissions
        })
    }

    /// A transmission was acknowledged.
    pub fn delivered(&self, order: u32) {
        self.group(|group| {
            let place = group.newest.partition_point(|&newer| newer > order);
            if place < LATER_ACKS {
                group.newest[place..].rotate_right(1);
                group.newest[place] = order;
                self.stir(group);
            }
        });
    }

    pub fn overtaken_before(&self) -> u32 {
        self.group(|group| group.overtaken_before())
    }

    pub fn set_room(&self, room: u32) {
        self.group(|group| {
            group.room = room;
            self.stir(group);
        });
    }

    /// Segments that this member may send now: one in its turn, all if no other member waits.
    pub fn quota(&self) -> u32 {
        self.group(|group| match group.turn {
            Some(id) if id == self.id => group.room.min(1),
            _ if group.has_overtaken() => 0,
            _ if group.queue.values().all(|&id| id == self.id) => group.room,
            _ => 0,
        })
    }

    /// Waits for a turn, at its old place if it did not use its last turn.
    pub fn wait(&self) {
        self.group(|group| {
            let ticket = self.ticket.get();
            if group.queue.contains_key(&ticket) {
                return;
            }
            if group.turn.take_if(|id| *id == self.id).is_none() {
                group.tickets += 1;
                self.ticket.set(group.tickets);
            }
            group.queue.insert(self.ticket.get(), self.id);
            self.stir(group);
        });
    }

    /// A segment was found lost.
    pub fn note_loss(&self) {
        self.found.set(true);
    }

    /// The turn is over.
    pub fn end_turn(&self) {
        self.group(|group| group.turn = group.turn.filter(|&id| id != self.id));
    }

    /// The oldest transmission that later ACKs may prove lost, for a member with duplicate ACKs.
    fn set_suspect(&self, order: Option<u32>) {
        let before = self.suspect.replace(order);
        if before.is_none() && order.is_none() {
            return;
        }
        self.group(|group| {
            if let Some(before) = before {
                group.suspects.remove(&(before, self.id));
            }
            if let Some(order) = order {
                group.suspects.insert((order, self.id));
                self.stir(group);
            }
        });
    }
}

/// The member leaves. Its segments in flight become room that the next report finds.
impl Drop for Member {
    fn drop(&mut self) {
        self.set_suspect(None);
        self.end_turn();
        self.group(|group| {
            group.queue.remove(&self.ticket.get());
            group.room = u32::MAX;
            self.stir(group);
        });
    }
}

/// It lies below a SACK and does not already wait for retransmission.
fn may_be_lost(sent: &Sent, highest_sack: u64) -> bool {
    sent.seq < highest_sack && (!sent.has(tag::LOST) || sent.has(tag::RETRANSMITTED))
}

impl Endpoint {
    /// After `init` and `release` of the congestion control: joins its shared window, and leaves any other.
    pub(crate) fn join_shared_window(&mut self) {
        self.shared = None;
        if let Some(name) = self.cc.shared_window() {
            let (windows, id) = self.windows.get_or_insert_with(|| (SharedWindows::new(), 0));
            self.shared = Some(windows.join(name, *id, self.transmissions));
            self.report_flight();
        }
    }

    /// [`SharedWindows::next`] has named this endpoint.
    pub fn take_turn(&mut self, now: wirepaint_units::Time) {
        self.refresh(now);
        if self.stage == Stage::Established && self.shared.is_some() {
            let lost = self.cc.tp.lost;
            self.detect_overtaken();
            if self.cc.tp.lost != lost && self.ca_state() < CaState::Recovery {
                self.enter_recovery(false);
            }
            if self.cc.tp.lost_out > self.cc.tp.retrans_out {
                self.retransmit_lost();
            }
            if self.ca_state() >= CaState::Recovery && self.timers.pending == Pending::Probe {
                self.rearm_rto();
            }
            let before = self.cc.tp.in_flight();
            self.push_pending();
            self.make_space(before);
        }
        if let Some(member) = &self.shared {
            member.end_turn();
        }
        self.settle_shared();
    }

    /// Segments that the congestion window still takes.
    pub(crate) fn free_window(&self) -> u32 {
        match &self.shared {
            None => self.cc.tp.snd_cwnd.saturating_sub(self.cc.tp.in_flight()),
            Some(member) => member.quota(),
        }
    }

    /// The flight size or the window may have changed.
    pub(crate) fn report_flight(&mut self) {
        if let Some(member) = &self.shared {
            member.set_room(self.cc.cc_room());
        }
    }

    /// Segments have left.
    pub(crate) fn report_sent(&mut self) {
        if let Some(member) = &self.shared {
            member.end_turn();
            member.set_room(self.cc.cc_room());
        }
    }

    /// The first retransmission of an episode replaces the segment that was just found lost, as under PRR.
    /// The halved window may stay full for long.
    pub(crate) fn repairs_at_once(&self) -> bool {
        let found = self.shared.as_ref().is_some_and(|member| member.found.get());
        found && self.in_reduction() && self.prr.out == 0
    }

    /// The window has no room for this connection's data. False if it shares no window.
    pub(crate) fn wait_for_turn(&self) -> bool {
        let waits = self.shared.as_ref().filter(|member| member.quota() == 0);
        waits.inspect(|member| member.wait()).is_some()
    }

    /// Ends each call of a connection that shares a window.
    pub(crate) fn settle_shared(&mut self) {
        if self.shared.is_some() {
            self.report_flight();
            let suspect = self.oldest_suspect();
            if let Some(member) = &self.shared {
                member.set_suspect(suspect);
                member.found.set(false);
            }
        }
    }

    /// Marks segments lost that have a SACK beyond them on their own connection, and enough later ACKs.
    pub(crate) fn detect_overtaken(&mut self) {
        let Some(member) = &self.shared else { return };
        let (before, highest) = (member.overtaken_before(), self.highest_sack_seq());
        let mut id = self.board.oldest();
        while id != NONE && self.board.get(id).order < before {
            let newer = self.board.newer(id);
            if may_be_lost(self.board.get(id), highest) {
                self.mark_lost(id);
            }
            id = newer;
        }
    }

    /// The oldest transmission that may be lost now or after more ACKs.
    fn oldest_suspect(&self) -> Option<u32> {
        let member = self.shared.as_ref()?;
        if self.cc.tp.sacked_out == 0 || !self.agreed.sack {
            return None;
        }
        let (before, highest) = (member.overtaken_before(), self.highest_sack_seq());
        let mut id = self.board.oldest();
        while id != NONE {
            let sent = self.board.get(id);
            if sent.order >= before || may_be_lost(sent, highest) {
                return Some(sent.order);
            }
            id = self.board.newer(id);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members<const N: usize>() -> (Rc<SharedWindows>, [Member; N]) {
        let windows = SharedWindows::new();
        let members = std::array::from_fn(|id| windows.join(1, id as u32, 0));
        (windows, members)
    }

    #[test]
    fn three_newest_acks_tell_of_every_segment_whether_it_has_three_later_ones() {
        let (_windows, [first, second]) = members();
        // Outstanding segments, each with its later ACKs counted one by one.
        let mut outstanding: Vec<(u32, usize)> = Vec::new();
        let mut draw = 1_u64;
        for _ in 0..5_000 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let member = if draw >> 63 == 0 { &first } else { &second };
            if outstanding.len() < 2 || draw >> 61 & 1 == 0 && outstanding.len() < 40 {
                outstanding.push((member.stamp(), 0));
            } else {
                let (acked, _) = outstanding.remove((draw >> 33) as usize % outstanding.len());
                member.delivered(acked);
                outstanding.iter_mut().filter(|(order, _)| *order < acked).for_each(|(_, later)| *later += 1);
            }
            for &(order, later) in &outstanding {
                assert_eq!(order < first.overtaken_before(), later >= LATER_ACKS);
            }
        }
    }

    #[test]
    fn members_take_turns_of_a_segment_each() {
        let (windows, [a, b, c]) = members();
        a.set_room(0);
        [&b, &c].iter().for_each(|member| member.wait());
        assert_eq!(windows.next(), None, "there is no room");
        a.set_room(2);
        assert_eq!(a.quota(), 0, "others wait");
        a.wait();
        assert_eq!((windows.next(), b.quota(), c.quota()), (Some(1), 1, 0));
        b.end_turn();
        b.set_room(1);
        b.wait();
        assert_eq!(windows.next(), Some(2));
        // It finds the window full and keeps its place.
        c.set_room(0);
        c.wait();
        c.end_turn();
        assert_eq!(windows.next(), None);
        drop(a);
        assert_eq!(windows.next(), Some(2), "a member has left: the next one looks");
    }

    #[test]
    fn one_that_waits_alone_has_all_the_room() {
        let (_windows, [a, b]) = members();
        a.set_room(5);
        a.wait();
        assert_eq!((a.quota(), b.quota()), (5, 0));
    }
}
