use std::collections::BTreeMap;

use super::*;

#[test]
fn without_voices_it_is_told_what_brings_them() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let floor = Arc::new(EmbeddedSpeech::new().expect("there is a temporary folder"));
    let made = PiperSpeech::new(&[folder.path().to_owned()], BTreeMap::new(), None, floor);
    let failure = made.err().expect("there is no voice");
    assert_eq!((failure.code, failure.message.contains("`ringer models add`")), ("synthesizer_missing", true));
}
