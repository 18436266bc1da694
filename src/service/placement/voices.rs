//! The voice of a Digital Human. A wished voice that is not here is replaced, and the call says so.

use ringer_provider::{Failure, Synthesizer, Voice, VoiceWanted};

/// Returns the voice for `wanted`. An id of no voice is taken from `wanted` and told in `warnings`; language, gender
/// and accent then decide.
///
/// # Errors
/// The synthesizer has no voice for the language.
pub(super) fn choose(
    synthesizer: &dyn Synthesizer,
    wanted: &mut VoiceWanted,
    warnings: &mut Vec<String>,
) -> Result<Voice, Failure> {
    let failure = match synthesizer.voice(wanted) {
        Err(failure) if failure.code == "unknown_voice" => failure,
        other => return other,
    };
    let Some(id) = wanted.custom_voice_id.take() else { return Err(failure) };
    let voice = synthesizer.voice(wanted)?;
    warnings.push(format!("custom_voice_id: there is no voice {id:.60}, {} speaks in its place", voice.id));
    Ok(Voice { substituted: Some(format!("no voice {id:.60}: {}", voice.id)), ..voice })
}

#[cfg(test)]
mod tests {
    use ringer_provider::speech::EmbeddedSpeech;

    use super::*;

    #[test]
    fn a_voice_that_is_not_here_is_replaced_and_told() {
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
            let mut told = Vec::new();
            let voice = choose(&speech, &mut wanted, &mut told).expect("somebody speaks English");
            assert_eq!(
                (voice.substituted.as_deref(), told),
                (substituted, warnings.into_iter().map(str::to_owned).collect())
            );
            assert_eq!(wanted.custom_voice_id.is_some(), substituted.is_none(), "later choices begin without it");
        }
    }
}
