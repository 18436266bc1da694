//! Voices that Digital Humans name by the folders of models, spoken by the built program.

use serde_json::json;

use super::neural::{Asked, model_cache};
use crate::calls::speech::custom_voices::{calls_by, substitution};
use crate::program::{Program, ringer, up};

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_and_a_voice_of_it_speak_and_one_that_is_not_there_is_told_at_save() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let models = folder.path().join("models");
    std::fs::create_dir(&models).expect("the folder is writable");
    for name in ["kokoro", "joe"] {
        std::os::unix::fs::symlink(model_cache().join(name), models.join(name)).expect("the folder is writable");
    }
    let mut engine = up(folder.path());
    engine.args(["--rtp-ports", "36600-36699"]);
    let mut engine = Program::start(&mut engine);
    let asked = Asked { base: engine.address("http://").await };
    let mut desk = Program::start(&mut ringer(&["agent", "--listen", "127.0.0.1:0", "--rtp-ports", "36700-36799"]));
    let voices = ["joe", "piper:en_US-joe-medium", "kokoro", "nobody"].map(|id| json!(id));
    let (made, results) = calls_by(&asked, &desk.address("sip:").await, &voices).await;
    let joe = "piper:en_US-joe-medium";
    for (at, kind) in [(0, "piper"), (1, "piper"), (2, "kokoro"), (3, "piper")] {
        let (voice, substituted, is_warned) = substitution(&results[at]);
        let expect = if kind == "kokoro" { "kokoro:" } else { joe };
        assert!(voice.starts_with(expect), "{at}: {}", results[at]);
        let is_replaced = at == 3;
        assert_eq!((substituted.is_some(), is_warned), (is_replaced, is_replaced), "{at}: {}", results[at]);
        assert_eq!(results[at]["metadata"]["synthesizer"]["kind"], kind, "{at}");
        let warning = made[at]["warnings"][0].as_str().unwrap_or_default();
        assert_eq!(warning.starts_with("custom_voice_id: there is no voice nobody, "), is_replaced, "{at}: {warning}");
        // One voice from the first word to the last.
        let others = results[at]["metadata"]["warnings"].to_string();
        assert!(!others.contains("another voice speaks"), "{at}: {others}");
    }
    assert_eq!(substitution(&results[3]).1, Some("no voice nobody: piper:en_US-joe-medium"));
    desk.kill().await;
    engine.kill().await;
}
