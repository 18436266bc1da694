//! Speech without a synthesizer: recorded words, as many as the text has. For load and simulation, where it counts that
//! somebody speaks and not what is said. The same text and voice give the same samples on every machine.

use std::sync::Arc;

use parking_lot::Mutex;
use ringer_media::codec::{Codec, Decoder};
use ringer_media::frame::RATE_HZ;
use ringer_media::level::to_speech_level;
use ringer_media::resample::resample_whole;
use ringer_media::seed::Seed;
use tokio::sync::mpsc;

use super::{Failure, Job, Spoken, Status, Synthesizer, Voice, VoiceWanted};

/// 20 s of speech in mu-law at 8 kHz.
pub const SPEECH: &[u8] = include_bytes!("../../fixtures/audio/speech.ul");

/// Length of a word at 170 words a minute, in samples.
const WORD: usize = RATE_HZ as usize * 60 / 170;

/// Samples over which a clip's ends are faded (5 ms).
const FADE: usize = RATE_HZ as usize / 200;

/// Says stretches of one recording.
#[derive(Clone, Debug)]
pub struct Canned {
    speech: Arc<[i16]>,
    last: Arc<Mutex<Option<Clip>>>,
}

/// Audio that was made for one text and voice.
#[derive(Clone, Debug)]
struct Clip {
    text: String,
    voice: String,
    pcm: Arc<[i16]>,
}

impl Default for Canned {
    fn default() -> Self {
        let mut pcm = vec![0; SPEECH.len()];
        Decoder::new(Codec::Pcmu).decode(SPEECH, &mut pcm);
        Canned { speech: resample_whole(&pcm, 8000, RATE_HZ).into(), last: Arc::default() }
    }
}

impl Canned {
    /// Returns the clip of a text: it begins at a place that follows from the text and the voice. Calls that say the
    /// same at the same time share it.
    pub fn clip(&self, text: &str, voice: &Voice) -> Arc<[i16]> {
        let mut last = self.last.lock();
        if let Some(clip) = last.as_ref().filter(|clip| clip.text == text && clip.voice == voice.id) {
            return clip.pcm.clone();
        }
        let pcm = self.make(text, voice);
        *last = Some(Clip { text: text.into(), voice: voice.id.clone(), pcm: pcm.clone() });
        pcm
    }

    fn make(&self, text: &str, voice: &Voice) -> Arc<[i16]> {
        let words = text.split_whitespace().count();
        let length = (words * WORD).min(self.speech.len());
        let mut place = Seed(0).stream(&format!("{} {text}", voice.id));
        let start = place.index(self.speech.len() - length + 1);
        let mut clip = self.speech[start..start + length].to_vec();
        to_speech_level(&mut clip, RATE_HZ);
        let count = clip.len();
        for at in 0..FADE.min(count) {
            let share = |sample: i16| (i32::from(sample) * at as i32 / FADE as i32) as i16;
            clip[at] = share(clip[at]);
            clip[count - 1 - at] = share(clip[count - 1 - at]);
        }
        clip.into()
    }

    /// Returns a voice of that name.
    pub fn voice_named(id: &str) -> Voice {
        Voice { id: id.into(), rate_wpm: 170.0, ..Voice::default() }
    }
}

impl Synthesizer for Canned {
    /// Every voice is here: each says other stretches of the recording.
    fn voice(&self, wanted: &VoiceWanted) -> Result<Voice, Failure> {
        Ok(Canned::voice_named(wanted.custom_voice_id.as_deref().unwrap_or("canned")))
    }

    fn synthesize<'a>(
        &'a self,
        text: &'a str,
        voice: &'a Voice,
        out: mpsc::Sender<Spoken>,
    ) -> Job<'a, Result<(), Failure>> {
        Box::pin(async move {
            let _ = out.send(Spoken::Audio(self.clip(text, voice))).await;
            Ok(())
        })
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}
