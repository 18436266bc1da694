//! `[media]`: libraries that the audio of calls goes through.

use std::path::PathBuf;

use serde::Serialize;

use super::Source;

/// Settings of the section `[media]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Media {
    /// Library that codes Opus in real calls. Calls in virtual time always have the port.
    pub opus: OpusChoice,
    /// File of libopus; `None`: `libopus.so.0` of the system.
    pub opus_library: Option<PathBuf>,
}

/// Library that codes Opus.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OpusChoice {
    /// libopus where it is installed, else the port.
    #[default]
    Auto,
    /// libopus; `ringer doctor` misses it, and the port takes its place where it cannot be used.
    Libopus,
    /// The port of libopus to Rust, which is a part of this program.
    Port,
}

impl Media {
    pub(super) fn read(&mut self, from: &mut Source) {
        let choice = |text: &str| match text {
            "auto" => Some(OpusChoice::Auto),
            "libopus" => Some(OpusChoice::Libopus),
            "port" => Some(OpusChoice::Port),
            _ => None,
        };
        from.read_parsed("media.opus", "auto, libopus or port", choice, &mut self.opus);
        let file = |text: &str| (!text.is_empty()).then(|| Some(PathBuf::from(text)));
        from.read_parsed("media.opus_library", "a file", file, &mut self.opus_library);
    }
}
