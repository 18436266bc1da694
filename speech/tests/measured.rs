//! Word errors of the neural recognizer, at length: only `make speech` runs it. Figures are printed, bounds hold.

use std::path::{Path, PathBuf};
use std::time::Instant;

use ringer_media::clip::Clip;
use ringer_media::codec::Codec;
use ringer_speech::whisper::{Spoken, Whisper};

mod trial;
use trial::{espeak, flite, joe, kokoro, kokoro_says, piper, sentences, through, variable, whisper, wrong_pct};

/// Prompts that people spoke: a language with its folder, then names and words.
const RECORDINGS: &str = include_str!("../../fixtures/speech/recordings.txt");
/// 20 German sentences of calls.
const GERMAN: &str = include_str!("../../fixtures/speech/german.txt");
/// 30 sentences that nothing was fitted to.
const OTHERS: &str = include_str!("../../fixtures/speech/others.txt");

#[expect(clippy::disallowed_methods, reason = "what is measured is the time that it takes")]
fn now() -> Instant {
    Instant::now()
}

fn lines(text: &'static str) -> Vec<&'static str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

#[test]
fn sentences_are_understood_clean_in_babble_and_with_loss() {
    let joe = joe();
    for (name, model, most) in [("tiny.en", whisper("tiny.en"), [9.0, 25.0]), ("base", whisper("base"), [13.0, 25.0])] {
        for (set, texts) in [("sentences", sentences()), ("others", lines(OTHERS))] {
            for voice in ["slt", "joe"] {
                let say = |said: &str| if voice == "joe" { piper(&joe, said, 3) } else { flite(said, voice) };
                for codec in [Codec::G722, Codec::Pcmu] {
                    let clean = wrong_pct(&texts, |said| trial::text(&model, &through(codec, &say(said)), "en"));
                    println!("{name} {set} {voice} {codec:?}: {clean:.1} % wrong");
                    assert!(clean <= most[0] + 4.0, "{name} {set} {voice} {codec:?}");
                }
                for loss in [1, 3, 5] {
                    let found = wrong_pct(&texts, |said| {
                        trial::text(&model, &lossy(&through(Codec::Pcmu, &say(said)), loss), "en")
                    });
                    println!("{name} {set} {voice} Pcmu, {loss} % of packets lost: {found:.1} % wrong");
                }
                let noisy =
                    wrong_pct(&texts, |said| trial::text(&model, &through(Codec::Pcmu, &babble(&say(said))), "en"));
                println!("{name} {set} {voice} Pcmu, babble 10 dB below: {noisy:.1} % wrong");
                assert!(noisy <= most[1] + 10.0, "{name} {set} {voice} in babble");
            }
        }
    }
}

/// Voices of both accents and genders on the telephone.
#[test]
fn kokoro_voices_are_understood_on_the_telephone() {
    let (model, ears, texts) = (kokoro(), whisper("tiny.en"), sentences());
    for voice in ["af_heart", "am_michael", "bf_emma", "bm_george"] {
        let wrong = wrong_pct(&texts, |said| {
            trial::text(&ears, &through(Codec::Pcmu, &kokoro_says(&model, voice, said, 0.9)), "en")
        });
        println!("tiny.en {voice} Pcmu: {wrong:.1} % wrong");
        assert!(wrong < 4.0, "{voice}: {wrong:.1} % wrong");
    }
}

/// Replaces this many of a hundred packets by silence, chosen by a fixed draw.
fn lossy(pcm: &[i16], loss: u32) -> Vec<i16> {
    let mut state = 7u32;
    let mut out = pcm.to_vec();
    for packet in out.chunks_mut(320) {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if (state >> 8) % 100 < loss {
            packet.fill(0);
        }
    }
    out
}

/// Mixes six voices behind the speech, 10 dB below it.
fn babble(pcm: &[i16]) -> Vec<i16> {
    let all = sentences();
    let others: Vec<Vec<i16>> = (20..26).map(|at| flite(all[at], if at % 2 == 0 { "slt" } else { "rms" })).collect();
    let behind: Vec<f64> =
        (0..pcm.len()).map(|at| others.iter().map(|other| f64::from(other[at % other.len()])).sum()).collect();
    let power = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    let speech = power(&mut pcm.iter().map(|&sample| f64::from(sample)));
    let factor = (speech / power(&mut behind.iter().copied()) / 10.0).sqrt();
    pcm.iter().zip(&behind).map(|(&sample, other)| (f64::from(sample) + other * factor) as i16).collect()
}

#[test]
fn people_are_understood_on_the_telephone() {
    let folder = variable("RINGER_RECORDINGS").expect("make speech unpacks recordings");
    let folder = folder.join("usr/share/asterisk/sounds");
    let (mut language, mut sounds) = ("", "");
    let mut prompts: Vec<(&str, &str, &str, &str)> = Vec::new();
    for line in lines(RECORDINGS) {
        match line.split_once('\t') {
            Some((name, words)) => prompts.push((language, sounds, name, words)),
            None => (language, sounds) = line.split_once(' ').expect("a language and its folder"),
        }
    }
    let measure = |name: &str, model: &Whisper, language: &str, most: f64| {
        let of: Vec<_> = prompts.iter().filter(|prompt| prompt.0 == language).collect();
        assert_eq!(of.len(), 40, "{language}");
        let mut at = of.iter();
        let texts: Vec<&str> = of.iter().map(|prompt| prompt.3).collect();
        let wrong = wrong_pct(&texts, |_| {
            let (_, sounds, name, _) = at.next().expect("one for each text");
            let wav = std::fs::read(folder.join(sounds).join(format!("{name}.wav"))).expect("it is unpacked");
            let pcm = Clip::from_wav(&wav).expect("a WAV file").to_16k();
            trial::text(model, &through(Codec::Pcmu, &pcm), language)
        });
        println!("{name}, people, {language} Pcmu: {wrong:.1} % wrong");
        assert!(wrong <= most, "{name} {language}: {wrong:.1} %");
    };
    measure("tiny.en", &whisper("tiny.en"), "en", 15.0);
    let base = whisper("base");
    for (language, most) in [("en", 15.0), ("es", 30.0), ("fr", 30.0)] {
        measure("base", &base, language, most);
    }
}

/// Short sentences that people spoke in languages of which no prompts of a telephone are packaged with their words: the
/// names of pictures. They are reported and have no bound. Files of `tuxpaint-stamps-default`, at least three words.
#[test]
fn short_sentences_of_people_are_measured_in_more_languages() {
    let folder = variable("RINGER_RECORDINGS").expect("make speech unpacks recordings");
    let mut texts = Vec::new();
    collect(&folder.join("usr/share/tuxpaint/stamps"), &mut texts);
    texts.sort();
    let base = whisper("base");
    for language in ["bg", "ca", "da", "el", "es", "fr", "nl", "pt_BR", "ro", "ru"] {
        let spoken: Vec<(String, PathBuf)> = texts.iter().filter_map(|text| spoken_in(text, language)).collect();
        let every = spoken.len().div_ceil(STAMPS).max(1);
        let mut chosen = spoken.iter().step_by(every);
        let said: Vec<&str> = chosen.clone().map(|(words, _)| words.as_str()).collect();
        let code = language.split('_').next().unwrap_or_default();
        let wrong = wrong_pct(&said, |_| {
            let (_, sound) = chosen.next().expect("one for each text");
            trial::text(&base, &through(Codec::Pcmu, &trial::decode_file(sound)), code)
        });
        println!("base, people, {} short sentences, {language} Pcmu: {wrong:.1} % wrong", said.len());
        assert!(!said.is_empty(), "{language}: there is nothing to measure");
    }
}

/// Most sentences of a language.
const STAMPS: usize = 60;

/// Finds all texts below a folder.
fn collect(folder: &Path, texts: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("it is unpacked").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, texts);
        } else if path.extension().is_some_and(|ending| ending == "txt") {
            texts.push(path);
        }
    }
}

