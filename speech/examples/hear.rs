//! The texts of WAV files (16 kHz, mono): `hear MODEL [LANGUAGE] FILE...`, with the processor's time.
use std::path::Path;

use ringer_speech::whisper::Spoken;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let t = std::time::Instant::now();
    let model = ringer_speech::whisper::Whisper::load(Path::new(&args[1])).expect("model");
    eprintln!("load {:.2?}", t.elapsed());
    let language = match args[2].strip_prefix("auto:") {
        Some(code) => Spoken::Likely(code),
        None => Spoken::Known(&args[2]),
    };
    let (mut audio, mut spent, mut most) = (0.0, 0.0, 0f64);
    for file in &args[3..] {
        let wav = std::fs::read(file).expect("file");
        let pcm: Vec<i16> = wav[44..].chunks_exact(2).map(|b| i16::from_le_bytes([b[0], b[1]])).collect();
        let t = std::time::Instant::now();
        let heard = model.hear(&pcm, language, &|| false).expect("not cancelled");
        let took = t.elapsed().as_secs_f64();
        (audio, spent, most) = (audio + pcm.len() as f64 / 16000.0, spent + took, most.max(took));
        println!("{file}\t{}", heard.text);
        eprintln!(
            "{file} {:.2}s took {took:.3} lp {:.2} ns {:.2} rep {} lang {:?} {}",
            pcm.len() as f64 / 16000.0,
            heard.log_probability,
            heard.no_speech,
            heard.repeats,
            heard.language,
            if std::env::var("W").is_ok() {
                format!("{:?}", heard.words.iter().map(|w| (&w.text, w.from / 16, w.to / 16)).collect::<Vec<_>>())
            } else {
                String::new()
            }
        );
    }
    eprintln!("audio {audio:.1}s spent {spent:.2}s = {:.4} a second, most {most:.3}", spent / audio);
}
