//! The voice of a Digital Human. A wished voice that is not here is replaced, and the call says so.

use ringer_provider::{Failure, Synthesizer, Voice, VoiceWanted};

/// Returns the voice for `wanted`. An id of no voice is taken from `wanted` and told in `warnings`; language, gender
/// and accent then decide. A server is asked if it has a voice, a model is loaded: a call keeps its voice to its end.
///
/// # Errors
/// The synthesizer has no voice for the language.
pub(super) async fn choose(
    synthesizer: &dyn Synthesizer,
    wanted: &mut VoiceWanted,
    warnings: &mut Vec<String>,
) -> Result<Voice, Failure> {
    let found = match synthesizer.voice(wanted) {
        Ok(voice) if wanted.custom_voice_id.is_some() => synthesizer.check(&voice).await.map(|()| voice),
        found => found,
    };
    let failure = match found {
        Err(failure) if failure.code == "unknown_voice" => failure,
        other => return other,
    };
    let Some(id) = wanted.custom_voice_id.take() else { return Err(failure) };
    let voice = synthesizer.voice(wanted)?;
    warnings.push(format!("custom_voice_id: there is no voice {id:.60}, {} speaks in its place", voice.id));
    Ok(Voice { substituted: Some(format!("no voice {id:.60}: {}", voice.id)), ..voice })
}

/// Returns the voice that says all words of a call. A voice that has only some of them leaves the whole call to the one
/// that has the others, which is told in `warnings`. `texts`: all words, where they are known.
pub(super) fn settle(
    synthesizer: &dyn Synthesizer,
    voice: Voice,
    texts: Option<&[String]>,
    warnings: &mut Vec<String>,
) -> Voice {
    let other = voice.fallback.as_deref().filter(|_| !synthesizer.says_all(&voice, texts));
    let Some(other) = other.cloned() else { return voice };
    warnings.push(format!("custom_voice_id: {} has not all words of this call, {} speaks it", voice.id, other.id));
    Voice { substituted: Some(format!("{} has kept sentences only: {}", voice.id, other.id)), ..other }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringer_provider::recorded::RecordedSpeech;
    use ringer_provider::speech::EmbeddedSpeech;

    use super::*;

    /// A voice of kept sentences speaks a call of these alone.
    #[test]
    fn one_voice_says_all_words_of_a_call() {
        let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
        let speech = RecordedSpeech::new(Arc::new(speech));
        let wanted = VoiceWanted { custom_voice_id: Some("kokoro:af_heart".into()), ..VoiceWanted::of("en") };
        let kept = ["Yes, of course.".to_owned()];
        let more = [kept[0].clone(), "This was never written down.".to_owned()];
        for (texts, expect) in [(Some(&kept[..]), "kokoro:af_heart"), (Some(&more), "flite:slt"), (None, "flite:slt")] {
            let mut warnings = Vec::new();
            let voice = speech.voice(&wanted).expect("its sentences are kept");
            let voice = settle(&speech, voice, texts, &mut warnings);
            assert_eq!(voice.id, expect, "{texts:?}");
            let is_same = expect.starts_with("kokoro");
            assert_eq!((voice.substituted.is_none(), warnings.is_empty()), (is_same, is_same), "{warnings:?}");
        }
    }

    #[tokio::test]
    async fn a_voice_that_is_not_here_is_replaced_and_told() {
        let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
        for (id, substituted, warnings) in [
            ("slt", None, vec![]),
            (
                "nobody",
                Some("no voice nobody: flite:rms"),
                vec!["custom_voice_id: there is no voice nobody, flite:rms speaks in its place"],
            ),
        ] {
            let mut wanted =
                VoiceWanted { custom_voice_id: Some(id.into()), gender: Some("male".into()), ..VoiceWanted::of("en") };
            let mut found = Vec::new();
            let voice = choose(&speech, &mut wanted, &mut found).await.expect("somebody speaks English");
            assert_eq!(
                (voice.substituted.as_deref(), found),
                (substituted, warnings.into_iter().map(str::to_owned).collect())
            );
            assert_eq!(wanted.custom_voice_id.is_some(), substituted.is_none(), "later choices begin without it");
        }
    }
}
