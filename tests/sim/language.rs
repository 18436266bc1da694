//! A caller that follows the agent's language: what it speaks, in which voice, and when that changes.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ringer::engine::sim::{self, Faults, Outcome, Sim};
use ringer::engine::{Destination, Placement, SipDial};
use ringer::human::{self, Mind, Profile, phrases};
use ringer::provider::canned::Canned;
use ringer::provider::{Failure, Job, Spoken, Status, Synthesizer, Voice, VoiceWanted};
use ringer_media::call::{CallSpec, Move, Opening, Thought};
use ringer_media::codec::Codec;
use ringer_media::netem::NetemSpec;
use ringer_media::seed::Seed;
use tokio::sync::mpsc;

const EN: &str = "Of course, please tell us the day of the week that suits you best.";
const ES: &str = "Claro, en qué día de la semana le gustaría venir a vernos?";
const KO: &str = "네 무슨 요일에 오시면 좋을지 말씀해 주시겠어요";

/// Says one line after the other, then the last one again.
struct Lines(&'static [&'static str]);

impl Mind for Lines {
    fn think<'a>(&'a mut self, thought: Thought, out: mpsc::Sender<Move>) -> Job<'a, ()> {
        let at = thought.history.iter().filter(|line| !line.other).count().min(self.0.len() - 1);
        let say = self.0[at].to_owned();
        Box::pin(async move {
            let _ = out.send(Move { say, exact: true, ..Move::default() }).await;
        })
    }

    fn speaker(&self) -> String {
        "lines".into()
    }
}

/// Speaks every language but Korean, and notes what is said in which.
#[derive(Default)]
struct Voices {
    canned: Canned,
    said: Mutex<Said>,
}

impl Synthesizer for Voices {
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        match wanted.language.as_str() {
            "ko" => Err(Failure { code: "no_voice_for_language", message: "no voice for ko".into() }),
            language => Ok(Voice { language: language.into(), ..Canned::voice_named("caller") }),
        }
    }

    fn synthesize<'a>(
        &'a self,
        text: &'a str,
        voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        if voice.id == "caller" {
            let mut said = self.said.lock();
            said.push((voice.language.clone(), text.to_owned()));
        }
        self.canned.synthesize(text, voice, out)
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

/// Languages and what was said in them.
type Said = Vec<(String, String)>;
/// Languages and where they were taken.
type Taken = Vec<(String, i64)>;

/// Runs a call in which the agent says `lines`; returns the caller's words by language, and the languages that it took.
fn conversation(lines: &'static [&'static str]) -> (Said, Taken, Outcome) {
    let voices = Arc::new(Voices::default());
    let wanted = VoiceWanted { seed: Seed(3), ..VoiceWanted::of("en") };
    let intent = "I need a visit. It is urgent. I am at home. My back hurts.";
    let profile = Profile { intent: intent.into(), ..Profile::default() };
    let seed = Seed(11);
    let spec = CallSpec {
        seed,
        opening: Opening::Made,
        phrases: phrases::call_phrases("en"),
        follows_language: true,
        ..CallSpec::default()
    };
    let side = |spec: CallSpec, mind: Box<dyn Mind>, voice: Voice, follows: Option<VoiceWanted>| Placement {
        id: "language".into(),
        spec,
        destination: Destination::Sip(SipDial { codecs: vec![Codec::G722], ..SipDial::default() }),
        fluency: human::Fluency::default(),
        mind,
        voice: Some(voice),
        language: "en".into(),
        follows,
        keyterms: Vec::new(),
        folder: None,
        captured: false,
    };
    let voice = voices.voice(&wanted).expect("English has a voice");
    let listens = CallSpec { seed: Seed(12), opening: Opening::Listen { open_after_ms: None }, ..CallSpec::default() };
    let outcome = sim::run(Sim {
        seed,
        network: NetemSpec { delay_ms: 20.0, ..NetemSpec::default() },
        then: None,
        caller: side(spec, human::mind(profile, None, seed), voice, Some(wanted)),
        agent: side(listens, Box::new(Lines(lines)), Canned::voice_named("agent"), None),
        synthesizer: voices.clone(),
        faults: Faults::default(),
        longest: Duration::from_secs(120),
        script: None,
    });
    let outcome = outcome.expect("it runs");
    assert_eq!(outcome.caller.violations, [""; 0]);
    let said = voices.said.lock().clone();
    let taken = outcome.caller.timeline.iter().filter(|entry| entry.name() == "language.taken");
    let taken = taken.map(|entry| {
        assert_eq!((entry.side_name(), &entry.data()["by"]), ("engine", &"text".into()));
        (entry.data()["language"].as_str().expect("a code").to_owned(), entry.sample)
    });
    let taken = taken.collect();
    (said, taken, outcome)
}

fn languages(said: &[(String, String)]) -> Vec<&str> {
    said.iter().map(|(language, _)| language.as_str()).collect()
}

/// Returns the positions at which the agent's turns begin.
fn turns(outcome: &Outcome) -> Vec<i64> {
    let turns =
        outcome.caller.timeline.iter().filter(|entry| entry.name() == "turn.ended" && entry.side_name() == "agent");
    turns.filter_map(|entry| entry.data()["from_sample"].as_i64()).collect()
}

#[test]
fn english_is_spoken_until_the_first_turn_tells_its_language() {
    let (said, taken, outcome) = conversation(&[ES]);
    assert_eq!(languages(&said), ["en", "es", "es", "es", "es"], "{said:?}");
    assert_eq!(said[0].1, "Hello. I need a visit.");
    assert_eq!(said.last().expect("it said something").1, "Gracias, adiós.", "its fixed words follow");
    assert!(matches!(&taken[..], [(language, at)] if language == "es" && *at > turns(&outcome)[0]), "{taken:?}");
}

#[test]
fn one_turn_in_another_language_changes_nothing() {
    let (said, taken, _) = conversation(&[ES, EN, ES, EN]);
    assert_eq!(languages(&said), ["en", "es", "es", "es", "es"], "{said:?}");
    assert_eq!(taken.len(), 1, "{taken:?}");
}

#[test]
fn two_turns_in_a_row_change_the_language() {
    let (said, taken, outcome) = conversation(&[ES, EN, EN]);
    assert_eq!(languages(&said), ["en", "es", "es", "en", "en"], "{said:?}");
    assert_eq!(said.last().expect("it said something").1, "Thank you, goodbye.");
    let names: Vec<&str> = taken.iter().map(|(language, _)| language.as_str()).collect();
    assert_eq!(names, ["es", "en"]);
    assert!(taken[1].1 > turns(&outcome)[2], "not before the second of them");
}

#[test]
fn a_language_without_a_voice_is_not_followed() {
    let (said, taken, _) = conversation(&[KO, KO, ES, ES]);
    assert_eq!(languages(&said), ["en", "en", "en", "en", "es"], "{said:?}");
    assert!(matches!(&taken[..], [(language, _)] if language == "es"), "{taken:?}");
}

#[test]
fn the_agents_english_is_told_as_well() {
    let (said, taken, _) = conversation(&[EN]);
    assert_eq!(languages(&said), ["en"; 5], "{said:?}");
    assert!(matches!(&taken[..], [(language, _)] if language == "en"), "{taken:?}");
}
