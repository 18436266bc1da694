//! The callers of a load test: real calls whose words are one prepared clip.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::{CallSpec, Ears, Limits, Move, Opening, Purpose, Thought, TurnSpec};
use ringer_media::codec::{Codec, Decoder};
use ringer_media::frame::RATE_HZ;
use ringer_media::level::to_speech_level;
use ringer_media::noise::{Kind, snr_db};
use ringer_media::resample::resample_whole;
use ringer_media::seed::Seed;
use tokio::sync::mpsc;

use super::{Args, far::SPEECH};
use crate::engine::noise::NoiseBeds;
use crate::engine::{Dial, Placement, Speech};
use crate::human::{Fluency, Mind};
use crate::provider::fake::FakeRecognizer;
use crate::provider::{Failure, Job, Spoken, Status, Synthesizer, Voice, VoiceWanted};

/// Volume of the noise under each caller.
const NOISE_VOLUME: f64 = 0.5;
/// Length of what a caller says: 1.3 s, at 8 kHz.
const WORDS: usize = 10_400;
/// Between two sentences of a caller that hears no turns.
const PAUSE: Duration = Duration::from_secs(4);

/// Makes placements.
pub struct Callers {
    to: String,
    ears: Ears,
    beds: Arc<NoiseBeds>,
}

impl Callers {
    /// Callers of `to`. Makes the noise, which takes a moment.
    pub async fn new(to: String, args: &Args) -> Result<Callers, String> {
        let beds = Arc::new(NoiseBeds::new(None));
        let made = beds.clone();
        tokio::task::spawn_blocking(move || made.bed(Kind::Cafe, 0.0, &mut Seed(0).stream("noise")))
            .await
            .map_err(|error| error.to_string())?;
        Ok(Callers { to, ears: Ears { text: false, voice_activity: !args.no_vad, dtmf: !args.no_dtmf }, beds })
    }

    /// The call of this number; its files go below `folder`.
    pub fn placement(&self, number: usize, folder: &Path) -> Placement {
        let seed = Seed(number as u64 + 1);
        let noise = self.beds.bed(Kind::Cafe, snr_db(NOISE_VOLUME), &mut seed.stream("noise"));
        let spec = CallSpec {
            seed,
            opening: Opening::Made,
            noise: Some(noise),
            limits: Limits { max_duration_ms: None, ..Limits::default() },
            turn: TurnSpec { silence_timeout_ms: u32::MAX, ..TurnSpec::default() },
            ears: self.ears,
            ..CallSpec::default()
        };
        Placement {
            id: format!("load-{number}"),
            spec,
            dial: Dial { target: self.to.clone(), codecs: vec![Codec::Pcmu], ..Dial::default() },
            mind: Box::new(Talker { hears_turns: self.ears.voice_activity }),
            fluency: Fluency::default(),
            voice: Some(voice()),
            language: "en".into(),
            keyterms: Vec::new(),
            folder: Some(folder.join(number.to_string())),
        }
    }
}

/// One clip for all words, and a recognizer that is never asked.
pub fn speech() -> Speech {
    let mut pcm = vec![0; WORDS];
    Decoder::new(Codec::Pcmu).decode(&SPEECH[..WORDS], &mut pcm);
    let mut clip = resample_whole(&pcm, 8000, RATE_HZ);
    to_speech_level(&mut clip, RATE_HZ);
    Speech { synthesizer: Arc::new(Canned(clip.into())), recognizer: Arc::new(FakeRecognizer::default()) }
}

fn voice() -> Voice {
    Voice { id: "clip".into(), ..Voice::default() }
}

/// Answers each turn; a caller that hears none speaks on its own.
struct Talker {
    hears_turns: bool,
}

impl Mind for Talker {
    fn think<'a>(&'a mut self, thought: Thought, out: mpsc::Sender<Move>) -> Job<'a, ()> {
        let goes_on = !self.hears_turns && thought.purpose == Purpose::Opening;
        Box::pin(async move {
            loop {
                let words = "Yes, I would like to book a table.".into();
                let sent = out.send(Move { say: words, exact: true, more: goes_on, ..Move::default() }).await;
                if !goes_on || sent.is_err() {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
        })
    }

    fn speaker(&self) -> String {
        "load".into()
    }
}

/// Says everything with the same clip.
struct Canned(Arc<[i16]>);

impl Synthesizer for Canned {
    fn voice(&self, _wanted: &VoiceWanted) -> Result<Voice, Failure> {
        Ok(voice())
    }

    fn synthesize<'a>(
        &'a self,
        _text: &'a str,
        _voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        Box::pin(async move {
            let _ = out.send(Spoken::Audio(self.0.clone())).await;
            Ok(())
        })
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}
