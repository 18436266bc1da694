//! Pauses of somebody who does not speak the language well, as they are heard.

use std::sync::Arc;
use std::time::Duration;

use ringer::config::Behaviour;
use ringer::engine::Placement;
use ringer::engine::sim::{self, Sim};
use ringer::human::{FluencyLevel, Mind, Profile, SpeechPart};
use ringer::provider::canned::Canned;
use ringer::provider::speech::EmbeddedSpeech;
use ringer::provider::{Job, Synthesizer, Voice, VoiceWanted};
use ringer_media::call::{CallSpec, Interruption, Move, Opening, Then, Thought};
use ringer_media::level::rms_dbov;
use ringer_media::netem::NetemSpec;
use ringer_media::recording::WAV_HEADER;
use ringer_media::seed::Seed;
use tokio::sync::mpsc;

use super::plain;

const TEXT: &str = "My last bill was much higher than I expected and the meter shows another number, so could you please look \
    at the account again and tell me what happened there, because nobody has told me anything so far and I would like to know \
    who is going to pay for it.";
/// Silence in the signal that is a pause.
const PAUSE_MS: usize = 250;
/// Longest pause that the voice makes by itself, at a comma.
const OWN_MS: usize = 350;
/// Milliseconds by which a pause is heard longer than it was drawn, since the ends of words are faint.
const FAINT_MS: usize = 50;
const WINDOW_MS: usize = 10;

/// Says the text and hangs up.
struct Talk;

impl Mind for Talk {
    fn think<'a>(&'a mut self, _: Thought, out: mpsc::Sender<Move>) -> Job<'a, ()> {
        Box::pin(async move {
            let _ = out.send(Move { say: TEXT.into(), then: Then::Hangup, ..Move::default() }).await;
        })
    }

    fn speaker(&self) -> String {
        "talk".into()
    }
}

/// Returns the milliseconds of the pauses in the middle of what is heard of one side.
fn pauses(pcm: &[i16]) -> Vec<usize> {
    let levels = pcm.chunks(WINDOW_MS * 16).map(|window| rms_dbov(window) > -60.0);
    let sounds: Vec<usize> = levels.enumerate().filter_map(|(at, sounds)| sounds.then_some(at)).collect();
    let gaps = sounds.windows(2).map(|pair| (pair[1] - pair[0] - 1) * WINDOW_MS);
    gaps.filter(|gap| *gap >= PAUSE_MS).collect()
}

/// Returns the pauses besides the drawn ones; `None` if a drawn one is missing, in its order and length.
fn own_pauses(drawn: &[usize], mut heard: Vec<usize>) -> Option<Vec<usize>> {
    let mut from = 0;
    for ms in drawn {
        let lasts = *ms - 2 * WINDOW_MS..=*ms + FAINT_MS;
        from += heard[from..].iter().position(|pause| lasts.contains(pause))?;
        heard.remove(from);
    }
    Some(heard)
}

/// Runs a call in which the caller says the text with a profile's fluency.
fn say(profile: &Profile, seed: Seed, voice: &Voice, speech: &Arc<EmbeddedSpeech>) -> sim::Outcome {
    let base = plain(seed.0, &Arc::new(Canned::default()));
    let spec = CallSpec { opening: Opening::Made, interruption: Interruption::None, ..base.caller.spec.clone() };
    let agent = CallSpec {
        opening: Opening::Listen { open_after_ms: None },
        interruption: Interruption::None,
        ..base.agent.spec.clone()
    };
    let agent = Placement { spec: agent, voice: Some(voice.clone()), ..base.agent };
    let caller = Placement {
        spec,
        mind: Box::new(Talk),
        fluency: profile.fluency(seed),
        voice: Some(voice.clone()),
        ..base.caller
    };
    let network = NetemSpec { delay_ms: 20.0, ..NetemSpec::default() };
    sim::run(Sim {
        network,
        then: None,
        caller,
        agent,
        synthesizer: speech.clone(),
        longest: Duration::from_secs(90),
        ..base
    })
    .expect("it runs")
}

#[test]
fn every_pause_is_heard_as_long_as_it_was_drawn() {
    let speech = Arc::new(EmbeddedSpeech::new().expect("there is a temporary folder"));
    for (level, shortest, longest) in [(FluencyLevel::Intermediate, 300, 600), (FluencyLevel::Beginner, 500, 1200)] {
        let mut drawn_in_all = 0;
        for seed in (1..5).map(Seed) {
            let profile = Profile {
                fluency: level,
                hesitation: level.hesitation(&Behaviour::default().fluency),
                ..Profile::default()
            };
            let parts = profile.fluency(seed).parts(TEXT);
            let drawn: Vec<usize> = parts
                .iter()
                .filter_map(|part| match part {
                    SpeechPart::PauseMs(ms) => Some(*ms as usize),
                    SpeechPart::Words(_) => None,
                })
                .collect();
            let spoken: Vec<&str> = parts
                .iter()
                .filter_map(|part| match part {
                    SpeechPart::Words(words) => Some(words.as_str()),
                    SpeechPart::PauseMs(_) => None,
                })
                .collect();
            assert!(drawn.iter().all(|ms| (shortest..=longest).contains(ms)), "{drawn:?}");
            drawn_in_all += drawn.len();
            let voice: Voice =
                speech.voice(&VoiceWanted { seed, ..VoiceWanted::of("en") }).expect("English has a voice");
            let outcome = say(&profile, seed, &voice, &speech);
            let samples =
                outcome.caller.recording[WAV_HEADER..].as_chunks().0.iter().map(|two| i16::from_le_bytes(*two));
            let heard = pauses(&samples.step_by(2).collect::<Vec<i16>>());
            let own = own_pauses(&drawn, heard.clone());
            let ended = outcome
                .caller
                .timeline
                .iter()
                .find(|event| event.name() == "speech.ended" && event.side_name() == "dh");
            assert_eq!(ended.expect("it has spoken").data()["text"], spoken.join(" "), "with its fillers");
            println!("{level:?}, seed {}: drawn {drawn:?}, heard {heard:?}", seed.0);
            assert!(own.is_some_and(|own| own.iter().all(|ms| *ms <= OWN_MS)), "{level:?} {drawn:?} {heard:?}");
        }
        assert!(drawn_in_all >= 4, "{level:?}: {drawn_in_all} pauses");
    }
}
