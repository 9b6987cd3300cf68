//! The ground side's start: it listens for the remote side's connections.

use super::Ground;
use super::pool::Pool;
use crate::Failure;
use crate::listening::{self, v4};
use crate::pep::Settings;
use crate::pep::link::{self, Out};
use crate::pep::wire::{Frame, Malformed, VERSION};
use crate::records::{Ended, Records};
use bytes::BytesMut;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};
use wirepaint_observed_sockets::{Socket, set_code_point};
use wirepaint_pep_model::PepSchedule;

/// Time in which a connection must say which one it is.
const HELLO_TIME: Duration = Duration::from_secs(30);

/// Listens for the remote side.
pub async fn begin(settings: &Settings, records: &Rc<Records>) -> Result<(), Failure> {
    let client =
        settings.authority.as_ref().map(|authority| authority.client(&settings.transport)).transpose()?;
    let ports = settings.origins.iter().map(|(&address, origins)| (address, origins.listen_port)).collect();
    let pool = Pool::new(settings.upstream_congestion.clone(), client, ports, records.clone());
    let ground = Ground::new(settings, pool, records.clone());
    let address = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, settings.ground.port());
    let system = || Failure::system(format!("listening on {address}"));
    let socket = TcpSocket::new_v4().map_err(system())?;
    let listener = listening::listen(socket, address, &settings.congestion).map_err(system())?;
    tokio::task::spawn_local(ground.clone().pace());
    tokio::task::spawn_local(accept(listener, ground));
    Ok(())
}

async fn accept(listener: TcpListener, ground: Rc<Ground>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::task::spawn_local(connection(stream, ground.clone()))),
            // Out of descriptors or memory; later accepts may succeed.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn connection(mut stream: TcpStream, ground: Rc<Ground>) {
    let (Ok(client), Ok(server)) = (v4(stream.peer_addr()), v4(stream.local_addr())) else { return };
    let Ok(socket) = Socket::of(stream.as_fd()).map(Rc::new) else { return };
    socket.reset_when_closed(true);
    let _ = stream.set_nodelay(true);
    let id = ground.records.accepted(client, server, socket.clone());
    let out = Out::new(id);
    let mut arrived = BytesMut::new();
    let told = timeout(HELLO_TIME, hello(&mut stream, &mut arrived)).await;
    let place = told.ok().and_then(|hello| hello.ok()).and_then(|hello| ground.place(hello, &out));
    let Some(class) = place else {
        ground.records.refused(client, Some(id), "no connection of the remote side".to_owned());
        return ground.records.closed(id, Ended::Reset);
    };
    let (bounded, code_point) = {
        let inner = ground.inner.borrow();
        let policy = inner.scheduler.policy();
        (policy.schedule == PepSchedule::Fair, policy.classes.get(class).map(|class| class.dscp))
    };
    // Without its mark a connection is served as others are; the path's records show it.
    let _ = code_point.map(|code_point| set_code_point(&stream, code_point));
    let records = ground.records.clone();
    link::serve(stream, socket, out, arrived, bounded, ground, records).await;
}

/// Reads which connection it is.
async fn hello(stream: &mut TcpStream, arrived: &mut BytesMut) -> Result<(u8, u8), Malformed> {
    loop {
        match Frame::take(arrived)? {
            Some(Frame::Hello { version: VERSION, class, number }) => return Ok((class, number)),
            Some(_) => return Err(Malformed("first frame")),
            None => {
                let read = stream.read_buf(arrived).await.unwrap_or(0);
                if read == 0 {
                    return Err(Malformed("end of the first frame"));
                }
            }
        }
    }
}

impl Ground {
    /// Takes a connection in. Returns its class; `None` if it has no place.
    fn place(&self, (class, number): (u8, u8), out: &Rc<Out>) -> Option<usize> {
        let inner = &mut *self.inner.borrow_mut();
        let policy = inner.scheduler.policy();
        let (class, number) = (usize::from(class), usize::from(number));
        if class >= policy.class_count() || number >= policy.connections {
            return None;
        }
        let place = &mut inner.outs[class * policy.connections + number];
        if place.as_ref().is_some_and(|out| !out.is_closed()) {
            return None;
        }
        *place = Some(out.clone());
        Some(class)
    }
}
