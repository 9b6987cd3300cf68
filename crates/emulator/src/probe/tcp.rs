use super::{End, inside, io};
use crate::Error;
use crate::clock::monotonic;
use serde::Serialize;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Interval at which a blocked call checks the time.
const GLANCE: Duration = Duration::from_millis(200);
/// Bytes of one write.
const CHUNK_BYTES: usize = 256 * 1024;

/// Receive buffer, beyond the system's maximum: on some paths Linux's autotuning opens the window a second or
/// more late, and that would be measured instead of the path.
const RECEIVE_BUFFER_BYTES: libc::c_int = 64 << 20;

/// Result of a bulk transfer.
#[derive(Debug, Serialize)]
pub struct BulkResult {
    /// Payload bytes that arrived.
    bytes: u64,
    /// Payload bits per second over the second half of the time, after slow start.
    bit_per_s: f64,
}

/// Bulk transfer from `source` to `destination` for a time. `patience_ns` is the longest wait for the
/// connection, and for the last bytes after that time. If the path fails meanwhile, returns an error, or the
/// bytes that arrived before.
pub fn bulk(
    source: &End,
    destination: &End,
    duration_ns: u64,
    patience_ns: u64,
    congestion: &str,
) -> Result<BulkResult, Error> {
    let patience = Duration::from_nanos(patience_ns);
    let listener = inside(destination, || {
        TcpListener::bind((destination.address, 0)).map_err(io("binding a TCP socket"))
    })?;
    let buffer = RECEIVE_BUFFER_BYTES;
    set_option(&listener, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &buffer.to_ne_bytes())
        .map_err(io("setting the receive buffer"))?;
    let to = listener.local_addr().map_err(io("reading a socket's address"))?;
    let sender = inside(source, || TcpStream::connect_timeout(&to, patience).map_err(io("connecting")))?;
    set_option(&sender, libc::IPPROTO_TCP, libc::TCP_CONGESTION, congestion.as_bytes())
        .map_err(|_| Error::last(format!("congestion control {congestion:?}")))?;
    let receiver = accept_within(&listener, patience)?;
    std::thread::scope(|scope| {
        let receiving = scope.spawn(move || receive(receiver, duration_ns, patience_ns));
        let sent = send(sender, duration_ns);
        let received = receiving.join().expect("receiving does not panic");
        sent.and(received)
    })
}

fn set_option(
    socket: &impl AsRawFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &[u8],
) -> std::io::Result<()> {
    let (data, length) = (value.as_ptr().cast(), value.len() as u32);
    // SAFETY: passes a value and its length.
    match unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, data, length) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// The next connection. The last ACK of its handshake may have been lost after `connect` returned.
fn accept_within(listener: &TcpListener, patience: Duration) -> Result<TcpStream, Error> {
    let mut waiting = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid descriptor.
    if unsafe { libc::poll(&mut waiting, 1, patience.as_millis() as i32) } == 0 {
        return Err(io("accepting")(ErrorKind::TimedOut.into()));
    }
    listener.accept().map(|(stream, _)| stream).map_err(io("accepting"))
}

/// True for an error after which the transfer continues.
fn is_no_end(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn send(mut stream: TcpStream, duration_ns: u64) -> Result<(), Error> {
    let end = monotonic() + duration_ns;
    stream.set_write_timeout(Some(GLANCE)).map_err(io("setting a timeout"))?;
    let data = vec![0_u8; CHUNK_BYTES];
    while monotonic() < end {
        match stream.write(&data) {
            Ok(_) => {}
            Err(error) if is_no_end(&error) => {}
            Err(error) => return Err(io("sending")(error)),
        }
    }
    // Resets instead of draining the bytes on a slow link.
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: a linger is two integers without padding.
    let linger: [u8; size_of::<libc::linger>()] = unsafe { std::mem::transmute(linger) };
    set_option(&stream, libc::SOL_SOCKET, libc::SO_LINGER, &linger).map_err(io("setting SO_LINGER"))?;
    Ok(())
}

fn receive(mut stream: TcpStream, duration_ns: u64, patience_ns: u64) -> Result<BulkResult, Error> {
    let begin = monotonic();
    let end = begin + duration_ns + patience_ns;
    stream.set_read_timeout(Some(GLANCE)).map_err(io("setting a timeout"))?;
    let half = begin + duration_ns / 2;
    let (mut bytes, mut before_half, mut half_time) = (0_u64, 0, half);
    let mut data = vec![0_u8; CHUNK_BYTES];
    let mut last = begin;
    while monotonic() < end {
        match stream.read(&mut data) {
            Ok(0) => break,
            Ok(length) => {
                last = monotonic();
                bytes += length as u64;
                if last <= half {
                    (before_half, half_time) = (bytes, last);
                }
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) if is_no_end(&error) => {}
            Err(error) => return Err(io("receiving")(error)),
        }
    }
    let seconds = last.saturating_sub(half_time) as f64 / 1e9;
    let bit_per_s = if seconds > 0.0 { (bytes - before_half) as f64 * 8.0 / seconds } else { 0.0 };
    Ok(BulkResult { bytes, bit_per_s })
}
