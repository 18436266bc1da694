//! Versions of prompts: what a judge is asked, apart from the conversation.

use sha2::{Digest, Sha256};

/// Bytes of the hash of a prompt that are its version.
const BYTES: usize = 6;

/// Returns the version of a prompt of these texts: the beginning of their hash, in hexadecimal digits.
pub(crate) fn version(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use ringer_model::custom_metric::CustomMetricSpec;

    use super::*;
    use crate::{goal_version, meaning_version, metric_version};

    #[test]
    fn another_prompt_has_another_version() {
        let polite: CustomMetricSpec = serde_json::from_value(serde_json::json!({
            "name": "Polite", "description": "Is it?", "response_type": "yes_no", "agent_ids": [],
        }))
        .expect("a metric");
        let strict = CustomMetricSpec { scoring_guidance: Some("Be strict.".into()), ..polite.clone() };
        let versions = [
            goal_version(),
            metric_version(&polite),
            metric_version(&strict),
            meaning_version("It is open."),
            meaning_version("It is shut."),
        ];
        for (at, one) in versions.iter().enumerate() {
            assert!(one.len() == 12 && !versions[at + 1..].contains(one), "{versions:?}");
        }
        assert_eq!(metric_version(&polite), versions[1], "the same prompt has the same one");
        assert_ne!(version(&["ab", "c"]), version(&["a", "bc"]));
    }
}
