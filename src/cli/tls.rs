//! Certificates of SIP over TLS: by flags, for the commands that call or answer by themselves, and by the settings.

use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::provider::tls::Roots;
use crate::transport::sip::tls::{Identity, TlsSettings};

/// Flags of SIP over TLS.
#[derive(Debug, Default, clap::Args)]
pub struct TlsFlags {
    /// PEM certificates of authorities that are trusted beside the well-known ones
    #[arg(long, value_name = "FILE")]
    pub tls_root_file: Option<PathBuf>,
    /// Host and port whose certificate is not verified, exact; may be given several times
    #[arg(long, value_name = "HOST:PORT")]
    pub tls_insecure_host: Vec<String>,
    /// PEM certificate of this side, for a tls: address and for servers that ask for one
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_certificate: Option<PathBuf>,
    /// PEM private key of that certificate
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub tls_key: Option<PathBuf>,
}

impl TlsFlags {
    /// True if any of them is given beside the authorities.
    pub fn is_more_than_roots(&self) -> bool {
        self.tls_certificate.is_some() || self.tls_key.is_some() || !self.tls_insecure_host.is_empty()
    }

    /// Reads the files that the flags name.
    ///
    /// # Errors
    /// Names the flag, the file and the reason.
    pub fn settings(&self) -> Result<TlsSettings, String> {
        let identity = self.tls_certificate.as_deref().zip(self.tls_key.as_deref());
        Ok(TlsSettings {
            roots: roots("--tls-root-file", self.tls_root_file.as_deref())?,
            identity: own(["--tls-certificate", "--tls-key"], identity)?,
            insecure_hosts: self.tls_insecure_host.clone(),
        })
    }
}

/// Reads the files of the settings.
///
/// # Errors
/// Names the setting, the file and the reason.
pub(crate) fn from_config(config: &Config) -> Result<TlsSettings, String> {
    let identity = config.sip.tls_certificate.as_deref().zip(config.sip.tls_key.as_deref());
    Ok(TlsSettings {
        roots: roots("tls.root_file", config.tls.root_file.as_deref())?,
        identity: own(["sip.tls_certificate", "sip.tls_key"], identity)?,
        insecure_hosts: config.tls.insecure_hosts.clone(),
    })
}

fn roots(name: &str, path: Option<&Path>) -> Result<Roots, String> {
    path.map_or_else(|| Ok(Roots::default()), Roots::from_file).map_err(|why| format!("{name}: {why}"))
}

fn own(names: [&str; 2], paths: Option<(&Path, &Path)>) -> Result<Option<Identity>, String> {
    let Some((certificate, key)) = paths else { return Ok(None) };
    let read = Identity::load(certificate, key);
    read.map(Some).map_err(|(is_key, why)| format!("{}: {why}", names[usize::from(is_key)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_its_setting() {
        let missing = Some(PathBuf::from("/nowhere/a.pem"));
        let flags = TlsFlags { tls_root_file: missing.clone(), ..TlsFlags::default() };
        let why = flags.settings().expect_err("there is no such file");
        assert!(why.starts_with("--tls-root-file: /nowhere/a.pem: No such file"), "{why}");
        let mut config = Config::default();
        (config.sip.tls_certificate, config.sip.tls_key) = (missing.clone(), missing);
        let why = from_config(&config).expect_err("there is no such file");
        assert!(why.starts_with("sip.tls_certificate: /nowhere/a.pem: No such file"), "{why}");
    }
}
