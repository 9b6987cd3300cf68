//! A page, the replay server that answers for it, and light users that load it, all on loopback.

#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use wirepaint_page_model::{Browser, catalogue::chromium};

/// A loopback address that only this process uses, so that tests may run in parallel.
pub fn address(number: u8) -> String {
    let process = std::process::id();
    format!("127.{}.{}.{number}", 64 + process / 256 % 128, process % 256)
}

/// Chromium without its variation.
pub fn browser() -> Browser {
    Browser { compute_noise_percent: 0, ..chromium() }
}

/// A page of one or more hosts, number `n` of a test at `address(n)`, port 8443.
pub struct Site {
    origins: Vec<(String, u8, bool)>,
    resources: Vec<Value>,
}

impl Site {
    /// A page whose document of `bytes` comes from host 0; `hosts` are the numbers of the addresses.
    pub fn new(hosts: &[u8], encrypted: bool, bytes: u64) -> Site {
        let origins = hosts.iter().map(|&n| (format!("host{n}.test"), n, encrypted)).collect();
        let mut site = Site { origins, resources: Vec::new() };
        site.add(0, "html", bytes, Value::Null);
        site.resources[0]["document"] = json!({"body_at": 10});
        site
    }

    /// Adds a resource; returns its number.
    pub fn add(&mut self, origin: usize, kind: &str, bytes: u64, cause: Value) -> usize {
        let (host, _, encrypted) = &self.origins[origin];
        let scheme = if *encrypted { "https" } else { "http" };
        let number = self.resources.len();
        self.resources.push(json!({
            "url": format!("{scheme}://{host}:8443/{number}"), "origin": origin, "status": 200, "type": kind,
            "wire_bytes": bytes, "decoded_bytes": bytes, "cause": cause, "headers": [["content-type", "a/b"]],
        }));
        number
    }

    /// Adds an element of the document.
    pub fn element(&mut self, origin: usize, kind: &str, bytes: u64, element: &str) -> usize {
        let at = 10 + self.resources.len();
        self.add(origin, kind, bytes, json!({"kind": "markup", "by": 0, "at": at, "element": element}))
    }

    /// A resource, to be changed.
    pub fn resource(&mut self, number: usize) -> &mut Value {
        &mut self.resources[number]
    }

    /// The page as the model sees it.
    pub fn page(&self) -> Value {
        let origins = self.origins.iter().map(|(host, n, encrypted)| {
            json!({"host": host, "address": address(*n), "port": 8443, "encrypted": encrypted})
        });
        json!({"origins": origins.collect::<Vec<_>>(), "resources": self.resources})
    }
}

/// A visit of the page `page` with the browser `light`.
pub fn visit() -> Value {
    json!({"user_agent": "light", "name": "page", "timeout_ns": 20_000_000_000_u64, "page": "page",
           "browser": "light"})
}

/// A folder with a run description, removed at the end.
pub struct Run {
    folder: PathBuf,
    pub description: Value,
}

impl Run {
    /// One visit of a page.
    pub fn new(site: &Site, browser: &Browser, http: &str) -> Run {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("wirepaint-light-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let page = site.page();
        let responses = page["resources"].as_array().unwrap().iter().enumerate().map(|(number, resource)| {
            let body = folder.join(format!("body{number}"));
            std::fs::write(&body, vec![b'x'; resource["wire_bytes"].as_u64().unwrap() as usize]).unwrap();
            let method = resource.get("method").cloned().unwrap_or(json!("GET"));
            json!({"method": method, "url": resource["url"], "status": resource["status"], "body": body,
                   "headers": resource["headers"], "think_ns": resource["think_ns"].as_u64().unwrap_or(0)})
        });
        let site = json!({"origins": page["origins"], "responses": responses.collect::<Vec<_>>()});
        let congestion = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
        let description = json!({
            "format": 5, "id": "light", "seed": 1, "trace_dir": folder, "work_dir": folder,
            "hosts": [{"name": "server", "role": "server", "congestion": "reno"},
                      {"name": "client", "role": "client", "congestion": congestion.trim(),
                       "address": "127.0.0.1"}],
            "transport": {"http": http},
            "sites": {"site": site}, "pages": {"page": page}, "browsers": {"light": browser},
            "visits": [visit()],
        });
        Run { folder, description }
    }

    /// Sets the visits.
    pub fn visits(mut self, visits: impl IntoIterator<Item = Value>) -> Run {
        self.description["visits"] = visits.into_iter().collect();
        self
    }

    fn command(&self, verb: &str) -> Command {
        let file = self.folder.join("run.json");
        std::fs::write(&file, self.description.to_string()).unwrap();
        let tests = std::env::current_exe().unwrap();
        let mut command = Command::new(tests.parent().unwrap().with_file_name("examples").join("ends"));
        command.arg(verb).arg(file);
        command
    }

    /// Carries the visits out against the replay server.
    pub fn carry_out(&self) -> Told {
        let server = self.serve();
        let mut told = self.visit(Some(&server.authority));
        told.asked = server.stop(self);
        told
    }

    /// Carries them out against whoever listens.
    pub fn visit(&self, authority: Option<&str>) -> Told {
        let output = self.light(authority);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines.len(), &lines[0]["ready"]), (2, &json!(true)));
        let mut visits = self.lines("light-visits.jsonl");
        visits.sort_by_key(|visit| visit["visit"].as_u64());
        Told { summary: lines[1].clone(), visits, asked: Vec::new() }
    }

    /// The output of a light client that is told when the visits begin.
    pub fn told(&self, line: &str) -> Output {
        let mut command = self.command("waits");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(line.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// The records of the visits.
    pub fn visited(&self) -> Vec<Value> {
        self.lines("light-visits.jsonl")
    }

    /// The output of the light client.
    pub fn light(&self, authority: Option<&str>) -> Output {
        self.command("light").args(authority).output().unwrap()
    }

    fn lines(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Starts the replay server; it is killed when this is dropped.
    pub fn serve(&self) -> Server {
        let mut child = self.command("replay").stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).expect("a ready line");
        Server { child, stdout, authority: ready["ca_spki_sha256"].as_str().unwrap().to_owned() }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What the light client told, and what the server was asked.
pub struct Told {
    pub summary: Value,
    pub visits: Vec<Value>,
    pub asked: Vec<Value>,
}

impl Told {
    /// The one visit, which has not failed.
    pub fn loaded(&self) -> &Value {
        assert_eq!(self.visits.len(), 1);
        assert_eq!(self.visits[0]["failed"], Value::Null);
        &self.visits[0]
    }

    /// Why a visit failed.
    pub fn cause(&self, visit: usize) -> &str {
        self.visits[visit]["failed"].as_str().expect("it failed")
    }
}

/// The request of a visit for a resource.
pub fn request(visit: &Value, number: usize) -> &Value {
    let requests = visit["requests"].as_array().unwrap();
    requests.iter().find(|request| request["number"] == number).unwrap()
}

/// Page load time in milliseconds.
pub fn load_ms(visit: &Value) -> f64 {
    let [start, end] = ["navigation_start", "load_event"].map(|key| visit[key].as_f64().unwrap());
    (end - start) / 1e6
}

/// A running replay server.
pub struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Hash of its authority.
    pub authority: String,
}

impl Server {
    /// Sends SIGTERM. Returns its records of requests.
    fn stop(mut self, run: &Run) -> Vec<Value> {
        // SAFETY: the child is ours and has not been waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        assert!(self.child.wait().unwrap().success());
        run.lines("server-requests.jsonl")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