/// Returns the words of a stamp in a language and its recording; `None` where one is missing, or the words have digits.
fn spoken_in(text: &Path, language: &str) -> Option<(String, PathBuf)> {
    let stem = text.file_stem()?.to_str()?;
    let sound = ["ogg", "wav"].map(|ending| text.with_file_name(format!("{stem}_desc_{language}.{ending}")));
    let sound = sound.into_iter().find(|path| path.exists())?;
    let texts = std::fs::read_to_string(text).ok()?;
    let words = texts.lines().find_map(|line| line.strip_prefix(&format!("{language}.utf8=")))?.trim();
    let fits = words.split_whitespace().count() >= 3 && !words.contains(|c: char| c.is_ascii_digit() || c == '(');
    fits.then(|| (words.to_owned(), sound))
}

/// German is reported and has no bound: no recordings of people are packaged, and the synthesizer's voice is hard to
/// understand.
#[test]
fn german_is_measured() {
    let base = whisper("base");
    let texts = lines(GERMAN);
    for codec in [Codec::G722, Codec::Pcmu] {
        let wrong = wrong_pct(&texts, |said| trial::text(&base, &through(codec, &espeak(said, "de")), "de"));
        println!("base, espeak-ng, de {codec:?}: {wrong:.1} % wrong");
        assert!(wrong < 100.0, "something is understood");
    }
}

#[test]
fn a_second_of_speech_costs_little() {
    for (name, most) in [("tiny.en", 0.05), ("base", 0.2)] {
        let model = whisper(name);
        let turns: Vec<Vec<i16>> =
            sentences().chunks(2).map(|pair| through(Codec::Pcmu, &flite(&pair.join(" "), "slt"))).collect();
        let (mut seconds, mut spent) = (0.0, 0.0);
        for pcm in &turns {
            let begun = now();
            model.hear(pcm, Spoken::Known("en"), &|| false);
            (seconds, spent) = (seconds + pcm.len() as f64 / 16_000.0, spent + begun.elapsed().as_secs_f64());
        }
        let factor = spent / seconds;
        let turn = seconds / turns.len() as f64;
        println!(
            "{name}: {factor:.3} s of a core for a second, turns of {turn:.1} s, each {:.2} s",
            spent / turns.len() as f64
        );
        assert!(factor <= most, "{name}: {factor:.3}");
    }
}
