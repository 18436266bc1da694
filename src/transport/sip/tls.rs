//! TLS of SIP connections: certificates shown and certificates believed (RFC 3261 26.3, RFC 5922).
//!
//! The certificate of a server has to name the domain that was called: by a `sip:` URI among its alternative names,
//! which then decide (RFC 5922 7.1), else by DNS name or address. A wildcard is taken where it stands for one label of
//! a DNS name, as on the web; RFC 5922 7.2 takes none, but certificates of hosted agents have them. The subject's
//! common name is not looked at.

use std::path::Path;
use std::sync::Arc;
use std::{fmt, io};

use ringer_base::tls::Roots;
use ringer_sip::{Hop, Transport};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    ServerConfig, SignatureScheme,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Certificate of this side with its private key.
#[derive(Clone)]
pub struct Identity(Arc<CertifiedKey>);

impl fmt::Debug for Identity {
    /// Shows how many certificates there are, and nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({} certificates)", self.0.cert.len())
    }
}

impl Identity {
    /// Reads PEM files: the certificate with those between it and its authority, and the private key.
    ///
    /// # Errors
    /// True stands beside the text where the key is what cannot be used. The text names the file and the reason.
    pub fn load(certificate: &Path, key: &Path) -> Result<Identity, (bool, String)> {
        let bad = |path: &Path, why: &str| format!("{}: {why}", path.display());
        let read = |path: &Path| std::fs::read(path).map_err(|error| bad(path, &error.to_string()));
        let bytes = read(certificate).map_err(|why| (false, why))?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
        let chain =
            chain.map_err(|error| (false, bad(certificate, &format!("it is no file of PEM certificates: {error}"))))?;
        if chain.is_empty() {
            return Err((false, bad(certificate, "it holds no PEM certificate")));
        }
        let bytes = read(key).map_err(|why| (true, why))?;
        let private = PrivateKeyDer::from_pem_slice(&bytes);
        let private = private.map_err(|error| (true, bad(key, &format!("it holds no PEM private key: {error}"))))?;
        Identity::new(chain, private).map_err(|error| match error {
            Error::InconsistentKeys(_) => (true, bad(key, &format!("it is not the key of {}", certificate.display()))),
            Error::InvalidCertificate(why) => {
                (false, bad(certificate, &format!("it holds a certificate that cannot be used: {why:?}")))
            }
            other => (true, bad(key, &format!("it is of a kind that cannot be used: {other}"))),
        })
    }

    /// Takes a certificate with those after it, and its key.
    ///
    /// # Errors
    /// They do not belong together, or are of a kind that is not known.
    pub fn new(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<Identity, Error> {
        Ok(Identity(Arc::new(CertifiedKey::from_der(chain, key, &provider())?)))
    }

    /// Returns the side that is connected to and shows this certificate.
    pub fn acceptor(&self) -> TlsAcceptor {
        let versions = ServerConfig::builder_with_provider(Arc::new(provider())).with_safe_default_protocol_versions();
        let config = versions.expect("ring has both versions").with_no_client_auth();
        TlsAcceptor::from(Arc::new(config.with_cert_resolver(Arc::new(SingleCertAndKey::from(self.0.clone())))))
    }
}

/// Certificates that are shown and believed by SIP over TLS.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// Authorities beside the well-known ones.
    pub roots: Roots,
    /// Certificate of this side; `None`: no listener, and nothing for servers that ask for one.
    pub identity: Option<Identity>,
    /// `host:port` of servers whose certificates are not verified.
    pub insecure_hosts: Vec<String>,
}

impl TlsSettings {
    /// True for a place whose certificate is not verified, by its address or by the name that it was called by.
    pub fn is_insecure(&self, hop: &Hop) -> bool {
        let name = hop.server_name.as_deref().map(|name| format!("{name}:{}", hop.address.port()));
        let places = [Some(hop.address.to_string()), name];
        let is_listed = |place: &String| self.insecure_hosts.iter().any(|host| host.eq_ignore_ascii_case(place));
        hop.transport == Transport::Tls && places.iter().flatten().any(is_listed)
    }
}

/// TLS of both sides, ready to be used.
#[derive(Clone)]
pub(super) struct Tls {
    verified: Arc<ClientConfig>,
    unverified: Arc<ClientConfig>,
    server: Option<Arc<ServerConfig>>,
    settings: Arc<TlsSettings>,
}

