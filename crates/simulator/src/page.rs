//! Page visits: the page model over TCP endpoints.

use crate::app::App;
use crate::fabric::EndpointId;
use crate::post::{Post, Request};
use crate::relay::{Chain, Ends, Legs, Relaying};
use crate::squid;
use crate::world::{AppId, ConnectionId, World};
use std::net::SocketAddrV4;
use wirepaint_page_model::{
    Action, Backlog, Browser, EndsAtProxy, Page, Prepared, Rows, Visit, unsent_bound,
};
use wirepaint_run::Visit as Asked;
use wirepaint_units::{Duration, Time};

pub mod rows;

/// A page visit during a run.
pub struct Load {
    app: AppId,
    user_agent: String,
    name: String,
    visit: Visit,
    prepared: Prepared,
    /// The ways of its connections.
    legs: Legs,
    /// Counted from the load event of the visit that it waits for, if any.
    start: Time,
    /// Counted from `start`.
    timeout: Duration,
    stage: Stage,
    /// Indexed by the visit's number.
    connections: Vec<Carried>,
    /// All hops of its connections, each with the visit's number, in ascending order.
    hops: Vec<(ConnectionId, u32)>,
    relaying: Relaying,
    /// By resource: who made the answer that a proxy gave.
    served_by: Vec<Option<&'static str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Another visit has to end first.
    After,
    Waiting,
    Loading,
    Done,
    /// The deadline passed first.
    ///
    /// DEVIATION: the connections stay open, and what the sockets at their far end hold still crosses the path;
    /// relays behind them stop. A browser that exits resets them; here no endpoint sends a reset.
    GivenUp,
}

struct Carried {
    chain: Chain,
    /// The page model knows that it is established.
    connected: bool,
    /// The browser has closed it and reads no more. DEVIATION: its kernel acknowledges data that still
    /// arrive; Linux sends a reset.
    closed: bool,
    /// Bytes that wait for room in the send buffers of client and server.
    pending: [u64; 2],
    /// Bytes reported to the browser and not read.
    unread: u64,
    backlog: Option<Backlog>,
}

impl Load {
    /// The visit of a description. [`Page::check`] and [`Browser::check`] must have accepted page and browser.
    pub fn new(
        app: AppId,
        asked: &Asked,
        prepared: Prepared,
        browser: Browser,
        seed: u64,
        legs: Legs,
    ) -> Load {
        let mut visit = Visit::new(&prepared, browser, seed);
        let [encrypted, plain] = [&legs.encrypted, &legs.plain].map(|leg| match leg.ends {
            Ends::AtServers => None,
            Ends::AtProxy { is_asked, .. } => Some(if is_asked { squid::HEAD_BYTES } else { 0 }),
        });
        visit.end_at_proxy(EndsAtProxy { encrypted, plain });
        Load {
            app,
            served_by: vec![None; prepared.page().resources.len()],
            user_agent: asked.user_agent.clone(),
            name: asked.name.clone(),
            visit,
            prepared,
            legs,
            start: asked.start_ns,
            timeout: asked.timeout_ns,
            stage: if asked.after.is_some() { Stage::After } else { Stage::Waiting },
            connections: Vec::new(),
            hops: Vec::new(),
            relaying: Relaying::default(),
        }
    }

    /// The visit that it waited for has ended; its load event was at `loaded`.
    pub fn begin(&mut self, now: Time, loaded: Time) {
        self.start = now.max(loaded + Duration(self.start.0));
        self.stage = Stage::Waiting;
    }

    /// When the load event fired.
    pub fn load_event(&self) -> Option<Time> {
        self.visit.load_event()
    }

    fn deadline(&self) -> Time {
        self.start + self.timeout
    }

    /// The page.
    pub fn page(&self) -> &Page {
        self.prepared.page()
    }

    /// The rows so far. Connections have the visit's numbers.
    pub fn rows(&self) -> Rows {
        self.visit.rows()
    }

    /// The world's id of a connection of the visit.
    pub fn connection(&self, number: u32) -> ConnectionId {
        self.connections[number as usize].chain.hops()[0]
    }

