//! espeak-ng (Debian `espeak-ng`): all other languages and accents. Only its command line and its measured figures; running
//! it is [`super::speech`]'s.

use std::path::Path;

use tokio::process::Command;

/// Name of the program, and of its Debian package.
pub(super) const PROGRAM: &str = "espeak-ng";

/// Speaker variants that stay easy to understand.
pub(super) const FEMALE: [&str; 4] = ["f1", "f2", "f3", "f4"];
/// Speaker variants that stay easy to understand.
pub(super) const MALE: [&str; 4] = ["m1", "m3", "m4", "m7"];

/// The espeak-ng voice of a language and whether it has the accent.
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

/// Languages whose speed is told as a factor of the voice's own, because words are not counted by blanks.
pub(super) fn counts_words(name: &str) -> bool {
    !["cmn", "yue", "ja", "ko", "ml"].contains(&name.split('+').next().unwrap_or(name))
}

/// Reads the text on its standard input, writes a WAV file to `out`. `gaps` parts the words by a little silence: the program's
/// lowest speed alone is 116 to 125 words per minute in short sentences.
pub(super) fn command(name: &str, rate_wpm: f32, gaps: bool, pitch: f32, out: &Path) -> Command {
    let gaps = gaps && counts_words(name);
    let speed = if counts_words(name) {
        // Words per minute = 18.2 + 1.177 * speed, measured over a 52-word text from 100 to 260; gaps take 12 % of it.
        (if gaps { rate_wpm / 0.88 } else { rate_wpm } - 18.2) / 1.177
    } else {
        175.0 * rate_wpm / 170.0
    };
    // 15 steps are 14 % of pitch.
    let pitch = 50.0 + 114.0 * pitch.max(0.1).ln();
    let mut command = Command::new(PROGRAM);
    command.args(["-b", "1", "-v", name, "-s", &format!("{:.0}", speed.clamp(80.0, 450.0))]);
    command.args(["-p", &format!("{:.0}", pitch.clamp(0.0, 99.0)), "--stdin", "-w"]).arg(out);
    if gaps {
        command.args(["-g", "2"]);
    }
    command
}

/// A name that may be given to the program: letters, digits, `+`, `-`, `_`, not beginning with a sign. The two full names that
/// would lose their variant are shortened.
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