impl Tls {
    /// Makes the two sides from the settings.
    pub(super) fn new(settings: &TlsSettings) -> Tls {
        let provider = Arc::new(provider());
        let identity = settings.identity.as_ref().map(|Identity(key)| Arc::new(SingleCertAndKey::from(key.clone())));
        let client = |roots| {
            let pins = settings.roots.clone();
            let verifier = Verifier { roots, pins, algorithms: provider.signature_verification_algorithms };
            let versions = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
            let config = versions.expect("ring has both versions").dangerous();
            let config = config.with_custom_certificate_verifier(Arc::new(verifier));
            Arc::new(match identity.clone() {
                Some(identity) => config.with_client_cert_resolver(identity),
                None => config.with_no_client_auth(),
            })
        };
        let server = identity.clone().map(|identity| {
            let versions = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
            let config = versions.expect("ring has both versions").with_no_client_auth();
            Arc::new(config.with_cert_resolver(identity))
        });
        Tls {
            verified: client(Some(settings.roots.store())),
            unverified: client(None),
            server,
            settings: Arc::new(settings.clone()),
        }
    }

    /// Returns the side that is connected to; `None` without a certificate.
    pub(super) fn acceptor(&self) -> Option<TlsAcceptor> {
        self.server.clone().map(TlsAcceptor::from)
    }

    /// Returns the side that connects to `hop`, and the name that the certificate there has to have.
    ///
    /// # Errors
    /// The name can be in no certificate.
    pub(super) fn connector(&self, hop: &Hop) -> Result<(TlsConnector, ServerName<'static>), String> {
        let name = match &hop.server_name {
            Some(name) => ServerName::try_from(name.trim_end_matches('.').to_owned())
                .map_err(|_| format!("TLS failed: {name:?} is no name that a certificate can have"))?,
            None => ServerName::IpAddress(hop.address.ip().into()),
        };
        let config = if self.settings.is_insecure(hop) { &self.unverified } else { &self.verified };
        Ok((TlsConnector::from(config.clone()), name))
    }
}

/// Returns a client that takes certificates of the well-known authorities and of `roots` for the names of hosts.
pub fn verified_client(roots: &Roots) -> Arc<ClientConfig> {
    Arc::new(roots.config())
}

/// Returns a client that takes every certificate.
pub fn unverified_client() -> Arc<ClientConfig> {
    let provider = Arc::new(provider());
    let verifier =
        Verifier { roots: None, pins: Roots::default(), algorithms: provider.signature_verification_algorithms };
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = versions.expect("ring has both versions").dangerous();
    Arc::new(config.with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

/// Judge of the certificates of servers.
#[derive(Debug)]
struct Verifier {
    /// Authorities; `None`: every certificate is taken.
    roots: Option<RootCertStore>,
    /// Certificates of servers that are believed themselves.
    pins: Roots,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(roots) = &self.roots else { return Ok(ServerCertVerified::assertion()) };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let names = webpki::EndEntityCert::try_from(end_entity).map_err(|_| CertificateError::BadEncoding)?;
        let trusted =
            verify_server_cert_signed_by_trust_anchor(&certificate, roots, intermediates, now, self.algorithms.all);
        let trusted = trusted.or_else(|error| if self.pins.pins(end_entity, &error) { Ok(()) } else { Err(error) });
        trusted.map_err(|error| match error {
            // Which of the two is told depends on what the certificate may be used for.
            Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::Other(_))
                if names.issuer() == names.subject() =>
            {
                fault(Fault::SelfSigned)
            }
            error => error,
        })?;
        let sip: Vec<&str> = names.valid_uri_names().filter_map(sip_domain).collect();
        let is_named = sip.iter().any(|domain| domain.eq_ignore_ascii_case(&server_name.to_str()));
        if is_named {
            return Ok(ServerCertVerified::assertion());
        }
        if sip.is_empty() || matches!(server_name, ServerName::IpAddress(_)) {
            verify_server_name(&certificate, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        Err(fault(Fault::OtherDomain(sip.join(", "))))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Returns the domain that a URI names as a SIP domain: `sip:domain`, without user (RFC 5922 7.1).
fn sip_domain(uri: &str) -> Option<&str> {
    let (scheme, rest) = uri.split_once(':')?;
    let host = rest.split([';', '?']).next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("sip") && !rest.contains('@') && !host.is_empty()).then_some(host)
}

/// Fault of a certificate that the library has no word for.
#[derive(Debug)]
enum Fault {
    SelfSigned,
    /// The certificate is for these SIP domains.
    OtherDomain(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::SelfSigned => f.write_str("its certificate is self-signed, and no trusted authority vouches for it"),
            Fault::OtherDomain(names) => write!(f, "its certificate is for the SIP domain {names} alone"),
        }
    }
}

impl std::error::Error for Fault {}

fn fault(fault: Fault) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(fault))))
}

