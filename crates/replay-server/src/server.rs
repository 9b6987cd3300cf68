//! From a run description to listening origins, and from SIGTERM to the records.

use crate::clock::{Timer, monotonic};
use crate::recording::Recording;
use crate::records::{ConnectionId, Records, Summary};
use crate::site::{Origins, Site};
use crate::socket;
use crate::{Failure, http1, http2, records};
use std::io::Write;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::AsFd;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::TlsAcceptor;
use wirepaint_observed_sockets::Socket;
use wirepaint_run::{Host, Proxy, Role, Run, process};
use wirepaint_serving::{AUTHORITY, Authority};

/// Time for a TLS handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(30);
/// Interval of checks of the event loop; at least half of a pause of this length is seen.
const LOOK_NS: u64 = 10_000_000;
/// Numeric user and group of the server, which reads recordings of strangers. They differ from the browser's, so
/// that neither can affect the other.
const USER: u32 = 65_533;
/// Longest name of a congestion control (TCP_CA_NAME_MAX less the terminator).
const CONGESTION_NAME: usize = 15;

/// Serves the origins of `run` until SIGTERM or SIGINT; `path` is where it was read from.
pub fn serve(path: &Path, run: &Run) -> Result<(), Failure> {
    let host = run.host(Role::Server, path)?;
    check(path, run, host)?;
    process::allow_many_files();
    let authority = Authority::new()?;
    let records = Rc::new(Records::new(run.epoch_ns));
    let mut sites = Vec::with_capacity(run.sites.len());
    for (name, site) in &run.sites {
        let recording = Recording::load(path, name, &site.responses)?;
        let site_of = Site { name: name.clone(), recording, records: records.clone() };
        sites.push((Rc::new(site_of), Origins::group(path, name, &site.origins)?));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::system("the event loop"))?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async {
        let mut terminate = signal(SignalKind::terminate()).map_err(Failure::system("SIGTERM"))?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::system("SIGINT"))?;
        let listening =
            sites.into_iter().flat_map(|(site, all)| all.into_iter().map(move |one| (site.clone(), one)));
        for (site, origins) in listening {
            let acceptor = match origins.encrypted {
                false => None,
                true => {
                    let hosts: Vec<_> = origins.hosts.iter().map(String::as_str).collect();
                    Some(TlsAcceptor::from(authority.config(&hosts, &run.transport)?))
                }
            };
            let listener = listen(origins.address, &host.congestion)?;
            tokio::task::spawn_local(accept(listener, acceptor, Rc::new(origins), site));
        }
        let files = records::files(&run.work_dir)?;
        if run.proxies.iter().any(Proxy::ends_tls) {
            let path = run.work_dir.join(AUTHORITY);
            std::fs::write(&path, &authority.pem).map_err(Failure::system(path.display().to_string()))?;
        }
        process::become_user(USER).map_err(Failure::system("becoming an ordinary user"))?;
        watch_the_loop(&records);
        say(&serde_json::json!({"ready": true, "ca_spki_sha256": authority.spki_sha256}))?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        let summary: Summary = records.finish(files, &host.congestion, host.initial_window)?;
        say(&summary)
    })
}

/// Watches the event loop: every task waits at least as long as this one.
fn watch_the_loop(records: &Rc<Records>) {
    let records = records.clone();
    tokio::task::spawn_local(async move {
        let mut timer = Timer::default();
        loop {
            let due = monotonic() + LOOK_NS;
            if timer.until(due).await.is_err() {
                return;
            }
            records.woke(monotonic() - due);
        }
    });
}

fn check(path: &Path, run: &Run, host: &Host) -> Result<(), Failure> {
    let refuse = |key: &str, found: String, accepted| {
        Err(Failure::Value { path: path.to_owned(), key: key.to_owned(), found, accepted })
    };
    let name = &host.congestion;
    if !(1..=CONGESTION_NAME).contains(&name.len()) || name.contains('\0') {
        return refuse("hosts.congestion", format!("{name:?}"), "a name of 1 to 15 bytes");
    }
    if run.sites.values().all(|site| site.origins.is_empty()) {
        return refuse("sites", "no origin".to_owned(), "one at least");
    }
    match run.transport.tls_record_bytes {
        None | Some(64..=16_384) => {}
        Some(bytes) => return refuse("transport.tls_record_bytes", bytes.to_string(), "64 to 16384"),
    }
    if !run.work_dir.is_dir() {
        return refuse("work_dir", format!("{}", run.work_dir.display()), "an existing folder");
    }
    Ok(())
}

fn listen(address: SocketAddrV4, congestion: &str) -> Result<TcpListener, Failure> {
    socket::listen(address, congestion).map_err(Failure::system(format!("listening on {address}")))?.map_err(
        |source| Failure::Congestion {
            name: congestion.to_owned(),
            origin: address,
            source,
            offered: std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
                .map_or_else(|error| error.to_string(), |names| names.trim().to_owned()),
        },
    )
}

fn say(line: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string(line).map_err(|e| Failure::system("the report")(e.into()))?;
    text.push('\n');
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(Failure::system("standard output"))
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, origins: Rc<Origins>, site: Rc<Site>) {
    loop {
        let Ok((stream, SocketAddr::V4(client))) = listener.accept().await else {
            // Out of descriptors or memory, or the client gave up; later accepts may succeed.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        // Without a second descriptor the kernel cannot be asked about the connection, so it is not served.
        let Ok(socket) = Socket::of(stream.as_fd()) else { continue };
        socket.reset_when_closed(true);
        let socket = Rc::new(socket);
        let id =
            site.records.accepted(&site.name, client, origins.address, origins.encrypted, socket.clone());
        let (acceptor, origins, site) = (acceptor.clone(), origins.clone(), site.clone());
        tokio::task::spawn_local(async move {
            connection(stream, acceptor, &origins, &site, id, socket.clone()).await;
            // Lets the kernel send the remaining bytes.
            socket.reset_when_closed(false);
            site.records.closed(id);
        });
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    origins: &Origins,
    site: &Site,
    id: ConnectionId,
    socket: Rc<Socket>,
) {
    // A failure here shows in the first write.
    let _ = stream.set_nodelay(true);
    let Some(acceptor) = acceptor else {
        site.records.speaks(id, "http/1.1");
        return http1::serve(stream, site, origins, id).await;
    };
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(stream)).await else { return };
    let (_, session) = stream.get_ref();
    let version = session.protocol_version().map_or(String::new(), |version| format!("{version:?}"));
    let suite =
        session.negotiated_cipher_suite().map_or(String::new(), |suite| format!("{:?}", suite.suite()));
    site.records.tls_done(id, session.server_name(), format!("{version} {suite}"));
    if session.alpn_protocol() == Some(b"h2") {
        site.records.speaks(id, "h2");
        http2::serve(stream, site, origins, id, socket).await;
    } else {
        site.records.speaks(id, "http/1.1");
        http1::serve(stream, site, origins, id).await;
    }
}
