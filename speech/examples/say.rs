//! Says texts by a voice: `say VOICE.onnx OUT_PREFIX TEXT...`, with the time that each took.
use ringer_speech::piper::{Manner, PiperVoice, clauses};
use std::path::Path;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let t = std::time::Instant::now();
    let voice = PiperVoice::load(Path::new(&args[1])).expect("voice");
    eprintln!("load {:.2?} {} {} {:?}", t.elapsed(), voice.language(), voice.rate_hz(), voice.speakers());
    for (at, text) in args[3..].iter().enumerate() {
        let mut all: Vec<i16> = Vec::new();
        for clause in clauses(text) {
            let t = std::time::Instant::now();
            let said = voice.say(&clause, Manner { speaker: 0, length: 1.0, seed: 5 }).expect("said");
            eprintln!("{clause:?} {:.2} s in {:.3?}", said.len() as f64 / voice.rate_hz() as f64, t.elapsed());
            assert_eq!(said, voice.say(&clause, Manner { speaker: 0, length: 1.0, seed: 5 }).expect("said"));
            all.extend(said);
        }
        let bytes: Vec<u8> = all.iter().flat_map(|x| x.to_le_bytes()).collect();
        std::fs::write(format!("{}_{at:02}.raw", args[2]), bytes).expect("written");
    }
}
