//! flite (Debian `flite`): American and Scottish English, clear enough for recognizers. Only its command line and its
//! voices' measured figures; running it is [`super::speech`]'s.

use std::path::Path;

use tokio::process::Command;

use super::prosody::Range;

/// Name of the program, and of its Debian package.
pub(super) const PROGRAM: &str = "flite";

/// A voice with its figures at `duration_stretch=1`.
#[derive(Debug)]
pub(super) struct FliteVoice {
    pub(super) name: &'static str,
    /// Words per minute over short sentences and over a 52-word text (the mean of both), pauses over 300 ms left out.
    natural_wpm: f32,
    /// Mean of the fundamental; `None` where the voice ignores `int_f0_target_mean`.
    pitch_hz: Option<f32>,
    /// Spread of the callers that share the voice.
    pub(super) range: Range,
}

impl FliteVoice {
    /// Returns the playback speed that gives this pitch, as far as the program itself cannot make it.
    pub(super) fn played(&self, pitch: f32) -> f32 {
        if self.pitch_hz.is_some() { 1.0 } else { pitch }
    }
}

/// Voice of a woman whose formants are high. Pocketsphinx takes 14 of 100 words wrongly as they are, 4 when they are a
/// tenth lower, and half when they are a tenth higher.
const WOMEN: Range = Range { pitch: (0.82, 1.28), formant: (0.88, 0.96) };
/// The voices of men, which stay as well understood with higher formants, and not with lower ones.
const MEN: Range = Range { pitch: (0.86, 1.28), formant: (0.97, 1.1) };

/// The voices, best understood first (`kal` is an 8 kHz diphone voice).
pub(super) const VOICES: [FliteVoice; 5] = [
    FliteVoice { name: "slt", natural_wpm: 212.0, pitch_hz: Some(170.0), range: WOMEN },
    FliteVoice { name: "rms", natural_wpm: 190.0, pitch_hz: None, range: MEN },
    FliteVoice { name: "awb", natural_wpm: 216.0, pitch_hz: Some(129.0), range: MEN },
    FliteVoice { name: "kal16", natural_wpm: 232.0, pitch_hz: Some(86.0), range: MEN },
    FliteVoice { name: "kal", natural_wpm: 232.0, pitch_hz: Some(86.0), range: MEN },
];

/// Returns the voice of this name.
pub(super) fn voice(name: &str) -> Option<&'static FliteVoice> {
    VOICES.iter().find(|voice| voice.name == name)
}

/// Reads the text on its standard input, writes a WAV file to `out` (it cannot write into a pipe).
pub(super) fn command(voice: &FliteVoice, rate_wpm: f32, pitch: f32, out: &Path) -> Command {
    let stretch = (voice.natural_wpm / rate_wpm.max(1.0)).clamp(0.3, 4.0);
    let mut command = Command::new(PROGRAM);
    command.args(["-voice", voice.name, "--setf", &format!("duration_stretch={stretch:.4}")]);
    if let Some(mean_hz) = voice.pitch_hz {
        command.args(["--setf", &format!("int_f0_target_mean={:.1}", mean_hz * pitch)]);
    }
    command.args(["-f", "/dev/stdin", "-o"]).arg(out);
    command
}
