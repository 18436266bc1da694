//! Faults that the sample agent has on purpose, so that what finds faults can be held against them.

use ringer_media::call::{CallSpec, Interruption, NoiseSpec, Opening, Phrases};
use ringer_media::frame::{PER_MS, RATE_HZ};
use ringer_media::impair::AudioQuality;

use crate::transport::websocket::Dialect;

/// Time from connect until a first word behind a ringback tone that is not late, in milliseconds.
const SOON_OPENING_MS: u32 = 2000;
/// Frequencies of a ringback tone, in hertz (ITU-T E.180 supplement 2, North America), and the amplitude of each, 1 for
/// full scale.
const RINGBACK: ([f64; 2], f64) = ([440.0, 480.0], 0.05);
/// Silence before the last burst of a ringback tone, and length of that burst, in milliseconds.
const BURST_MS: u32 = 1900;
/// Length of the sound that a line adds, in seconds: longer than a call.
const LINE_S: u32 = 180;

/// First words of an agent that speaks Spanish.
const SPANISH_GREETING: &str = "Gracias por llamar a la clínica. Dígame, por favor, en qué puedo ayudarle.";

/// Silence of the caller before an agent answers that is slow, in milliseconds.
pub(super) const SLOW_MS: u32 = 4500;
/// Time from connect until a first word that is late, in milliseconds.
pub(super) const LATE_OPENING_MS: u32 = 6000;
/// Speech of the caller before an agent stops that does not yield, in milliseconds: no call lasts so long.
const NEVER_MS: u32 = 86_400_000;
/// Sound of the caller before an agent stops that stops for any, in milliseconds.
const ANY_SOUND_MS: u32 = 40;
/// Speech of the caller before an agent stops that stops late, in milliseconds.
const STOPS_LATE_MS: u32 = 2500;
/// Pause after a key before an agent answers that does not wait for the next one, in milliseconds.
const AT_ONCE_MS: u32 = 20;
/// Time for the caller's words of an agent that says them back, in milliseconds.
const WORDS_MS: u32 = 8000;
/// Beginning of each utterance that an agent loses whose gate opens late, in milliseconds.
const ONSET_LOST_MS: u32 = 450;
/// Speech of the caller before an agent stops that knows a cough from a word, in milliseconds.
const STEADY_MS: u32 = 1000;

/// A fault on purpose.
#[derive(Copy, Clone, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Fault {
    /// Answers later than a caller expects.
    SlowAnswer,
    /// The agent speaks while the caller does.
    TalksOver,
    /// The agent takes no keys.
    IgnoresKeys,
    /// The agent reads back another digit than the last one that was pressed.
    WrongDigit,
    /// The agent hangs up in the middle.
    DropsCall,
    /// The agent asks each question twice.
    RepeatsItself,
    /// The agent calls the caller by a wrong name.
    MishearsName,
    /// The agent sends no audio.
    OneWayAudio,
    /// Sends audio that clips at full scale.
    ClippedAudio,
    /// The agent's first word comes late.
    LateFirstWord,
    /// The agent goes on when the caller interrupts it.
    DoesNotYield,
    /// The agent hears nothing of the caller: it goes on when it is interrupted, and asks again after each turn.
    Deaf,
    /// The agent stops for any sound, a cough too. The agent without this fault stops for some coughs; the one that it
    /// is compared with goes on.
    YieldsToCough,
    /// Sends audio at half the rate of its protocol. It is seen on a WebSocket alone: SIP names the rate of a codec.
    WrongRate,
    /// The ringback tone of its line runs on after the answer, and its first word comes late, directly behind it.
    LateBehindRingback,
    /// The agent says the caller's own words back before it answers.
    EchoesCaller,
    /// The agent says each answer twice in one turn.
    AnswersTwice,
    /// The agent speaks Spanish, whatever its caller speaks.
    WrongLanguage,
    /// The agent says its first answer again to whatever it is told.
    StuckLoop,
    /// The agent answers the first key at once, and speaks on while more are pressed.
    TalksOverKeys,
    /// The agent says that it connects the caller, and nobody speaks after that.
    SilentAfterTransfer,
    /// The agent says the date of birth aloud that it was told.
    ReadsBackPrivate,
    /// The agent reads the member number back with two digits in the wrong order.
    MisreadsNumber,
    /// The agent says that it has booked what nobody has asked for.
    InventsBooking,
    /// The agent stops long after the caller has begun to interrupt it.
    StopsLate,
    /// The beginning of each utterance is lost, and its first word with it.
    CutsFirstWord,
    /// The agent falls silent for some seconds in the middle of an answer.
    DeadAir,
    /// No fault: its first word comes soon, directly behind a ringback tone that runs on after the answer.
    SoonBehindRingback,
    /// No fault: it goes on over short sounds, as a good agent does.
    Steady,
}