    /// Who made the answer of a resource.
    pub(crate) fn served_by(&self, resource: u32) -> &'static str {
        self.served_by[resource as usize].unwrap_or("origin")
    }

    /// The open hops of a connection.
    #[cfg(test)]
    pub(crate) fn hops(&self, number: u32) -> &[ConnectionId] {
        self.connections[number as usize].chain.hops()
    }

    /// Bytes that the browser sent and received on a connection before its server could.
    pub(crate) fn tunnel_bytes(&self, number: u32) -> (u64, u64) {
        self.connections[number as usize].chain.tunnel_bytes()
    }

    /// True when the deadline passed before the page was loaded and every request answered.
    pub fn gave_up(&self) -> bool {
        self.stage == Stage::GivenUp
    }

    /// The browser exits: both sides close its connections. A visit that gave up leaves them open; see
    /// [`Stage::GivenUp`].
    pub fn leave(&mut self, world: &mut World) {
        if self.stage != Stage::Done {
            return;
        }
        for carried in &mut self.connections {
            carried.closed = true;
            carried.chain.close(world);
        }
    }

    /// Carries out the page model's actions until there are none.
    fn act(&mut self, world: &mut World) {
        while let Some(action) = self.visit.poll() {
            match action {
                Action::Connect { connection, origin } => {
                    debug_assert_eq!(connection as usize, self.connections.len());
                    let origin = &self.prepared.page().origins[origin as usize];
                    let leg = self.legs.of(origin.encrypted);
                    let place = SocketAddrV4::new(origin.address, origin.port);
                    let chain = Chain::open(leg, place, &origin.host, world);
                    self.hops.push((chain.hops()[0], connection));
                    let carried = Carried {
                        chain,
                        connected: false,
                        closed: false,
                        pending: [0; 2],
                        unread: 0,
                        backlog: None,
                    };
                    self.connections.push(carried);
                }
                Action::ClientRead { connection, bytes, .. } => {
                    let carried = &mut self.connections[connection as usize];
                    carried.unread -= bytes;
                    world.read(carried.chain.client(), bytes);
                }
                Action::ClientWrite { connection, bytes, .. } => self.write(world, connection, false, bytes),
                Action::ServerWrite { connection, bytes, .. } => self.write(world, connection, true, bytes),
                Action::ServerWaits { connection } => {
                    world.wait_for_space(self.server(connection));
                }
                Action::Close { connection } => {
                    let carried = &mut self.connections[connection as usize];
                    carried.closed = true;
                    // Otherwise the FIN tells the other side. DEVIATION: during the handshake the other side
                    // learns it at once, since no endpoint sends a reset.
                    let client = carried.chain.client();
                    if !world.tcp(client).is_established() {
                        world.close(client ^ 1);
                    }
                    world.close(client);
                }
                Action::Ask { request, priority } => {
                    let page = self.prepared.page();
                    let origin = &page.origins[page.resources[request as usize].origin as usize];
                    if let Ends::AtProxy { app, .. } = self.legs.of(origin.encrypted).ends {
                        let request = Request { visit: self.app, resource: request };
                        world.post(self.app, app, Post::Ask { request, priority });
                    }
                }
                Action::Done => self.stage = Stage::Done,
            }
        }
    }

    /// The endpoint of a connection's HTTP server.
    fn server(&self, number: u32) -> EndpointId {
        let server = self.connections[number as usize].chain.server();
        server.expect("a server that acts was reached")
    }

    fn write(&mut self, world: &mut World, number: u32, server: bool, bytes: u64) {
        let endpoint =
            if server { self.server(number) } else { self.connections[number as usize].chain.client() };
        let carried = &mut self.connections[number as usize];
        let pending = &mut carried.pending[usize::from(server)];
        *pending += bytes;
        while *pending > 0 {
            match world.write(endpoint, *pending) {
                0 => break,
                taken => *pending -= taken,
            }
        }
        if server {
            // The page model has counted these bytes as taken, so the next report is always new to it.
            carried.backlog = None;
            self.tell_backlog(world, number);
        }
    }

    /// Reports to the page model how much the server's kernel takes, when that has changed.
    fn tell_backlog(&mut self, world: &mut World, number: u32) {
        let endpoint = self.server(number);
        let carried = &mut self.connections[number as usize];
        if self.visit.is_multiplexed(number) {
            let sock = world.tcp(endpoint).sock();
            let window = u64::from(sock.snd_cwnd) * u64::from(sock.mss_cache);
            world.bound_unsent(endpoint, unsent_bound(window));
            // Linux checks again whether the socket is writable when the bound is set.
            if !world.tcp(endpoint).is_writable() {
                world.wait_for_space(endpoint);
            }
        }
        let (tcp, idle) = (world.tcp(endpoint), carried.pending[1] == 0);
        let room = if idle { tcp.writable() } else { 0 };
        let backlog = Backlog { room, is_writable: idle && tcp.is_writable() };
        if carried.backlog != Some(backlog) {
            carried.backlog = Some(backlog);
            self.visit.server_acknowledged(world.now, number, backlog);
        }
    }

    /// Something happened at the client's or server's endpoint of a connection.
    fn at_end(&mut self, world: &mut World, number: u32, endpoint: EndpointId, server: bool) {
        let at = number as usize;
        if self.connections[at].pending[usize::from(server)] > 0 && world.tcp(endpoint).is_writable() {
            self.write(world, number, server, 0);
        }
        if !server {
            let carried = &mut self.connections[at];
            if !carried.connected {
                carried.connected = carried.chain.is_open(world);
                if !carried.connected {
                    return;
                }
                self.visit.connected(world.now, number);
            }
            let bytes = world.tcp(endpoint).readable() - carried.unread;
            if bytes > 0 && !carried.closed {
                carried.unread += bytes;
                self.visit.client_received(world.now, number, bytes);
            }
        } else {
            let bytes = world.read(endpoint, u64::MAX);
            if bytes > 0 {
                self.visit.server_received(world.now, number, bytes);
            }
            self.tell_backlog(world, number);
            if world.tcp(endpoint).is_finished() {
                world.close(endpoint);
            }
        }
    }
}

