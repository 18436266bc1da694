//! Trust in servers: certificates of the well-known authorities, and of authorities that the settings add.

use std::path::Path;
use std::sync::{Arc, Once};

use reqwest::redirect;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Most redirects of one request that are followed.
const MOST_REDIRECTS: usize = 5;

/// Chooses the cryptography of all HTTP clients of this process; one has to be chosen before the first client is made.
pub fn install_tls() {
    static TLS: Once = Once::new();
    TLS.call_once(|| {
        // Somebody else may have installed one before: then that one serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Authorities beside the well-known ones; none unless they were read. A server's own certificate may be among them: it
/// is then pinned, so that a self-signed one is believed for the names that it has.
#[derive(Clone, Debug, Default)]
pub struct Roots(Arc<[CertificateDer<'static>]>);

impl Roots {
    /// Reads certificates from a file (PEM, RFC 7468), one or several.
    ///
    /// # Errors
    /// The file cannot be read, holds no certificate, or one that no authority can have. The text names the file.
    pub fn from_file(path: &Path) -> Result<Roots, String> {
        let bad = |why: &str| format!("{}: {why}", path.display());
        let bytes = std::fs::read(path).map_err(|error| bad(&error.to_string()))?;
        let all: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
        let all = all.map_err(|error| bad(&format!("it is no file of PEM certificates: {error}")))?;
        if all.is_empty() {
            return Err(bad("it holds no PEM certificate"));
        }
        let mut store = RootCertStore::empty();
        for root in &all {
            let added = store.add(root.clone());
            added.map_err(|error| bad(&format!("it holds a certificate that cannot be trusted: {error}")))?;
        }
        Ok(Roots(all.into()))
    }

    /// Returns a client of HTTP that trusts these, too. Its requests carry keys: a redirect to another place is not
    /// followed.
    pub fn trusted_by(&self, client: reqwest::ClientBuilder) -> reqwest::Result<reqwest::Client> {
        self.build(client.redirect(redirect::Policy::custom(within_one_place)))
    }

    /// Returns a client of HTTP that trusts these, too.
    pub fn build(&self, client: reqwest::ClientBuilder) -> reqwest::Result<reqwest::Client> {
        // Also without authorities of one's own: the crate would trust those of the machine, too.
        let mut config = self.config();
        config.alpn_protocols = [&b"h2"[..], b"http/1.1"].map(<[u8]>::to_vec).into();
        client.use_preconfigured_tls(config).build()
    }

    /// Returns the certificates, each in DER.
    pub fn certificates(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|certificate| certificate.as_ref())
    }

    /// Returns a TLS configuration for clients that trust these authorities too. `None`: only the well-known ones,
    /// which clients trust by default.
    pub fn client(&self) -> Option<Arc<ClientConfig>> {
        if self.0.is_empty() {
            return None;
        }
        Some(Arc::new(self.config()))
    }

    /// Returns a TLS configuration for clients that trust the well-known authorities and these, for the names of hosts.
    pub fn config(&self) -> ClientConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(self.store()), provider.clone()).build();
        let usual = usual.expect("the well-known authorities are there");
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = versions.expect("ring has both versions").dangerous();
        config.with_custom_certificate_verifier(Arc::new(Pinning { usual, roots: self.clone() })).with_no_client_auth()
    }

    /// True if `certificate`, which was refused for this error, is one of these itself and within its time. Its names
    /// are still to be checked.
    pub fn pins(&self, certificate: &CertificateDer<'_>, error: &Error) -> bool {
        use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
        let untimely = matches!(
            error,
            Error::InvalidCertificate(Expired | ExpiredContext { .. } | NotValidYet | NotValidYetContext { .. })
        );
        !untimely && self.0.iter().any(|root| root == certificate)
    }

    /// Returns the well-known authorities with these.
    pub fn store(&self) -> RootCertStore {
        let mut store = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        store.add_parsable_certificates(self.0.iter().cloned());
        store
    }
}

/// Follows a redirect to the same scheme, host and port; any other is the answer.
fn within_one_place(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let place = |url: &url::Url| url.origin();
    let is_same = attempt.previous().last().is_some_and(|before| place(before) == place(attempt.url()));
    match attempt.previous().len() {
        MOST_REDIRECTS.. => attempt.error("too many redirects"),
        _ if is_same => attempt.follow(),
        _ => attempt.stop(),
    }
}

/// Judge of the certificates of servers, which takes those that the settings name themselves.
#[derive(Debug)]
struct Pinning {
    usual: Arc<WebPkiServerVerifier>,
    roots: Roots,
}

impl ServerCertVerifier for Pinning {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(error) if self.roots.pins(end_entity, &error) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_of_certificates_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let check = |name: &str, text: Option<&str>, expect: &str| {
            let path = folder.path().join(name);
            text.iter().for_each(|text| std::fs::write(&path, text).expect("written"));
            let why = Roots::from_file(&path).expect_err("it cannot be used");
            assert!(why.contains(name) && why.contains(expect), "{why}");
        };
        check("none.pem", None, "No such file");
        check("empty.pem", Some(""), "it holds no PEM certificate");
        check(
            "key.pem",
            Some("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
            "it holds no PEM certificate",
        );
        check(
            "broken.pem",
            Some("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"),
            "it is no file of PEM",
        );
        check("bad.pem", Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "cannot be trusted");
    }
}