impl Fault {
    /// The faults, without what they are compared with.
    pub const ALL: [Fault; 27] = [
        Fault::SlowAnswer,
        Fault::TalksOver,
        Fault::IgnoresKeys,
        Fault::WrongDigit,
        Fault::DropsCall,
        Fault::RepeatsItself,
        Fault::MishearsName,
        Fault::OneWayAudio,
        Fault::ClippedAudio,
        Fault::LateFirstWord,
        Fault::DoesNotYield,
        Fault::Deaf,
        Fault::YieldsToCough,
        Fault::LateBehindRingback,
        Fault::WrongRate,
        Fault::EchoesCaller,
        Fault::AnswersTwice,
        Fault::WrongLanguage,
        Fault::StuckLoop,
        Fault::TalksOverKeys,
        Fault::SilentAfterTransfer,
        Fault::ReadsBackPrivate,
        Fault::MisreadsNumber,
        Fault::InventsBooking,
        Fault::StopsLate,
        Fault::CutsFirstWord,
        Fault::DeadAir,
    ];

    /// Agents that faults are compared with where the desk without a fault does not pass the same suite.
    const COMPARED: [Fault; 2] = [Fault::Steady, Fault::SoonBehindRingback];

    /// Returns its word, as on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Fault::SlowAnswer => "slow_answer",
            Fault::TalksOver => "talks_over",
            Fault::IgnoresKeys => "ignores_keys",
            Fault::WrongDigit => "wrong_digit",
            Fault::DropsCall => "drops_call",
            Fault::RepeatsItself => "repeats_itself",
            Fault::MishearsName => "mishears_name",
            Fault::OneWayAudio => "one_way_audio",
            Fault::ClippedAudio => "clipped_audio",
            Fault::LateFirstWord => "late_first_word",
            Fault::DoesNotYield => "does_not_yield",
            Fault::Deaf => "deaf",
            Fault::YieldsToCough => "yields_to_cough",
            Fault::WrongRate => "wrong_rate",
            Fault::LateBehindRingback => "late_behind_ringback",
            Fault::EchoesCaller => "echoes_caller",
            Fault::AnswersTwice => "answers_twice",
            Fault::WrongLanguage => "wrong_language",
            Fault::StuckLoop => "stuck_loop",
            Fault::TalksOverKeys => "talks_over_keys",
            Fault::SilentAfterTransfer => "silent_after_transfer",
            Fault::ReadsBackPrivate => "reads_back_private",
            Fault::MisreadsNumber => "misreads_number",
            Fault::InventsBooking => "invents_booking",
            Fault::StopsLate => "stops_late",
            Fault::CutsFirstWord => "cuts_first_word",
            Fault::DeadAir => "dead_air",
            Fault::SoonBehindRingback => "soon_behind_ringback",
            Fault::Steady => "steady",
        }
    }

    /// Returns the fault of a word.
    pub fn of_word(word: &str) -> Option<Fault> {
        Fault::ALL.into_iter().chain(Fault::COMPARED).find(|fault| fault.as_str() == word)
    }

    /// Bends the manner of a call.
    pub fn bend(self, spec: &mut CallSpec) {
        match self {
            Fault::SlowAnswer => spec.turn.endpointing_delay_ms = SLOW_MS,
            Fault::TalksOver => {
                let (from_ms, to_ms) = (600, 900);
                let at_most = None;
                spec.interruption = Interruption::Level { name: "level", probability: 1.0, from_ms, to_ms, at_most };
                spec.turn.hold_floor_ms = 3000;
            }
            Fault::OneWayAudio => {
                spec.opening = Opening::Listen { open_after_ms: None };
                spec.interruption = Interruption::None;
                spec.phrases = Phrases {
                    reprompt: String::new(),
                    still_there: String::new(),
                    interruption: Vec::new(),
                    ..Phrases::default()
                };
                spec.turn.silence_timeout_ms = NEVER_MS;
            }
            Fault::ClippedAudio => spec.audio_quality = AudioQuality::HORRIBLE,
            Fault::LateFirstWord => spec.opening = Opening::Listen { open_after_ms: Some(LATE_OPENING_MS) },
            Fault::DoesNotYield | Fault::Deaf => spec.turn.yield_after_ms = NEVER_MS,
            Fault::LateBehindRingback => behind_ringback(spec, LATE_OPENING_MS),
            Fault::SoonBehindRingback => behind_ringback(spec, SOON_OPENING_MS),
            Fault::Steady => spec.turn.yield_after_ms = STEADY_MS,
            Fault::EchoesCaller | Fault::ReadsBackPrivate => spec.turn.recognizer_grace_ms = WORDS_MS,
            Fault::YieldsToCough => spec.turn.yield_after_ms = ANY_SOUND_MS,
            Fault::StopsLate => spec.turn.yield_after_ms = STOPS_LATE_MS,
            Fault::TalksOverKeys => (spec.turn.digit_turn_ms, spec.turn.digits_stop) = (Some(AT_ONCE_MS), false),
            Fault::CutsFirstWord => spec.onset_lost_ms = ONSET_LOST_MS,
            Fault::SilentAfterTransfer => spec.turn.silence_timeout_ms = NEVER_MS,
            Fault::WrongLanguage => spec.opening = Opening::Say(SPANISH_GREETING.to_owned()),
            Fault::IgnoresKeys
            | Fault::WrongDigit
            | Fault::DropsCall
            | Fault::RepeatsItself
            | Fault::MishearsName
            | Fault::WrongRate
            | Fault::AnswersTwice
            | Fault::StuckLoop
            | Fault::MisreadsNumber
            | Fault::InventsBooking
            | Fault::DeadAir => {}
        }
    }

    /// Bends the protocol of a WebSocket.
    pub fn bend_dialect(self, dialect: &mut Dialect) {
        if self == Fault::WrongRate {
            dialect.agent_wire.rate_hz /= 2;
        }
    }
}

