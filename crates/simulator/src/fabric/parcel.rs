//! A packet on the links, in two words.

use super::{EndpointId, RouteId};
use wirepaint_link_model::Packet;
use wirepaint_link_model::config::Counted;

/// The fields of a packet that links use.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    /// Length of the IP packet.
    pub ip_bytes: u16,
    /// May be marked instead of dropped.
    pub ecn_capable: bool,
    /// How a link's script counts it.
    pub counted: Option<Counted>,
    /// DSCP.
    pub dscp: u8,
}

/// A packet as the links see it. Two words, because moving it is much of a hop's cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parcel {
    /// Slot of the body, and above it the endpoint.
    place: u64,
    /// IP bytes 0 to 15, route 16 to 39, hop 40 to 47, code point 48 to 55, then [`ECN_CAPABLE`] and so on.
    label: u64,
}

const ROUTE: u32 = 16;
pub(super) const ROUTES: u64 = 1 << 24;
const HOP: u32 = 40;
const DSCP: u32 = 48;
const ECN_CAPABLE: u64 = 1 << 56;
const MARKED: u64 = 1 << 57;
const DATA: u64 = 1 << 58;
const BARE: u64 = 1 << 59;

impl Parcel {
    pub(super) fn new(slot: u32, to: EndpointId, route: RouteId, envelope: Envelope) -> Parcel {
        let counted = match envelope.counted {
            Some(Counted::Data) => DATA,
            Some(Counted::Bare) => BARE,
            None => 0,
        };
        Parcel {
            place: u64::from(slot) | u64::from(to) << 32,
            label: u64::from(envelope.ip_bytes)
                | u64::from(route) << ROUTE
                | u64::from(envelope.dscp) << DSCP
                | if envelope.ecn_capable { ECN_CAPABLE } else { 0 }
                | counted,
        }
    }

    /// Slot of its body.
    pub(super) fn slot(&self) -> u32 {
        self.place as u32
    }

    /// For whom.
    pub(super) fn to(&self) -> EndpointId {
        (self.place >> 32) as EndpointId
    }

    /// Its route, and the index of its link on it.
    pub(super) fn stage(&self) -> (usize, usize) {
        ((self.label >> ROUTE & (ROUTES - 1)) as usize, usize::from((self.label >> HOP) as u8))
    }

    pub(super) fn take_hop(&mut self) {
        self.label += 1 << HOP;
    }

    /// The same packet with no bytes.
    pub(super) fn emptied(&self) -> Parcel {
        Parcel { label: self.label >> ROUTE << ROUTE, ..*self }
    }

    pub(super) fn is_marked(&self) -> bool {
        self.label & MARKED != 0
    }
}

impl Packet for Parcel {
    fn ip_bytes(&self) -> u32 {
        u32::from(self.label as u16)
    }
    fn is_ecn_capable(&self) -> bool {
        self.label & ECN_CAPABLE != 0
    }
    fn mark_congestion(&mut self) {
        self.label |= MARKED;
    }
    fn flow(&self) -> u64 {
        u64::from(self.to())
    }
    fn dscp(&self) -> u8 {
        (self.label >> DSCP) as u8
    }
    fn counted_as(&self) -> Option<Counted> {
        match self.label & (DATA | BARE) {
            0 => None,
            DATA => Some(Counted::Data),
            _ => Some(Counted::Bare),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parcel_keeps_what_it_was_given() {
        let kinds = [None, Some(Counted::Data), Some(Counted::Bare)];
        for (most, counted) in [false, true].into_iter().flat_map(|most| kinds.map(|kind| (most, kind))) {
            let of = |value: u32| if most { value } else { 0 };
            let (ip_bytes, dscp) = (of(0xffff) as u16, of(63) as u8);
            let envelope = Envelope { ip_bytes, ecn_capable: most, counted, dscp };
            let mut parcel = Parcel::new(of(u32::MAX), of(u32::MAX), of(ROUTES as u32 - 1), envelope);
            (0..of(255)).for_each(|_| parcel.take_hop());
            for marked in [false, true] {
                let place = (parcel.slot(), parcel.to(), parcel.stage());
                assert_eq!(
                    place,
                    (of(u32::MAX), of(u32::MAX), (of(ROUTES as u32 - 1) as usize, of(255) as usize))
                );
                let seen = (parcel.ip_bytes(), parcel.is_ecn_capable(), parcel.counted_as(), parcel.dscp());
                assert_eq!(seen, (u32::from(ip_bytes), most, counted, dscp));
                assert_eq!((parcel.is_marked(), parcel.emptied().ip_bytes()), (marked, 0));
                parcel.mark_congestion();
            }
        }
    }
}
