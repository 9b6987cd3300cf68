//! The server reads recordings of strangers, so it runs as an ordinary user.

use std::io;

/// Numeric user and group of the server. They differ from the browser's, so that neither can affect the
/// other.
const USER: u32 = 65_533;

/// If the process is root, becomes an ordinary user for good. Call once all files and sockets are open.
pub fn give_up() -> io::Result<()> {
    // SAFETY: plain system calls, checked below; the process has one thread.
    unsafe {
        if libc::geteuid() != 0 {
            return Ok(());
        }
        let done = [
            libc::setgroups(0, std::ptr::null()),
            libc::setgid(USER),
            libc::setuid(USER),
            // A change of user clears this signal, so set it again: the server ends with its parent.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL),
        ];
        if done.contains(&-1) { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
