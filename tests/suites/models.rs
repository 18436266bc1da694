//! Models in the data folder, used by the run's own engine.

use serde_json::json;

use super::{Bench, suite};
use crate::calls::speech::alone::neural::bring_models;
use crate::program::{Program, ringer};

#[tokio::test]
async fn a_run_uses_the_models_that_are_here_and_says_so() {
    let bench = Bench::new();
    let data = bench.path().join("data");
    std::fs::create_dir(&data).expect("the folder is writable");
    bring_models(&data);
    let mut desk = Program::start(&mut ringer(&["agent", "--listen", "127.0.0.1:0", "--rtp-ports", "37100-37199"]));
    let connect = format!("sip: \"{}\"", desk.address("sip:").await);
    let scenario = "  - name: hello\n    turns: [{ say: Hello. }, { wait: 0.1 }]\n    expect: [{ heard: clinic }]\n";
    bench.write("hello.yaml", &suite(&connect, scenario));
    let ran = bench.run(&["hello.yaml"]).await;
    let message =
        "speech is recognized by the Whisper model tiny.en\nspeech is made by en_US-joe-medium where a voice fits";
    assert!(ran.out.contains(message), "{}{}", ran.out, ran.err);
    let line = &bench.lines()[0];
    assert_eq!(line["recognizer"]["model"], "tiny.en", "{line}");
    let synthesizer = &line["synthesizer"];
    assert_eq!((&synthesizer["kind"], &synthesizer["model"]), (&json!("piper"), &json!("en_US-joe-medium")), "{line}");
    assert!(synthesizer["sha256"].as_str().is_some_and(|hash| hash.len() == 64), "{line}");
    desk.kill().await;
}
