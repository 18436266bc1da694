use std::path::PathBuf;

use super::*;

#[test]
fn a_model_that_is_not_there_is_named() {
    let failure = WhisperRecognizer::new(&PathBuf::from("/nowhere/tiny"), 1).err().expect("nothing is there");
    assert_eq!(failure.code, "recognizer_missing");
    assert!(failure.message.contains("/nowhere/tiny has neither model.bin nor"), "{}", failure.message);
}
