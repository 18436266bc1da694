//! espeak-ng (Debian `espeak-ng`): all other languages and accents. Only its command line and its measured figures;
//! running it is [`super::speech`]'s.

use std::path::Path;

use tokio::process::Command;

use super::prosody::{NORMAL_WPM, Range};

/// Name of the program, and of its Debian package.
pub(super) const PROGRAM: &str = "espeak-ng";

/// Speaker variants that stay easy to understand.
pub(super) const FEMALE: [&str; 4] = ["f1", "f2", "f3", "f4"];
/// Speaker variants that stay easy to understand.
pub(super) const MALE: [&str; 4] = ["m1", "m3", "m4", "m7"];

/// Range of the callers of each voice, whose variants differ by themselves.
pub(super) const RANGE: Range = Range { pitch: (0.84, 1.2), formant: (0.94, 1.06) };

/// The program's limits of its speed.
const SPEEDS: (f32, f32) = (80.0, 450.0);
/// Below this speed words are parted by a little silence: the lowest speed alone is 116 to 125 English words per minute
/// in short sentences.
const PARTED_BELOW: f32 = 95.0;
/// Longest silence between words, in the program's steps of 10 ms at its own speed.
const GAP_MAX: u32 = 12;

/// Way in which a language follows the requested speed. Measured over 56 to 67 words, or 12 to 40 s, in three or four
/// voices each.
enum Pace {
    /// Words are counted. One takes this many times as long as an English one at the same speed of the program.
    Words(f32),
    /// Words are not counted by blanks: the speed is a factor of the voice's own. The program needs this power of it.
    Factor(f32),
}

fn pace(name: &str) -> Pace {
    match name.split(['+', '-']).next().unwrap_or(name) {
        "fr" => Pace::Words(0.84),
        "vi" => Pace::Words(0.88),
        "es" => Pace::Words(1.06),
        "hi" => Pace::Words(1.07),
        "de" => Pace::Words(1.15),
        "ru" => Pace::Words(1.28),
        "tr" => Pace::Words(1.74),
        "ar" => Pace::Words(1.76),
        "yue" => Pace::Factor(0.9),
        "ja" => Pace::Factor(0.93),
        "ml" => Pace::Factor(1.05),
        "ko" => Pace::Factor(1.06),
        "cmn" | "zh" => Pace::Factor(1.07),
        _ => Pace::Words(1.0),
    }
}

/// Returns the espeak-ng voice of a language and whether it has the accent.
pub(super) fn language(language: &str, accent: Option<&str>) -> Option<(&'static str, bool)> {
    let (name, native): (_, &[&str]) = match (language, accent) {
        ("en", Some("scottish")) => ("en-gb-scotland", &["scottish"]),
        ("en", _) => ("en", &["british"]),
        ("es", Some("mexican")) => ("es-419", &["mexican"]),
        ("es", _) => ("es", &["spanish"]),
        ("pt", Some("portuguese")) => ("pt", &["portuguese"]),
        ("pt", _) => ("pt-br", &[]),
        ("zh", _) => ("cmn", &["chinese"]),
        ("yue", _) => ("yue", &["chinese"]),
        ("ja", _) => ("ja", &["japanese"]),
        ("tr", _) => ("tr", &["turkish"]),
        ("hi", _) => ("hi", &["hindi", "indian"]),
        ("ml", _) => ("ml", &["indian"]),
        ("ar", _) => ("ar", &["arabic"]),
        ("ru", _) => ("ru", &["russian"]),
        // The full name `fr-fr` would lose the variant, as `en-gb` does.
        ("fr", _) => ("fr", &["french"]),
        ("vi", _) => ("vi", &[]),
        ("de", _) => ("de", &["german"]),
        ("ko", _) => ("ko", &["korean"]),
        _ => return None,
    };
    let any = |accent| matches!(accent, "multilingual" | "autodetect");
    Some((name, accent.is_none_or(|accent| any(accent) || native.contains(&accent))))
}

/// True if a voice of this name takes its speed in words per minute; else it takes a factor of its own speed.
pub(super) fn counts_words(name: &str) -> bool {
    matches!(pace(name), Pace::Words(_))
}

/// Returns the program's speed, and the silence between words, for a speed in English words per minute.
fn speed_and_gap(wpm: f32) -> (f32, u32) {
    // Words per minute = 18.2 + 1.177 * speed, measured over a 52-word text from 100 to 260; a step of silence takes
    // 6.8 % of a word's time.
    let speed = |gap: u32| (wpm * (1.0 + 0.068 * gap as f32) - 18.2) / 1.177;
    if speed(0) >= PARTED_BELOW {
        return (speed(0), 0);
    }
    let gap = (2..GAP_MAX).step_by(2).find(|&gap| speed(gap) >= SPEEDS.0).unwrap_or(GAP_MAX);
    (speed(gap), gap)
}

/// Reads the text on its standard input, writes a WAV file to `out`.
pub(super) fn command(name: &str, rate_wpm: f32, pitch: f32, out: &Path) -> Command {
    let (speed, gap) = match pace(name) {
        Pace::Words(length) => speed_and_gap(rate_wpm * length),
        Pace::Factor(power) => (175.0 * (rate_wpm / NORMAL_WPM).powf(power), 0),
    };
    // 15 steps are 14 % of pitch.
    let pitch = 50.0 + 114.0 * pitch.max(0.1).ln();
    let mut command = Command::new(PROGRAM);
    command.args(["-b", "1", "-v", name, "-s", &format!("{:.0}", speed.clamp(SPEEDS.0, SPEEDS.1))]);
    command.args(["-p", &format!("{:.0}", pitch.clamp(0.0, 99.0)), "--stdin", "-w"]).arg(out);
    if gap > 0 {
        command.args(["-g", &gap.to_string()]);
    }
    command
}

/// Returns a name that may be given to the program: letters, digits, `+`, `-`, `_`, not beginning with a sign. The two
/// full names that would lose their variant are shortened.
pub(super) fn custom(name: &str) -> Option<String> {
    let fit = name.len() <= 40
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-_".contains(c));
    let (base, variant) = name.split_once('+').unwrap_or((name, ""));
    let base = match base {
        "en-gb" => "en",
        "fr-fr" => "fr",
        other => other,
    };
    fit.then(|| if variant.is_empty() { base.into() } else { format!("{base}+{variant}") })
}
