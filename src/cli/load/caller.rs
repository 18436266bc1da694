//! The callers of a load test: real calls whose words are recorded ones.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::{CallSpec, Ears, Limits, Move, Opening, Purpose, Thought, TurnSpec};
use ringer_media::codec::Codec;
use ringer_media::noise::{Kind, snr_db};
use ringer_media::seed::Seed;
use tokio::sync::mpsc;

use super::Args;
use crate::cli::call::{is_socket, pipeline};
use crate::engine::noise::NoiseBeds;
use crate::engine::{Destination, PipelineDial, Placement, SipDial, Speech, WebSocketDial};
use crate::human::{Fluency, Mind};
use crate::provider::Job;
use crate::provider::canned::Canned;
use crate::provider::fake::FakeRecognizer;
use crate::transport::pipeline::PipelineTarget;

/// Volume of the noise under each caller.
const NOISE_VOLUME: f64 = 0.5;
/// Between two sentences of a caller that hears no turns.
const PAUSE: Duration = Duration::from_secs(4);

/// Makes the placements of a load test's calls.
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
        Ok(Callers {
            to,
            ears: Ears { text: false, voice_activity: !args.no_vad, dtmf: !args.no_dtmf, whole: false },
            beds,
        })
    }

    fn destination(&self, number: usize) -> Destination {
        if is_socket(&self.to) {
            let dial = WebSocketDial { url: self.to.clone(), result_id: number as u64, ..WebSocketDial::default() };
            return Destination::WebSocket(Box::new(dial));
        }
        if let Some(base_url) = pipeline(&self.to).map(str::to_owned) {
            let target = PipelineTarget { base_url, result_id: number.to_string(), ..PipelineTarget::default() };
            return Destination::Pipeline(Box::new(PipelineDial { target, ..PipelineDial::default() }));
        }
        Destination::Sip(SipDial { target: self.to.clone(), codecs: vec![Codec::Pcmu], ..SipDial::default() })
    }

    /// Returns the call of this number; its files go below `folder`.
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
            destination: self.destination(number),
            mind: Box::new(Talker { hears_turns: self.ears.voice_activity }),
            fluency: Fluency::default(),
            voice: Some(Canned::named("caller")),
            language: "en".into(),
            follows: None,
            keyterms: Vec::new(),
            folder: Some(folder.join(number.to_string())),
            captured: false,
        }
    }
}

/// Returns recorded words, and a recognizer that is never asked.
pub fn speech() -> Speech {
    Speech { synthesizer: Arc::new(Canned::default()), recognizer: Arc::new(FakeRecognizer::default()) }
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
                let words = "A table, please.".into();
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
