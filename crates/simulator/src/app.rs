//! What an application is to the engine.

use crate::fabric::EndpointId;
use crate::world::World;
use wirepaint_units::Time;

/// Something that uses connections: a flow, a page visit.
///
/// It acts only when it is called, and only through the [`World`] that it is handed: it connects,
/// reads, writes and closes. What it does takes effect at once, in simulated time and in order.
pub trait App {
    /// When it wants to be woken next; asked after each call. It may be woken earlier.
    fn next(&self) -> Option<Time>;

    /// A time that it asked for has come.
    fn wake(&mut self, world: &mut World);

    /// A segment reached, or a timer went off at, one of its endpoints: there may be something to
    /// read, room to write, or a change of state. Most calls find nothing to do.
    fn activity(&mut self, world: &mut World, endpoint: EndpointId);

    /// Nothing more will come of it. The run ends when this holds of every application.
    fn is_over(&self) -> bool;
}