impl App for Load {
    fn next(&self) -> Option<Time> {
        match self.stage {
            Stage::Waiting => Some(self.start),
            Stage::Loading => {
                let due = [self.visit.next_timeout(), self.relaying.next(), Some(self.deadline())];
                due.into_iter().flatten().min()
            }
            Stage::After | Stage::Done | Stage::GivenUp => None,
        }
    }

    fn wake(&mut self, world: &mut World) {
        if self.stage == Stage::Waiting {
            if world.now < self.start {
                return;
            }
            self.stage = Stage::Loading;
            self.visit.start(world.now);
        }
        for number in self.relaying.take() {
            if let Some(hop) = self.connections[number as usize].chain.relay(world) {
                self.hops.push((hop, number));
            }
        }
        self.visit.timeout(world.now);
        self.act(world);
        if self.stage == Stage::Loading && world.now >= self.deadline() {
            self.stage = Stage::GivenUp;
        }
    }

    fn activity(&mut self, world: &mut World, endpoint: EndpointId) {
        let id = endpoint / 2;
        let Ok(place) = self.hops.binary_search_by_key(&id, |(hop, _)| *hop) else { return };
        let number = self.hops[place].1;
        let chain = &mut self.connections[number as usize].chain;
        if chain.has_relays() {
            self.relaying.add(world.now, number);
        }
        let server = chain.server() == Some(endpoint);
        if server || endpoint == chain.client() {
            self.at_end(world, number, endpoint, server);
        }
        self.act(world);
    }

    fn told(&mut self, world: &mut World, _from: AppId, post: Post) {
        if let Post::Answer { request, bytes, served_by } = post {
            self.served_by[request.resource as usize] = Some(served_by);
            self.visit.supplied(world.now, request.resource, bytes);
            self.act(world);
        }
    }

    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Done | Stage::GivenUp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::error::Error;
    use crate::world::server_end;
    use serde_json::json;
    use std::path::Path;
    use wirepaint_page_model::catalogue::chromium;
    use wirepaint_run::Run;
    use wirepaint_units::Duration;

