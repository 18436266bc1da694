//! Request to hear a Digital Human before any call.

use ringer_media::codec::Codec;
use schemars::JsonSchema;
use serde::Deserialize;

use super::digital_human::DigitalHumanSpec;

words! {
    /// Part of a caller's sound. `clean`: the voice alone; `sent`: as the agent hears it; `noise`: the noise alone.
    PreviewPart { Clean = "clean", Sent = "sent", Noise = "noise" } default Sent
}

/// Request to hear a Digital Human.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct PreviewRequest {
    /// Digital Human, which need not be stored.
    pub digital_human: DigitalHumanSpec,
    /// Words that it says; absent: the beginning of its intent.
    #[serde(default)]
    #[schemars(length(min = 1, max = 500))]
    pub text: Option<String>,
    /// Codec of the call; absent: the first of the settings.
    #[serde(default)]
    #[schemars(extend("enum" = Codec::NAMES))]
    pub codec: Option<String>,
    /// Part of the sound: clean, sent or noise.
    #[serde(default)]
    pub part: PreviewPart,
}
