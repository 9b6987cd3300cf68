//! The engine's interface to an application.

use crate::fabric::EndpointId;
use crate::post::{AppId, Post};
use crate::world::World;
use wirepaint_units::Time;

/// Something that uses connections: a flow, a page visit, a proxy.
///
/// It acts only when it is called, and only through the [`World`] that it is given: it connects, reads,
/// writes and closes. Each act takes effect at once in simulated time, in order.
pub trait App {
    /// When it wants to be woken next. The engine asks after each call and may wake it earlier.
    fn next(&self) -> Option<Time>;

    /// A time that it asked for is reached.
    fn wake(&mut self, world: &mut World);

    /// A segment reached one of its endpoints, or a timer fired there. There may be data to read, room to
    /// write, or a change of state. Most calls find nothing to do.
    fn activity(&mut self, world: &mut World, endpoint: EndpointId);

    /// Another application tells it something.
    fn told(&mut self, _world: &mut World, from: AppId, post: Post) {
        unreachable!("nobody tells it {post:?}, and {from} does")
    }

    /// True when it has ended. The run ends when all applications have.
    fn is_over(&self) -> bool;
}
