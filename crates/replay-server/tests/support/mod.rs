//! A replay server in its own process, and clients that see every byte.

#![allow(dead_code, reason = "each test file uses its part")]

pub mod frames;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A loopback address that only this process uses, so that tests may run in parallel.
pub fn address(number: u8) -> String {
    let process = std::process::id();
    format!("127.{}.{}.{number}", 64 + process / 256 % 128, process % 256)
}

/// One recorded response: method, address, status, headers, body.
pub type Recorded<'a> = (&'a str, &'a str, u16, Value, &'a [u8]);

/// A folder with a run description, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("wirepaint-replay-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The description of a run with these origins (`address:port scheme host`) and responses.
    pub fn run(&self, origins: &[&str], responses: &[Recorded]) -> Value {
        let origins: Vec<_> = origins
            .iter()
            .map(|origin| {
                let [at, scheme, host] = origin.split(' ').collect::<Vec<_>>().try_into().unwrap();
                let (address, port) = at.split_once(':').unwrap();
                let port: u16 = port.parse().unwrap();
                json!({"address": address, "port": port, "encrypted": scheme == "https", "host": host})
            })
            .collect();
        let responses: Vec<_> = responses
            .iter()
            .enumerate()
            .map(|(i, (method, url, status, headers, body))| {
                let file = self.0.join(format!("body{i}"));
                std::fs::write(&file, body).unwrap();
                json!({"method": method, "url": url, "status": status, "headers": headers, "body": file})
            })
            .collect();
        json!({
            "format": 5, "id": "test", "seed": 1, "epoch_ns": 0,
            "trace_dir": self.0, "work_dir": self.0,
            "hosts": [{"name": "server", "role": "server", "congestion": "reno"}],
            "sites": {"a": {"origins": origins, "responses": responses}},
        })
    }

    pub fn start(&self, run: &Value) -> Server {
        Server::start(self, run)
    }

    /// Starts a server that must refuse. Returns its exit code and its message.
    pub fn refused(&self, run: &Value) -> (i32, String) {
        let output = self.command(run).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    fn command(&self, run: &Value) -> Command {
        let file = self.0.join("run.json");
        std::fs::write(&file, run.to_string()).unwrap();
        let tests = std::env::current_exe().unwrap();
        let mut command = Command::new(tests.parent().unwrap().with_file_name("examples").join("replay"));
        command.arg(file);
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A running server.
pub struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    folder: PathBuf,
    pub ready: Value,
}

/// A server's output.
pub struct Left {
    pub summary: Value,
    pub connections: Vec<Value>,
    pub requests: Vec<Value>,
}

impl Server {
    fn start(folder: &Folder, run: &Value) -> Server {
        let mut child = folder.command(run).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).expect("a ready line");
        Server { child, stdout, folder: folder.0.clone(), ready }
    }

    /// Sends SIGTERM. Returns the summary and the records.
    pub fn stop(mut self) -> Left {
        // SAFETY: the child is ours and has not been waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        assert!(self.child.wait().unwrap().success());
        let lines = |name: &str| {
            let text = std::fs::read_to_string(self.folder.join(name)).unwrap();
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        Left {
            summary: serde_json::from_str(&line).unwrap(),
            connections: lines("server-connections.jsonl"),
            requests: lines("server-requests.jsonl"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A TCP connection whose reads fail after five seconds: a hang is a failure.
pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Sends bytes, closes the sending side and reads until the end.
pub fn say(address: &str, bytes: &[u8]) -> String {
    let mut stream = connect(address);
    stream.write_all(bytes).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Repeatable random numbers (Knuth's MMIX generator) for corruption.
pub struct Dice(pub u64);

impl Dice {
    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }
}

pub type Tls = StreamOwned<ClientConnection, TcpStream>;

/// A TLS connection that offers `alpn`.
pub fn connect_tls(stream: TcpStream, host: &str, alpn: &[&str]) -> Tls {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyOfTwo))
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from(host.to_owned()).unwrap();
    let mut tls = StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream);
    tls.flush().unwrap();
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock).unwrap();
    }
    tls
}

/// Accepts any leaf that comes with its authority; Chromium's own check is in the system tests.
#[derive(Debug)]
struct AnyOfTwo;

impl ServerCertVerifier for AnyOfTwo {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        assert_eq!(rest.len(), 1, "the authority is in the chain");
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}
