//! Speech of the tests: sentences of a synthesizer, and recorded prompts.

use std::path::Path;
use std::process::Command;

use ringer_media::level::to_speech_level;
use ringer_media::resample::resample_whole;

const SPOKEN: [(&str, &str); 8] = [
    ("slt", "Hello, I would like to change my appointment. It was for Tuesday, and I can only come on Friday."),
    ("slt", "Could you please tell me what time you close on Saturday? I work until five in the afternoon."),
    ("rms", "My account number is four seven one nine, and my name is Peter Smith. The order came in March."),
    ("rms", "I am calling because the delivery has not arrived yet, and it was promised for last week."),
    ("awb", "Thank you very much for your help today. Is there anything else that you need from my side?"),
    ("awb", "The quick brown fox jumps over the lazy dog, while seven wizards watch from the old stone bridge."),
    ("kal16", "Please hold the line for a moment. I have to find the letter that your office sent to me."),
    ("kal16", "We need six tickets for the evening show, two of them for children under the age of nine."),
];

/// Silence before the first word and after the last, in samples at 16 kHz.
const AROUND: usize = 8000;

/// Returns eight pieces of 5 to 7 s in four voices of flite, at 16 kHz and -26 dBov.
pub(crate) fn sentences() -> Vec<Vec<i16>> {
    SPOKEN.iter().enumerate().map(|(n, (voice, text))| place(say(n, voice, text))).collect()
}

fn say(n: usize, voice: &str, text: &str) -> Vec<i16> {
    let name = format!("ringer-quality-{}-{:?}-{n}.wav", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    let status = Command::new("flite").args(["-voice", voice, "-t", text, "-o"]).arg(&path).status();
    assert!(status.expect("flite is missing: install the package flite").success(), "flite says {text:?} as {voice}");
    let pcm = samples(&path);
    std::fs::remove_file(&path).expect("it is ours");
    pcm
}

/// Returns eight recorded prompts of a human voice, at most 8 s of each, brought from 8 to 16 kHz (Debian package
/// asterisk-core-sounds-en-wav).
pub(crate) fn prompts() -> Vec<Vec<i16>> {
    let folder = Path::new("/usr/share/asterisk/sounds/en_US_f_Allison");
    let names = [
        "demo-instruct",
        "demo-nogo",
        "vm-options",
        "priv-callee-options",
        "screen-callee-options",
        "dir-instr",
        "vm-review",
        "demo-echotest",
    ];
    names
        .iter()
        .map(|name| {
            let narrow = samples(&folder.join(format!("{name}.wav")));
            let from = narrow.len().saturating_sub(8 * 8000) / 2;
            let most = narrow.len().min(from + 8 * 8000);
            place(resample_whole(&narrow[from..most], 8000, 16_000))
        })
        .collect()
}

/// Returns the samples of a 16-bit mono WAV file with a plain header.
fn samples(path: &Path) -> Vec<i16> {
    let bytes = std::fs::read(path)
        .unwrap_or_else(|why| panic!("{}: {why}: install flite and asterisk-core-sounds-en-wav", path.display()));
    bytes[44..].chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
}

fn place(mut said: Vec<i16>) -> Vec<i16> {
    to_speech_level(&mut said, 16_000);
    let mut pcm = vec![0; AROUND];
    pcm.append(&mut said);
    pcm.resize(pcm.len() + AROUND, 0);
    pcm
}
