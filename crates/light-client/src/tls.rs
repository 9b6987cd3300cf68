//! TLS: the one authority that is trusted, and the settings of a visit.

use crate::Failure;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use sha2::{Digest, Sha256};
use std::sync::{Arc, OnceLock};
use wirepaint_run::{Browser, Tls, Transport};

/// Sessions that a visit keeps for resumption.
const SESSIONS: usize = 256;

/// SHA-256 of the SubjectPublicKeyInfo of a certificate authority.
pub type Spki = [u8; 32];

/// Reads the hash as the replay server prints it.
pub fn authority_of(text: &str) -> Result<Spki, Failure> {
    let bytes = STANDARD.decode(text).ok();
    let found = || Failure::Authority { found: text.to_owned() };
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(found)
}

/// Who is trusted. Its users share what it has found out.
pub struct Trust {
    provider: Arc<CryptoProvider>,
    verifier: Arc<OfAuthority>,
}

impl Trust {
    /// Trusts certificates that this authority has signed; without one, none.
    pub fn new(authority: Option<Spki>) -> Trust {
        let provider = Arc::new(default_provider());
        let verifier = OfAuthority { authority, provider: provider.clone(), known: OnceLock::new() };
        Trust { provider, verifier: Arc::new(verifier) }
    }

    /// The settings of one visit, which holds no session yet.
    pub fn settings(&self, transport: &Transport, browser: &Browser) -> Result<Settings, Error> {
        let version = match transport.tls {
            Tls::V13 => &rustls::version::TLS13,
            Tls::V12 => &rustls::version::TLS12,
        };
        let mut config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[version])?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier.clone())
            .with_no_client_auth();
        config.alpn_protocols = transport.http.offered().map(|name| name.as_bytes().to_vec()).collect();
        config.resumption = match browser.resume {
            true => Resumption::in_memory_sessions(SESSIONS),
            false => Resumption::disabled(),
        };
        let config = Arc::new(config);
        let own = hello_bytes(config.clone())?;
        let asked = browser.hello.offering.get(&transport.http).map_or(0, |&bytes| bytes as usize);
        let offered =
            config.alpn_protocols.iter().cloned().chain(filling(asked.saturating_sub(own))).collect();
        Ok(Settings { config, offered })
    }
}

/// The TLS settings of a visit.
pub struct Settings {
    config: Arc<ClientConfig>,
    /// Names of protocols, with those that make the hello as long as the browser's.
    offered: Vec<Vec<u8>>,
}

impl Settings {
    /// A connection to a server of this name.
    pub fn connection(&self, name: ServerName<'static>) -> Result<ClientConnection, Error> {
        ClientConnection::new_with_alpn(self.config.clone(), name, self.offered.clone())
    }
}

/// Bytes of a client's hello without the name of the host and without a ticket.
fn hello_bytes(config: Arc<ClientConfig>) -> Result<usize, Error> {
    const HOST: &str = "a.test";
    let name = ServerName::try_from(HOST).expect("a name");
    let mut hello = Vec::new();
    ClientConnection::new(config, name)?
        .write_tls(&mut hello)
        .map_err(|error| Error::General(error.to_string()))?;
    Ok(hello.len() - HOST.len())
}

/// Names of protocols that take so many bytes in a hello: servers ignore names that they do not know (RFC 7301).
/// Chromium's hello is that long because of its post-quantum key share, and needs a second segment.
fn filling(mut bytes: usize) -> impl Iterator<Item = Vec<u8>> {
    std::iter::from_fn(move || {
        // One byte of length, at least one of name.
        let size = (2..=256).contains(&bytes).then_some(bytes).or((bytes > 256).then_some(255))?;
        bytes -= size;
        Some(vec![b'-'; size - 1])
    })
}

/// Verifies certificates as usual, with one authority as the only root. The authority's own certificate comes with
/// the server's, as its key is known and not its certificate.
#[derive(Debug)]
struct OfAuthority {
    authority: Option<Spki>,
    provider: Arc<CryptoProvider>,
    /// Made when the authority's certificate has come for the first time.
    known: OnceLock<Arc<WebPkiServerVerifier>>,
}

impl OfAuthority {
    fn verifier(&self, chain: &[CertificateDer<'_>]) -> Result<Arc<WebPkiServerVerifier>, Error> {
        if let Some(known) = self.known.get() {
            return Ok(known.clone());
        }
        let is_it = |certificate: &&CertificateDer<'_>| {
            let parsed = ParsedCertificate::try_from(*certificate).ok();
            let spki = parsed.map(|parsed| Sha256::digest(parsed.subject_public_key_info()).into());
            spki.is_some() && spki == self.authority
        };
        let unknown = || Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let root = chain.iter().find(is_it).ok_or_else(unknown)?;
        let mut roots = RootCertStore::empty();
        roots.add(root.clone().into_owned())?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), self.provider.clone())
            .build()
            .map_err(|error| Error::General(error.to_string()))?;
        Ok(self.known.get_or_init(|| verifier).clone())
    }
}

impl ServerCertVerifier for OfAuthority {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier(chain)?.verify_server_cert(leaf, chain, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirepaint_page_model::catalogue::chromium;
    use wirepaint_run::HttpVersion;

    #[test]
    fn a_hello_is_as_long_as_the_browsers() {
        for http in [HttpVersion::H1, HttpVersion::H2] {
            let (browser, transport) = (chromium(), Transport { http, ..Transport::default() });
            let settings = Trust::new(None).settings(&transport, &browser).unwrap();
            let mut hello = Vec::new();
            let name = ServerName::try_from("host.test").unwrap();
            settings.connection(name).unwrap().write_tls(&mut hello).unwrap();
            assert_eq!(hello.len(), browser.hello.offering[&http] as usize + "host.test".len());
        }
    }

    #[test]
    fn filling_takes_as_many_bytes_as_are_asked_for_or_one_less() {
        for bytes in 0..1500 {
            let taken: usize = filling(bytes).map(|name| 1 + name.len()).sum();
            assert_eq!(taken, if bytes == 1 { 0 } else { bytes });
        }
    }
}
