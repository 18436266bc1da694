//! Sound of a Digital Human before any call: its voice, as the agent would hear it, or the noise behind it. No number
//! is dialled, and nothing is kept.

use ringer_base::error::{Error, Result};
use ringer_human::{Facts, Fluency, FluencyLevel, SpeechPart};
use ringer_media::clip::write_wav;
use ringer_media::codec::Codec;
use ringer_media::frame::RATE_HZ;
use ringer_media::level::{SPEECH_LEVEL_DBOV, active_level_dbov, rms_dbov};
use ringer_media::rendition::Rendition;
use ringer_media::seed::Seed;
use ringer_model::error_code::ErrorCode;
use ringer_model::noise::NoiseDoc;
use ringer_model::preview::{PreviewPart, PreviewRequest};
use ringer_provider::{Failure, Voice, whole_speech};

use super::{CallRows, Obstacle, PlacementSettings, Placements, behaviour, impairment, voices};
use crate::NotDone;
use crate::library::human_rules;

/// Longest sound of a preview in samples of 16 kHz: 10 s.
const MOST_SAMPLES: usize = 10 * RATE_HZ as usize;

/// Length of the noise alone in samples of 16 kHz: 6 s.
const NOISE_SAMPLES: usize = 6 * RATE_HZ as usize;

/// Most characters of an intent that is said where no text is given.
const INTENT_CHARS: usize = 200;

/// Sound of a Digital Human.
#[derive(Clone, Debug, PartialEq)]
pub struct Preview {
    /// Sound as WAV, mono, 16 bit.
    pub wav: Vec<u8>,
    /// Level of speech, in pauses left out (ITU-T P.56); of noise alone its RMS. In dBov; `None` for silence.
    pub level_dbov: Option<f64>,
    /// Level of speech above the background noise in the band of the codec, in dB; `None` without a noise.
    pub snr_db: Option<f64>,
    /// Id of the voice; `None` for noise alone.
    pub voice: Option<String>,
    /// True if the words go on after the end.
    pub is_cut: bool,
    /// Deviations from what was asked for, in words.
    pub warnings: Vec<String>,
}

impl Placements {
    /// Returns what a Digital Human sounds like.
    ///
    /// # Errors
    /// A broken rule of its fields, a sound or voice that is not there, or a fault of the store.
    pub async fn preview(
        &self,
        organization: &str,
        request: PreviewRequest,
        terms: &PlacementSettings,
    ) -> Result<Preview> {
        let PreviewRequest { digital_human: mut human, text, codec, part } = request;
        human_rules::check(&mut human, &self.settings)?;
        if let Some(noise) = human.uploaded_noise() {
            let mut db = self.store.org(organization).read().await?;
            db.find::<NoiseDoc>(noise).await?.ok_or(Error::NotFound("Background noise"))?;
        }
        let codec = codec.and_then(|name| Codec::from_name(&name)).or(terms.codecs.first().copied());
        let rows = CallRows { human, seed: Seed(1), identity: Seed(1), ..CallRows::default() };
        let made = rows.hear(text, codec.unwrap_or(Codec::Pcmu), part, terms, &self.settings).await;
        made.map_err(|why| match why.reason() {
            Ok(obstacle) => Error::Refused(obstacle.message),
            Err(fault) => fault,
        })
    }
}

impl CallRows {
    /// Makes the sound of a part.
    async fn hear(
        &self,
        text: Option<String>,
        codec: Codec,
        part: PreviewPart,
        terms: &PlacementSettings,
        settings: &crate::Settings,
    ) -> Result<Preview, NotDone<Obstacle>> {
        let mut warnings = Vec::new();
        let noise = behaviour::noise(self, terms, settings, &mut warnings).await?;
        let (mut speech, mut voice, mut is_cut) = (vec![0; NOISE_SAMPLES], None, false);
        if part != PreviewPart::Noise {
            let chosen = self.preview_voice(terms, &mut warnings).await?;
            speech = self.say(text, &chosen, terms).await?;
            is_cut = speech.len() > MOST_SAMPLES;
            speech.truncate(MOST_SAMPLES);
            warnings.extend(chosen.substituted.clone().filter(|_| warnings.is_empty()));
            voice = Some(chosen.id);
        }
        let (levels, seed) = (&terms.behaviour, self.seed);
        let way = Rendition {
            noise,
            quality: impairment::sent_quality(&self.human, &levels.audio, codec == Codec::Pcmu),
            connection: impairment::connection_of(&self.human, &levels.connection),
            codec,
            seed,
        };
        let made = move || render(&way, &speech, part);
        let rendered = tokio::task::spawn_blocking(made).await.map_err(Error::internal)?;
        Ok(Preview { voice, is_cut, warnings, ..rendered })
    }

