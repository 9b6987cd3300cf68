//! Many clients and their origins in one thread.

use socket2::SockRef;
use std::future::Future;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Barrier, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Flows at once.
pub const FLOWS: usize = 500;
/// Bytes of a whole answer.
pub const LENGTH: usize = 150_000;
/// Longest time for anything.
const LIMIT: Duration = Duration::from_secs(60);
/// Receive buffer of clients, small so that the proxy has to hold what they do not read.
const RECEIVE_BUFFER: u32 = 16_384;
/// Segment size of clients. With loopback's own, larger than that buffer, a closed window opens late.
const SEGMENT: u32 = 1_448;

/// Bytes that show where they belong. They are made once: a flow that waits 5 s for this thread would count as stalled.
pub fn pattern(seed: usize, length: usize) -> &'static [u8] {
    static ALL: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..LENGTH + 251).map(|at| ((at / 251 + at) % 251) as u8).collect());
    &ALL[seed % 251..][..length]
}

/// An event loop for both ends.
pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Serves each connection of a listener.
pub fn serve<F>(listener: TcpListener, answer: impl Fn(TcpStream) -> F + 'static + Send)
where
    F: Future<Output = ()> + Send + 'static,
{
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(answer(stream));
        }
    });
}

/// Opens all flows, then begins them together, and waits for their ends. The patient ones hear when the others are done.
pub async fn start_together<F>(
    origin: SocketAddr,
    is_patient: impl Fn(usize) -> bool,
    flow: impl Fn(usize, TcpStream, watch::Receiver<bool>) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let (tell, all_done) = watch::channel(false);
    let barrier = Arc::new(Barrier::new(FLOWS));
    let (mut patient, mut others) = (JoinSet::new(), JoinSet::new());
    for number in 0..FLOWS {
        let client = connected(origin).await;
        let (flow, barrier) = (flow(number, client, all_done.clone()), barrier.clone());
        let flows = if is_patient(number) { &mut patient } else { &mut others };
        flows.spawn(async move {
            barrier.wait().await;
            timeout(LIMIT, flow).await.unwrap_or_else(|_| panic!("flow {number} hangs"));
        });
    }
    others.join_all().await;
    tell.send(true).unwrap();
    patient.join_all().await;
}

/// A client's connection with a small receive buffer.
pub async fn connected(origin: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(RECEIVE_BUFFER).unwrap();
    SockRef::from(&socket).set_tcp_mss(SEGMENT).unwrap();
    socket.connect(origin).await.unwrap()
}

/// Ends a connection with a reset.
pub fn reset(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
}

/// Waits until the other end's kernel has all that was written: an end-to-end path would deliver it before a reset.
pub async fn taken(stream: &TcpStream) {
    let unacknowledged = || {
        let mut bytes: libc::c_int = 0;
        // SAFETY: the request writes one int to a valid pointer.
        assert_eq!(unsafe { libc::ioctl(stream.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) }, 0);
        bytes
    };
    while unacknowledged() > 0 {
        sleep(Duration::from_millis(2)).await;
    }
}

/// Reads to the end in small parts with pauses. Returns the error of an end that is none.
pub async fn slowly(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<ErrorKind> {
    let mut part = [0; 8_192];
    loop {
        match stream.read(&mut part).await {
            Ok(0) => return None,
            Ok(count) => bytes.extend(&part[..count]),
            Err(error) => return Some(error.kind()),
        }
        sleep(Duration::from_millis(10)).await;
    }
}

/// Reads a head; `None` at the end of the connection.
pub async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8(text).unwrap())
}

/// A browser's connection, or what was read from one.
pub struct Client<S>(pub S);

impl Client<TcpStream> {
    /// Sends a request.
    pub async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }
}

impl<S: AsyncRead + Unpin> Client<S> {
    /// The head of the next answer.
    pub async fn head(&mut self) -> String {
        head(&mut self.0).await.expect("an answer")
    }

    /// So many bytes.
    pub async fn take(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).await.unwrap();
        bytes
    }

    /// All bytes to the end.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).await.unwrap();
        bytes
    }

    /// The body of an answer in chunks.
    pub async fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let mut line = String::new();
            while !line.ends_with("\r\n") {
                line.push(self.0.read_u8().await.unwrap().into());
            }
            let length = usize::from_str_radix(line.trim(), 16).unwrap();
            body.extend(self.take(length).await);
            assert_eq!(self.take(2).await, b"\r\n");
            if length == 0 {
                return body;
            }
        }
    }
}