    const DELAY: Duration = Duration::from_millis(50);

    /// A run of one visit: a document, and six images from another host.
    fn engine(browser: &Browser, timeout_ns: u64, until_ns: Time) -> Result<Engine, Error> {
        let origin = |host: &str, number: u8| json!({"host": host, "address": format!("10.65.0.{number}"), "port": 443, "encrypted": true});
        let resource = |number: u64, origin: u32, kind: &str, cause: serde_json::Value| {
            json!({"url": format!("https://{origin}.test/{number}"), "origin": origin, "status": 200, "type": kind,
                   "wire_bytes": 5_000, "decoded_bytes": 5_000, "cause": cause})
        };
        let element =
            |number: u64| json!({"kind": "markup", "by": 0, "at": 100 + number, "element": "image"});
        let mut resources = vec![resource(0, 0, "html", serde_json::Value::Null)];
        resources.extend((1..=6).map(|number| resource(number, 1, "image", element(number))));
        let page = json!({"origins": [origin("0.test", 1), origin("1.test", 2)], "resources": resources});
        let visit = json!({"user_agent": "desktop", "name": "page", "timeout_ns": timeout_ns, "page": "page",
                           "browser": "chromium"});
        let direction = json!({"capacity": {"kind": "rate", "bit_per_s": 10_000_000}, "delay_ns": DELAY,
                               "queue": {"kind": "droptail", "packets": 100}});
        let run = json!({
            "format": 5, "id": "t", "seed": 3, "trace_dir": "", "work_dir": "",
            "hosts": [{"name": "client", "role": "client", "congestion": "std"},
                      {"name": "server", "role": "server", "congestion": "std"}],
            "segments": [{"name": "access", "down": direction, "up": direction}],
            "congestion": [{"algorithm": "std", "name": "std"}],
            "browsers": {"chromium": browser}, "pages": {"page": page}, "visits": [visit], "until_ns": until_ns,
        });
        let place = Path::new("run.json");
        let run = Run::parse(run.to_string().as_bytes(), place).unwrap();
        Engine::new(&run, place)
    }

    fn run(browser: &Browser, timeout_ns: u64, until_ns: Time) -> Engine {
        let mut engine = engine(browser, timeout_ns, until_ns).unwrap();
        engine.run();
        engine
    }

    fn load(engine: &Engine) -> &Load {
        engine.apps[0].load().unwrap()
    }

    #[test]
    fn a_browser_that_no_visit_can_have_is_refused_by_key() {
        let mut browser = chromium();
        browser.compute.cores = 0;
        let refusal = engine(&browser, 1, Time(1)).err().unwrap().to_string();
        assert_eq!(refusal, "run.json: browsers.chromium.compute.cores: found 0, accepted: 1 to 255");
    }

    #[test]
    fn a_server_learns_from_the_fin_that_its_connection_is_closed() {
        const LONG: u64 = 60_000_000_000;
        let whole = run(&chromium(), LONG, Time(LONG));
        let connections = load(&whole).rows().connections;
        let spare = connections.iter().find(|connection| connection.closed.is_some()).unwrap();
        let (id, closed) = (load(&whole).connection(spare.connection), spare.closed.unwrap());
        let takes = |until| run(&chromium(), LONG, until).world.tcp(server_end(id)).writable() > 0;
        let way = |percent| closed + Duration(DELAY.0 * percent / 100);
        assert_eq!([takes(way(1)), takes(way(95)), takes(way(110))], [true, true, false]);
    }

    #[test]
    fn a_visit_that_is_given_up_while_names_are_looked_up_leaves_its_rows() {
        let slow = Browser { dns_ns: Duration::from_secs(1), ..chromium() };
        let engine = run(&slow, 1_500_000_000, Time(10_000_000_000));
        let load = load(&engine);
        assert!(load.gave_up());
        let tables = load.tables(&engine.world, 0, "v");
        assert_eq!((tables.objects.len(), tables.connections.len()), (7, 1));
    }
}