/// Adds a ringback tone that ends where the first word begins, this long after connect: bursts with pauses of the same
/// length.
fn behind_ringback(spec: &mut CallSpec, opening_ms: u32) {
    let samples = |ms: u32| (ms * PER_MS as u32) as usize;
    let (end, burst) = (samples(opening_ms), samples(BURST_MS));
    let (tones, level) = RINGBACK;
    let sample = |at: usize| {
        let is_on = at < end && ((end - at - 1) / burst).is_multiple_of(2);
        let angle = |hertz: f64| (std::f64::consts::TAU * hertz * at as f64 / f64::from(RATE_HZ)).sin();
        let sum: f64 = tones.iter().map(|hertz| angle(*hertz)).sum();
        if is_on { (sum * level * f64::from(i16::MAX)) as i16 } else { 0 }
    };
    let loop_pcm: Vec<i16> = (0..samples(LINE_S * 1000)).map(sample).collect();
    spec.noise = Some(NoiseSpec { loop_pcm: loop_pcm.into(), gain_narrow: 1.0, gain_wide: 1.0, start: 0 });
    spec.opening = Opening::Listen { open_after_ms: Some(opening_ms) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_rate_is_half_of_the_protocols() {
        use crate::transport::websocket::Kind;
        for (fault, expect) in [(Fault::WrongRate, 8000), (Fault::Deaf, 16_000)] {
            let mut dialect = Dialect::new(Kind::Default);
            fault.bend_dialect(&mut dialect);
            assert_eq!((dialect.agent_wire.rate_hz, dialect.wire.rate_hz), (expect, 16_000));
        }
    }

    #[test]
    fn faults_have_the_words_of_the_command_line() {
        use clap::ValueEnum;
        for fault in Fault::ALL.into_iter().chain(Fault::COMPARED) {
            assert_eq!(Fault::of_word(fault.as_str()), Some(fault));
            let word = fault.to_possible_value().expect("it can be given");
            assert_eq!(word.get_name(), fault.as_str());
        }
        assert_eq!(Fault::of_word("desk"), None);
    }
}
