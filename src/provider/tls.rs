//! Trust in servers: certificates of the well-known authorities, and of authorities that the settings add.

use std::path::Path;
use std::sync::{Arc, Once};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// Chooses the cryptography of all HTTP clients of this process; one has to be chosen before the first client is made.
pub fn install_tls() {
    static TLS: Once = Once::new();
    TLS.call_once(|| {
        // Somebody else may have installed one before: then that one serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// Authorities beside the well-known ones; none unless they were read.
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
        let all = all.map_err(|_| bad("it is no file of PEM certificates"))?;
        if all.is_empty() {
            return Err(bad("it holds no PEM certificate"));
        }
        let mut store = RootCertStore::empty();
        for root in &all {
            store.add(root.clone()).map_err(|_| bad("it holds a certificate that cannot be trusted"))?;
        }
        Ok(Roots(all.into()))
    }

    /// Returns a client of HTTP that trusts these, too.
    pub(super) fn trusted_by(&self, client: reqwest::ClientBuilder) -> reqwest::Result<reqwest::Client> {
        let with = |client: reqwest::ClientBuilder, root: &CertificateDer<'_>| {
            reqwest::Result::Ok(client.add_root_certificate(reqwest::Certificate::from_der(root)?))
        };
        self.0.iter().try_fold(client, with)?.build()
    }

    /// Returns a TLS configuration for clients that trust these authorities too. `None`: only the well-known ones,
    /// which clients trust by default.
    pub(super) fn client(&self) -> Option<Arc<ClientConfig>> {
        if self.0.is_empty() {
            return None;
        }
        Some(Arc::new(ClientConfig::builder().with_root_certificates(self.store()).with_no_client_auth()))
    }

    /// Returns the well-known authorities with these.
    pub fn store(&self) -> RootCertStore {
        let mut store = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        store.add_parsable_certificates(self.0.iter().cloned());
        store
    }
}

#[cfg(test)]
mod tests;
