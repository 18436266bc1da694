//! Texts that repeat themselves.

use super::*;

#[test]
fn a_text_that_repeats_itself_is_known() {
    assert!(repeats_itself(&"thank you very much. ".repeat(6)));
    assert!(!repeats_itself("I am calling about the invoice that I received from you yesterday, please."));
    assert!(!repeats_itself("no no no no"));
}

#[test]
fn a_folder_without_a_model_is_refused_with_words() {
    let folder = std::env::temp_dir();
    let why = Whisper::load(&folder.join("no-such-folder")).err().expect("nothing is there");
    assert!(why.0.ends_with("has neither model.bin nor model.safetensors"), "{why}");
}

/// Figures that the models gave for music and for short answers, through telephone codecs.
#[test]
fn a_word_out_of_music_is_unclear_and_a_short_answer_is_not() {
    let heard = |text: &str, log_probability, no_speech| Transcription {
        text: text.to_owned(),
        words: Vec::new(),
        log_probability,
        no_speech,
        repeats: false,
        language: None,
    };
    for (text, sure, nobody) in [
        ("you", -0.93, 0.97),
        ("you", -1.14, 0.87),
        ("Mm-hmm", -0.60, 0.65),
        ("Mm-hmm. Mm-hmm. Mm-hmm.", -0.39, 0.57),
        ("Errrr", -1.04, 0.46),
        ("Errrr...", -1.10, 0.59),
        ("Thank you.", -0.30, 0.85),
    ] {
        assert!(heard(text, sure, nobody).is_unclear(), "{text} {sure} {nobody}");
    }
    for (text, sure, nobody) in [
        ("Yes.", -0.26, 0.20),
        ("You", -0.60, 0.15),
        ("Hello?", -0.82, 0.03),
        ("Dude.", -0.97, 0.05),
        ("Thank you.", -0.11, 0.04),
        // Many words are not what music becomes.
        ("I am calling about the invoice.", -0.38, 0.57),
        ("I am calling about the invoice.", -0.65, 0.65),
    ] {
        assert!(!heard(text, sure, nobody).is_unclear(), "{text} {sure} {nobody}");
    }
}