/// Returns why a handshake with `peer` failed, for a person.
pub fn explain(error: &io::Error, peer: &str) -> String {
    format!("TLS with {peer} failed: {}", reason(error))
}

/// Returns the cause of an error of a connection, for a person. A server of TLS 1.3 refuses a client without a
/// certificate after the handshake only (RFC 8446 4.4.2.4).
pub fn reason(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        Some(Error::InvalidCertificate(problem)) => certificate_problem(problem),
        Some(Error::AlertReceived(AlertDescription::CertificateRequired)) => {
            "the server asks for a client certificate (SIP: sip.tls_certificate, --tls-certificate)".to_owned()
        }
        Some(Error::AlertReceived(
            alert @ (AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::CertificateUnknown
            | AlertDescription::HandshakeFailure),
        )) => format!("it refused the handshake ({alert:?}); it may ask for another client certificate, or for one"),
        Some(Error::AlertReceived(alert)) => format!("it refused the handshake ({alert:?})"),
        Some(Error::InvalidMessage(_)) => "it does not speak TLS at this port".to_owned(),
        Some(Error::PeerIncompatible(why)) => format!("it has no version or cipher of TLS in common ({why:?})"),
        Some(other) => other.to_string(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => "it closed the connection in the handshake".to_owned(),
        None => error.to_string(),
    }
}

fn certificate_problem(problem: &CertificateError) -> String {
    match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet".to_owned()
        }
        // An authority of the same name and another key has made such a signature.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "no trusted authority has issued its certificate".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let expected = expected.to_str();
            let presented = if presented.is_empty() { "no name".to_owned() } else { presented.join(", ") };
            format!("its certificate is not for {expected}, but for {presented}")
        }
        CertificateError::NotValidForName => "its certificate is for another name".to_owned(),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "its certificate is not one for servers".to_owned()
        }
        CertificateError::Revoked => "its certificate was revoked".to_owned(),
        CertificateError::BadEncoding => "its certificate cannot be read".to_owned(),
        CertificateError::Other(OtherError(inner)) if inner.is::<Fault>() => inner.to_string(),
        other => format!("its certificate is not accepted ({other})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sip_domains_are_told_from_other_uris() {
        for (uri, expect) in [
            ("sip:example.com", Some("example.com")),
            ("SIP:Example.com;transport=tls", Some("Example.com")),
            ("sip:alice@example.com", None),
            ("sips:example.com", None),
            ("https://example.com", None),
            ("sip:", None),
        ] {
            assert_eq!(sip_domain(uri), expect, "{uri}");
        }
    }

    #[test]
    fn a_client_certificate_that_is_wanted_is_named() {
        let reason_of = |alert| reason(&io::Error::other(Error::AlertReceived(alert)));
        assert!(reason_of(AlertDescription::CertificateRequired).contains("the server asks for a client certificate"));
        assert!(reason_of(AlertDescription::HandshakeFailure).contains("it may ask for another client certificate"));
        assert_eq!(reason_of(AlertDescription::ProtocolVersion), "it refused the handshake (ProtocolVersion)");
        assert_eq!(reason(&io::Error::from(io::ErrorKind::ConnectionReset)), "connection reset");
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let (one, other) = (rcgen::KeyPair::generate().expect("a key"), rcgen::KeyPair::generate().expect("a key"));
        let made = rcgen::CertificateParams::new(["a.example".to_owned()]).and_then(|params| params.self_signed(&one));
        std::fs::write(path("good.pem"), made.expect("it is signed").pem()).expect("written");
        std::fs::write(path("good.key"), one.serialize_pem()).expect("written");
        std::fs::write(path("other.key"), other.serialize_pem()).expect("written");
        std::fs::write(path("empty.pem"), "").expect("written");
        assert!(Identity::load(&path("good.pem"), &path("good.key")).is_ok());
        let check = |certificate: &str, key: &str, is_key: bool, expect: &str| {
            let (named_key, why) = Identity::load(&path(certificate), &path(key)).expect_err(expect);
            assert!(named_key == is_key && why.contains(expect), "{why}");
            assert!(why.contains(if is_key { key } else { certificate }), "{why}");
        };
        check("none.pem", "good.key", false, "No such file");
        check("empty.pem", "good.key", false, "it holds no PEM certificate");
        check("good.pem", "none.key", true, "No such file");
        check("good.pem", "empty.pem", true, "it holds no PEM private key");
        check("good.pem", "good.pem", true, "it holds no PEM private key");
        check("good.pem", "other.key", true, "it is not the key of");
    }
}
