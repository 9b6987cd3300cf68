//! Flows: applications that write and read over one connection without a browser.

use crate::app::App;
use crate::fabric::EndpointId;
use crate::world::{ConnectionId, Dial, World, client_end, server_end};
use wirepaint_flow_model::{End, Ends, Message, Transfer};
use wirepaint_run::{Flow as Asked, Side};
use wirepaint_units::{BitRate, Time};

/// A flow during a run.
pub struct Flow {
    dial: Dial,
    transfer: Transfer,
    name: String,
    /// It waits for the end of another flow.
    waits: bool,
    background: bool,
    /// The sender's and the receiver's endpoint, once it is connected.
    ends: Option<(EndpointId, EndpointId)>,
}

impl Flow {
    /// The flow of a checked description, over `dial`.
    pub fn new(asked: &Asked, dial: Dial) -> Flow {
        let mut transfer = Transfer::new(&asked.kind, asked.start_ns, asked.stop_ns);
        let waits = asked.after.is_some();
        if !waits {
            transfer.begin(Time::ZERO);
        }
        Flow { dial, transfer, name: asked.name.clone(), waits, background: asked.background, ends: None }
    }

    /// The flow that it waited for has ended.
    pub fn begin(&mut self, now: Time) {
        self.waits = false;
        self.transfer.begin(now);
    }

    /// Messages that are complete, in order.
    pub fn messages(&self) -> &[Message] {
        self.transfer.messages()
    }

    /// Its name in the description.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The run does not wait for its end.
    pub fn is_background(&self) -> bool {
        self.background
    }

    /// Which side sends.
    pub fn sender(&self) -> Side {
        self.dial.sender
    }

    /// Its state.
    pub fn state(&self) -> FlowState {
        FlowState {
            connection: self.ends.map(|(sender, _)| sender / 2),
            started: (!self.waits).then(|| self.transfer.start()),
            ended: self.transfer.ended(),
            rate: self.transfer.rate(),
            received: self.transfer.received(),
        }
    }

    /// The sender's endpoint, once there is one.
    pub fn sending_end(&self) -> Option<EndpointId> {
        self.ends.map(|(sender, _)| sender)
    }

    fn progress(&mut self, world: &mut World) {
        let (sender, receiver) = self.ends.expect("connected");
        self.transfer.progress(world.now, &mut Connection { world, sender, receiver });
    }
}

/// The endpoints of a flow's connection.
struct Connection<'a> {
    world: &'a mut World,
    sender: EndpointId,
    receiver: EndpointId,
}

impl Ends for Connection<'_> {
    /// After a write that found no room it waits for poll().
    fn write(&mut self, end: End, bytes: u64) -> u64 {
        let endpoint = if end == End::Sender { self.sender } else { self.receiver };
        let mut pending = bytes;
        let writable = |tcp: &wirepaint_tcp_model::Endpoint| tcp.is_established() && !tcp.waits_for_space();
        while pending > 0 && writable(self.world.tcp(endpoint)) {
            let taken = self.world.write(endpoint, pending);
            if taken == 0 {
                break;
            }
            pending -= taken;
        }
        bytes - pending
    }

    fn close(&mut self) -> bool {
        let established = self.world.tcp(self.sender).is_established();
        if established {
            self.world.close(self.sender);
        }
        established
    }
}

impl App for Flow {
    fn next(&self) -> Option<Time> {
        if self.ends.is_none() {
            return (!self.waits).then(|| self.transfer.start());
        }
        self.transfer.next()
    }

    fn wake(&mut self, world: &mut World) {
        if self.ends.is_none() {
            if self.waits || world.now < self.transfer.start() {
                return;
            }
            let connection = world.connect(self.dial.clone());
            let (client, server) = (client_end(connection), server_end(connection));
            self.ends = Some(match self.dial.sender {
                Side::Server => (server, client),
                Side::Client => (client, server),
            });
        }
        self.progress(world);
    }

    fn activity(&mut self, world: &mut World, endpoint: EndpointId) {
        let (_, receiver) = self.ends.expect("a connection that acts is open");
        let bytes = world.read(endpoint, u64::MAX);
        let end = if endpoint == receiver { End::Receiver } else { End::Sender };
        self.transfer.read(world.now, end, bytes);
        self.progress(world);
    }

    fn is_over(&self) -> bool {
        self.transfer.ended().is_some()
    }
}

/// The state of a flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowState {
    /// Its connection, once there is one.
    pub connection: Option<ConnectionId>,
    /// When it connects; `None` while it waits for another flow.
    pub started: Option<Time>,
    /// When its last byte was received, once nothing more will be written.
    pub ended: Option<Time>,
    /// Present rate of writing.
    pub rate: Option<BitRate>,
    /// Payload bytes received.
    pub received: u64,
}
