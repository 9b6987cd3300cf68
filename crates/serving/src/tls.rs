//! The run's own certificate authority and the certificates of the origins.

use base64::Engine;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData,
};
use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{Ticketer, default_provider, sign::any_ecdsa_type};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ProducesTickets, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;
use wirepaint_run::{Tls, Transport};

/// File in the run's work folder with the authority's certificate and key, if a proxy ends TLS.
pub const AUTHORITY: &str = "authority.pem";
/// How errors name the authority.
const OF_RUN: &str = "the run's authority";
/// Bytes by which rustls counts a record larger than its plaintext.
const RECORD_HEADER: usize = 5;

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
#[error("certificate for {host:?}: {reason}")]
pub struct CertificateError {
    /// Host name.
    pub host: String,
    /// The library's error.
    pub reason: String,
}

/// A certificate authority (ECDSA P-256) that lives as long as the run.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    /// Certificate and key, for a proxy that ends TLS.
    pub pem: String,
    leaf: KeyPair,
    provider: Arc<CryptoProvider>,
    tickets: Arc<dyn ProducesTickets>,
    /// Base64 of the SHA-256 of the CA's SubjectPublicKeyInfo, as Chromium's
    /// `--ignore-certificate-errors-spki-list` takes it.
    pub spki_sha256: String,
}

impl Authority {
    /// Makes new keys.
    pub fn new() -> Result<Authority, CertificateError> {
        let attempt = || -> Result<Authority, rcgen::Error> {
            let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
            let certificate = parameters().self_signed(&key)?;
            let pem = certificate.pem() + &key.serialize_pem();
            Authority::of(key, certificate.der().clone(), pem)
        };
        attempt().map_err(refusal(OF_RUN))
    }

    /// The authority whose certificate and key are in `pem`, which another end has made.
    pub fn read(pem: &str) -> Result<Authority, CertificateError> {
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(refusal(OF_RUN))?;
        let key = KeyPair::from_pem(&pem[pem.find("-----BEGIN PRIVATE").unwrap_or(0)..])
            .map_err(refusal(OF_RUN))?;
        Authority::of(key, certificate, pem.to_owned()).map_err(refusal(OF_RUN))
    }

    fn of(
        key: KeyPair,
        certificate: CertificateDer<'static>,
        pem: String,
    ) -> Result<Authority, rcgen::Error> {
        let spki = Sha256::digest(key.subject_public_key_info());
        let tickets = Ticketer::new().map_err(|_| rcgen::Error::RingUnspecified)?;
        Ok(Authority {
            issuer: Issuer::new(parameters(), key),
            certificate,
            pem,
            leaf: KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?,
            provider: Arc::new(default_provider()),
            tickets,
            spki_sha256: base64::engine::general_purpose::STANDARD.encode(spki),
        })
    }

    /// Settings of a client that trusts this authority alone. It offers no protocol by ALPN.
    pub fn client(&self, transport: &Transport) -> Result<Arc<ClientConfig>, CertificateError> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).map_err(refusal(OF_RUN))?;
        let config = ClientConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[version(transport)])
            .map_err(refusal(OF_RUN))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::new(config))
    }

    /// TLS settings for the hosts of one address and port. Each host has its own certificate, so
    /// that a browser does not put two hosts on one connection.
    pub fn config(
        &self,
        hosts: &[&str],
        transport: &Transport,
    ) -> Result<Arc<ServerConfig>, CertificateError> {
        let mut certificates = HashMap::new();
        for host in hosts {
            certificates.insert(host.to_ascii_lowercase(), Arc::new(self.certify(host)?));
        }
        let unnamed = hosts.first().and_then(|host| certificates.get(&host.to_ascii_lowercase()).cloned());
        let mut config = ServerConfig::builder_with_provider(self.provider.clone())
            .with_protocol_versions(&[version(transport)])
            .map_err(refusal("protocol versions"))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(ByName { certificates, unnamed }));
        config.alpn_protocols = transport.http.offered().map(|name| name.as_bytes().to_vec()).collect();
        config.ticketer = self.tickets.clone();
        config.max_fragment_size = transport.tls_record_bytes.map(|bytes| bytes as usize + RECORD_HEADER);
        if std::env::var_os("SSLKEYLOGFILE").is_some() {
            config.key_log = Arc::new(rustls::KeyLogFile::new());
        }
        Ok(Arc::new(config))
    }

    fn certify(&self, host: &str) -> Result<CertifiedKey, CertificateError> {
        let attempt = || -> Result<_, rcgen::Error> {
            let mut params = CertificateParams::new([host.to_owned()])?;
            params.distinguished_name.push(DnType::CommonName, host);
            params.use_authority_key_identifier_extension = true;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            Ok(params.signed_by(&self.leaf, &self.issuer)?.der().clone())
        };
        let leaf = attempt().map_err(refusal(host))?;
        let key = PrivateKeyDer::try_from(self.leaf.serialize_der()).map_err(refusal(host))?;
        let key = any_ecdsa_type(&key).map_err(refusal(host))?;
        Ok(CertifiedKey::new(vec![leaf, self.certificate.clone()], key))
    }
}

fn parameters() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "wirepaint run");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn version(transport: &Transport) -> &'static SupportedProtocolVersion {
    match transport.tls {
        Tls::V13 => &rustls::version::TLS13,
        Tls::V12 => &rustls::version::TLS12,
    }
}

fn refusal<E: std::fmt::Display>(host: &str) -> impl FnOnce(E) -> CertificateError {
    let host = host.to_owned();
    move |reason| CertificateError { host, reason: reason.to_string() }
}

/// Chooses a certificate by the name in the ClientHello; without a name, the first host's.
#[derive(Debug)]
struct ByName {
    certificates: HashMap<String, Arc<CertifiedKey>>,
    unnamed: Option<Arc<CertifiedKey>>,
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        match hello.server_name() {
            Some(name) => self.certificates.get(&name.to_ascii_lowercase()).cloned(),
            None => self.unnamed.clone(),
        }
    }
}
