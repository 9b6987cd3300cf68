//! What all ends have in common that browsers connect to: TLS with the run's own authority, and what a client says
//! of priorities on an HTTP/2 connection.

mod tap;
mod tls;

pub use tap::{Seen, Tap};
pub use tls::{AUTHORITY, Authority, CertificateError};