    /// Chooses the voice as for a call.
    async fn preview_voice(&self, terms: &PlacementSettings, warnings: &mut Vec<String>) -> Result<Voice, Obstacle> {
        let mut wanted = self.voice();
        let voice = voices::choose(&*terms.synthesizer, &mut wanted, warnings).await;
        let voice = voice.map_err(|failure| Obstacle::new(ErrorCode::SynthesizerFailed, failure.message))?;
        let voice = voice.at(terms.behaviour.speed.level_wpm(&wanted.speed) as f32);
        Ok(voices::settle(&*terms.synthesizer, voice, None, warnings))
    }

    /// Says the words with the caller's hesitation, until there is more than a preview holds.
    async fn say(&self, text: Option<String>, voice: &Voice, terms: &PlacementSettings) -> Result<Vec<i16>, Obstacle> {
        let traits = self.traits();
        let intent = || self.human.intent.chars().take(INTENT_CHARS).collect();
        let text = Facts::of(&traits).fill(&text.unwrap_or_else(intent));
        if text.trim().is_empty() {
            return Err(Obstacle::new(ErrorCode::InternalError, "text is needed where the intent is empty"));
        }
        let hesitation = FluencyLevel::of_name(self.human.fluency.as_str()).hesitation(&terms.behaviour.fluency);
        let mut fluency = Fluency::new(hesitation, &self.language(), &traits, self.seed);
        let mut speech = Vec::new();
        for part in fluency.parts(&text) {
            match part {
                SpeechPart::Words(words) => {
                    let said = whole_speech(&*terms.synthesizer, &words, voice).await;
                    let failed = |failure: Failure| Obstacle::new(ErrorCode::SynthesizerFailed, failure.message);
                    speech.extend_from_slice(&said.map_err(failed)?);
                }
                SpeechPart::PauseMs(pause_ms) => {
                    let length = speech.len() + (pause_ms as usize * RATE_HZ as usize) / 1000;
                    speech.resize(length.min(MOST_SAMPLES + 1), 0);
                }
            }
            if speech.len() > MOST_SAMPLES {
                break;
            }
        }
        Ok(speech)
    }
}

/// Returns a part of the sound, with its level and that of the noise.
fn render(way: &Rendition, speech: &[i16], part: PreviewPart) -> Preview {
    let rate_hz = way.codec.rate_hz();
    let plain = Rendition::clean(way.codec);
    let alone = Rendition { noise: way.noise.clone(), ..plain.clone() };
    let noise = way.noise.is_some().then(|| alone.render(&vec![0; speech.len()]));
    let of_speech = |pcm: &[i16], rate_hz| active_level_dbov(pcm, rate_hz).map(|level| level.level_dbov);
    // Noise alone is told against the level that speech has.
    let said = match part {
        PreviewPart::Noise => Some(SPEECH_LEVEL_DBOV),
        _ => of_speech(&plain.render(speech), rate_hz),
    };
    let snr_db = noise.as_deref().zip(said).map(|(noise, said)| said - rms_dbov(noise));
    let (pcm, rate_hz, level_dbov) = match part {
        PreviewPart::Clean => (speech.to_vec(), RATE_HZ, of_speech(speech, RATE_HZ)),
        PreviewPart::Sent => {
            let sent = way.render(speech);
            let level = of_speech(&sent, rate_hz);
            (sent, rate_hz, level)
        }
        PreviewPart::Noise => {
            let noise = noise.unwrap_or_else(|| plain.render(speech));
            let level = Some(rms_dbov(&noise)).filter(|level| level.is_finite());
            (noise, rate_hz, level)
        }
    };
    let wav = write_wav(rate_hz, 1, &pcm);
    Preview { wav, level_dbov, snr_db, voice: None, is_cut: false, warnings: Vec::new() }
}
