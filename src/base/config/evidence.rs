//! `[evidence]`: what is kept of a call, and who stamps it with the time.

use serde::Serialize;
use url::Url;

use super::Source;

/// Settings of the section `[evidence]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// Contents of a packet capture.
    pub capture: Capture,
    /// Address of an authority that stamps manifests with the time (RFC 3161); `None`: they are not stamped.
    pub timestamp_url: Option<String>,
}

/// Traffic of a call that is captured.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Capture {
    /// Nothing is captured at all.
    Off,
    /// Signalling of the call only.
    #[default]
    Signalling,
    /// Signalling and media are captured, except where the agent asks for redaction.
    Full,
}

impl Evidence {
    /// Reads the settings of the section.
    pub(super) fn read(&mut self, from: &mut Source) {
        let capture = |text: &str| match text {
            "off" => Some(Capture::Off),
            "signalling" => Some(Capture::Signalling),
            "full" => Some(Capture::Full),
            _ => None,
        };
        from.read_parsed("evidence.capture", "one of off, signalling, full", capture, &mut self.capture);
        let is_web = |text: &str| Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        let address = |text: &str| is_web(text).then(|| Some(text.to_owned()));
        from.read_parsed("evidence.timestamp_url", "an http or https URL", address, &mut self.timestamp_url);
    }
}
