//! Proxies in processes of their own on loopback.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod link;
pub mod origin;

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A loopback address that only this process uses, so that tests may run in parallel.
pub fn address(number: u8) -> String {
    let process = std::process::id();
    format!("127.{}.{}.{number}", 64 + process / 256 % 128, process % 256)
}

/// A port that nobody listens on now. The kernel gives it to no one, so it is still free when a proxy starts.
pub fn free_port() -> u16 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (first, count) = (10_000, 22_000);
    loop {
        let place = std::process::id().wrapping_mul(61) + COUNT.fetch_add(1, Ordering::Relaxed);
        let port = first + (place % count) as u16;
        if TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}

/// True without the right to listen for any address; says so.
pub fn skips() -> bool {
    // SAFETY: a plain system call without arguments.
    let skips = unsafe { libc::geteuid() } != 0;
    if skips {
        eprintln!("skipped: IP_TRANSPARENT needs root");
    }
    skips
}

/// A folder, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("wirepaint-proxy-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// A command of the example with the run description as its first argument.
    pub fn command(&self, verb: &str, run: &Value, last: &str) -> Command {
        let file = self.0.join("run.json");
        std::fs::write(&file, run.to_string()).unwrap();
        let tests = std::env::current_exe().unwrap();
        let mut command = Command::new(tests.parent().unwrap().with_file_name("examples").join("proxy"));
        command.arg(verb).arg(file).arg(last);
        command
    }

    /// Starts a proxy that must refuse. Returns its exit code and its message.
    pub fn refused(&self, verb: &str, run: &Value, last: &str) -> (i32, String) {
        let output = self.command(verb, run, last).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    /// Starts a part and waits until it is ready.
    pub fn start(&self, verb: &str, run: &Value, last: &str) -> Running {
        let mut child = self.command(verb, run, last).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).expect("a ready line");
        assert_eq!(ready["ready"], true);
        Running { child, stdout, ready }
    }

    /// The records of a proxy's host.
    pub fn records(&self, host: &str) -> Value {
        let text = std::fs::read(self.0.join(format!("proxy-{host}.json"))).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running proxy.
pub struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub ready: Value,
}

impl Running {
    /// Memory that it has now, bytes.
    pub fn resident(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// The most memory that it has had, bytes.
    pub fn peak(&self) -> u64 {
        self.status("VmHWM:")
    }

    fn status(&self, key: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Its process.
    pub fn pid(&self) -> libc::pid_t {
        self.child.id() as libc::pid_t
    }

    /// Sends a signal.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: the child is ours and has not been waited for.
        unsafe { libc::kill(self.pid(), signal) };
    }

    /// Sends SIGTERM. Returns the summary.
    pub fn stop(mut self) -> Value {
        self.signal(libc::SIGTERM);
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A split proxy before an origin.
pub struct Split {
    pub folder: Folder,
    pub running: Running,
    /// Where clients connect to.
    pub origin: SocketAddr,
}

/// The description of a run with a split proxy. Clients connect to `port`; the origin listens on `listen_port`.
pub fn split_run(folder: &Folder, port: u16, listen_port: u16, buffer_bytes: u64) -> Value {
    json!({
        "format": 5, "id": "test", "seed": 1, "trace_dir": folder.0, "work_dir": folder.0,
        "hosts": [{"name": "split", "role": "proxy", "congestion": "reno",
                   "upstream": {"congestion": "cubic"}},
                  {"name": "server", "role": "server", "congestion": "reno"}],
        "proxies": [{"kind": "split", "host": "split", "buffer_bytes": buffer_bytes}],
        "sites": {"a": {"responses": [], "origins": [
            {"address": address(1), "port": port, "listen_port": listen_port, "encrypted": false, "host": "a.test"}
        ]}},
    })
}

impl Split {
    /// Starts a proxy; the test listens at the returned address for what it opens.
    pub fn start(buffer_bytes: u64) -> (Split, TcpListener) {
        let server = TcpListener::bind((address(1), 0)).unwrap();
        (Split::before(server.local_addr().unwrap().port(), buffer_bytes), server)
    }

    /// Starts a proxy before an origin that has this port.
    pub fn before(listen_port: u16, buffer_bytes: u64) -> Split {
        let (folder, port) = (Folder::new(), free_port());
        let run = split_run(&folder, port, listen_port, buffer_bytes);
        let running = folder.start("split", &run, "split");
        let origin = format!("{}:{port}", address(1)).parse().unwrap();
        Split { folder, running, origin }
    }
}

/// Both sides of the PEP before an origin.
pub struct Pep {
    pub folder: Folder,
    pub remote: Running,
    pub ground: Running,
}

/// The description of a run with a PEP. `origins` are names with their scheme; each has the address of its place,
/// clients connect to `port`, the servers listen on `listen_port`.
pub fn pep_run(folder: &Folder, origins: &[(&str, &str)], port: u16, listen_port: u16) -> Value {
    let origins = origins.iter().enumerate().map(|(place, (scheme, host))| {
        json!({"address": address(place as u8 + 1), "port": port, "listen_port": listen_port,
               "encrypted": *scheme == "https", "host": host})
    });
    json!({
        "format": 5, "id": "test", "seed": 1, "trace_dir": folder.0, "work_dir": folder.0,
        "hosts": [
            {"name": "client", "role": "client", "congestion": "reno", "address": "127.0.0.1"},
            {"name": "remote", "role": "proxy", "congestion": "reno", "upstream": {"congestion": "reno"}},
            {"name": "ground", "role": "proxy", "congestion": "cubic", "address": "127.0.0.1",
             "upstream": {"congestion": "reno"}},
            {"name": "server", "role": "server", "congestion": "reno"}],
        "proxies": [{"kind": "pep", "remote": "remote", "ground": "ground", "port": free_port(), "connections": 3,
                     "multiplexed": true, "compression": "none", "schedule": "fair", "ahead": "none",
                     "buffer_bytes": 4 << 20, "classes": []}],
        "sites": {"a": {"responses": [], "origins": origins.collect::<Vec<_>>()}},
    })
}

impl Pep {
    /// Starts both sides.
    pub fn start(folder: Folder, run: &Value) -> Pep {
        let ground = folder.start("pep", run, "ground");
        let remote = folder.start("pep", run, "remote");
        Pep { folder, remote, ground }
    }
}
