//! Speed and level of clauses by neural voices: a voice is asked for the length at which it has the wanted words a
//! minute, what is too slow is shortened, and what is too fast is said again.

use ringer_media::{level, tempo};
use ringer_speech::clauses::Clause;

use super::prosody::NORMAL_WPM;
use super::timbre::speech_s;
use super::voice::measurable_words;
use super::{Failure, Voice};

/// Largest error of a clause's speed, as a share of it.
const RATE_OFF: f32 = 0.03;
/// Factors of a voice's own length.
const LENGTH: (f32, f32) = (0.45, 2.2);
/// Silence after a clause, in samples: 150 ms behind a comma, 350 ms behind a full stop.
const PAUSES: (usize, usize) = (2400, 5600);
/// Most correction of the level, in dB a second.
const DB_A_SECOND: f64 = 1.0;
/// Texts that tell a voice's own speed.
const MEASURED: [(&str, &str); 7] = [
    ("en", "Good morning, I am calling because I would like to change my appointment to another day of the week."),
    ("es", "Buenos d\u{ed}as, le llamo porque me gustar\u{ed}a cambiar mi cita para otro d\u{ed}a de la semana."),
    ("fr", "Bonjour, je vous appelle parce que je voudrais changer mon rendez-vous pour un autre jour de la semaine."),
    ("de", "Guten Morgen, ich rufe an, weil ich meinen Termin gern auf einen anderen Tag der Woche legen m\u{f6}chte."),
    ("it", "Buongiorno, la chiamo perch\u{e9} vorrei spostare il mio appuntamento a un altro giorno della settimana."),
    ("pt", "Bom dia, estou ligando porque gostaria de mudar a minha consulta para outro dia da semana."),
    ("hi", "नमस्ते, मैं इसलिए फ़ोन कर रहा हूँ क्योंकि मैं अपनी मुलाक़ात सप्ताह के किसी दूसरे दिन करना चाहता हूँ."),
];

/// Way of a kind of voices to the wanted speed.
pub(super) struct Pace {
    /// A clause is made slower than it is to be, by this factor: to shorten it costs nothing, to lengthen it means to
    /// say it again.
    pub(super) slower: f32,
    /// Shares of the wanted length below which a clause is said again.
    pub(super) again: f32,
}

/// Voices that take little time for a clause.
pub(super) const QUICK: Pace = Pace { slower: 1.04, again: 1.0 - RATE_OFF };
/// Voices that take long for a clause.
pub(super) const SLOW: Pace = Pace { slower: 1.08, again: 0.92 };

impl Pace {
    /// Returns a clause of these words at the voice's speed. `say` makes it at a length, as a factor of the voice's
    /// own; `own_wpm` are the words a minute at length 1.
    pub(super) fn say_clause(
        &self,
        voice: &Voice,
        words: &str,
        own_wpm: f32,
        say: impl Fn(f32) -> Result<Vec<i16>, Failure>,
    ) -> Result<Vec<i16>, Failure> {
        let words = measurable_words(&voice.language, words);
        let target_wpm = voice.rate_wpm;
        let factor = if words.is_some() { own_wpm / target_wpm } else { NORMAL_WPM / target_wpm };
        let mut length = (factor * self.slower).clamp(LENGTH.0, LENGTH.1);
        let mut pcm = say(length)?;
        if let Some(words) = words {
            let wanted_s = words as f32 * 60.0 / target_wpm;
            let off = |pcm: &[i16]| speech_s(pcm).max(0.1) / wanted_s;
            if off(&pcm) < self.again {
                length = (length / off(&pcm) * self.slower).clamp(LENGTH.0, LENGTH.1);
                pcm = say(length)?;
            }
            if off(&pcm) > 1.0 + RATE_OFF {
                let wanted = (pcm.len() as f32 / off(&pcm)) as usize;
                pcm = tempo::shorten(&pcm, wanted.max(pcm.len() / 2));
            }
        }
        Ok(pcm)
    }
}

/// Returns the text that tells a voice's own speed in a language.
pub(super) fn text_to_measure(language: &str) -> Clause {
    let text = MEASURED.iter().find(|(code, _)| *code == language).map_or(MEASURED[0].1, |(_, text)| text);
    Clause { words: text.trim_end_matches('.').to_owned(), mark: Some('.') }
}

/// Returns the voice's words a minute, and its gain to the speech level in dB, by its 16 kHz speech of these words.
pub(super) fn own(words: &Clause, mut pcm: Vec<i16>) -> (f32, f64) {
    let own_wpm = words.words.split_whitespace().count() as f32 * 60.0 / speech_s(&pcm).max(0.1);
    let gain_db = level::to_speech_level(&mut pcm, 16_000);
    (own_wpm.clamp(80.0, 400.0), gain_db)
}

/// Returns the silence after a clause, in samples.
pub(super) fn pause(mark: Option<char>) -> usize {
    if mark.is_some_and(|mark| ".!?".contains(mark)) { PAUSES.1 } else { PAUSES.0 }
}

/// Sets the level of a clause; returns its gain in dB. A text of one clause has the speech level; in longer ones the
/// gain is that of the clause `before`, or the voice's own, and moves slowly.
pub(super) fn set_level(pcm: &mut [i16], before: Option<f64>) -> f64 {
    let mut exact = pcm.to_vec();
    let exact_db = level::to_speech_level(&mut exact, 16_000);
    let Some(before) = before else {
        pcm.copy_from_slice(&exact);
        return exact_db;
    };
    let most = DB_A_SECOND * pcm.len() as f64 / 16_000.0;
    let gain_db = before + (exact_db - before).clamp(-most, most);
    // 3 dB below full scale is the highest peak.
    let peak = pcm.iter().map(|sample| f64::from(sample.unsigned_abs())).fold(1.0, f64::max);
    level::gain(pcm, gain_db.min(20.0 * (23_197.0 / peak).log10()));
    gain_db
}
