//! What every proxy does from its start to its end.

use crate::Failure;
use crate::listening::check_congestion;
use crate::records::Records;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;
use wirepaint_run::{Host, Role, Run, Sending, process};

/// Numeric user and group of the proxies, which read what strangers wrote. They differ from those of the other
/// parts.
const USER: u32 = 65_530;

/// The proxy's host and how the connections send that it opens.
pub fn host<'a>(path: &Path, run: &'a Run, name: &str) -> Result<(&'a Host, &'a Sending), Failure> {
    let (place, host) =
        run.hosts.iter().enumerate().find(|(_, host)| host.name == name).ok_or_else(|| {
            let known: Vec<_> = run.hosts.iter().map(|host| host.name.as_str()).collect();
            Failure::value(path, "hosts", format!("no host {name:?}"), format!("one of {known:?}"))
        })?;
    let key = |key| format!("hosts[{place}].{key}");
    if host.role != Role::Proxy {
        return Err(Failure::value(path, key("role"), host.role.name(), "proxy"));
    }
    let upstream = host.upstream.as_ref();
    let upstream = upstream.ok_or_else(|| {
        Failure::value(path, key("upstream"), "nothing", "an object (see schema/run.schema.json)")
    })?;
    check_congestion("hosts.congestion", &host.congestion)?;
    check_congestion("hosts.upstream.congestion", &upstream.congestion)?;
    Ok((host, upstream))
}

/// Runs a proxy until SIGTERM or SIGINT. `begin` opens its sockets and starts its tasks, `end` completes the records.
pub fn play<F>(run: &Run, records: &Rc<Records>, begin: F, end: impl FnOnce()) -> Result<(), Failure>
where
    F: AsyncFnOnce() -> Result<(), Failure>,
{
    process::allow_many_files();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::system("the event loop"))?;
    LocalSet::new().block_on(&runtime, async {
        let mut terminate = signal(SignalKind::terminate()).map_err(Failure::system("SIGTERM"))?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::system("SIGINT"))?;
        let file = records.create(&run.work_dir)?;
        begin().await?;
        process::become_user_of_network(USER).map_err(Failure::system("becoming an ordinary user"))?;
        say(&serde_json::json!({"ready": true}))?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        end();
        say(&records.finish(file)?)
    })
}

fn say(line: &impl Serialize) -> Result<(), Failure> {
    let mut text =
        serde_json::to_string(line).map_err(|error| Failure::system("the report")(error.into()))?;
    text.push('\n');
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(Failure::system("standard output"))
}
