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
