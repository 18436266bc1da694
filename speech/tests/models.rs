//! Neural recognizer and voices with real models, which `make speech-models` brings.

use std::f32::consts::TAU;

use ringer_media::codec::Codec;
use ringer_speech::clauses::clauses;
use ringer_speech::piper::{Manner, PiperVoice};
use ringer_speech::whisper::{Bias, Spoken, Whisper};

mod trial;
use trial::*;

/// 12 sentences, two voices, two codecs.
#[test]
fn words_are_understood_on_the_telephone() {
    let (model, joe) = (whisper("tiny.en"), joe());
    let sentences = &sentences()[..12];
    let said: Vec<[Vec<i16>; 2]> = sentences.iter().map(|text| [flite(text, "slt"), piper(&joe, text, 7)]).collect();
    for (codec, most) in [(Codec::G722, [7.0, 2.0]), (Codec::Pcmu, [11.0, 2.0])] {
        for (voice, most) in most.into_iter().enumerate() {
            let mut at = said.iter();
            let wrong = wrong_pct(sentences, |_| {
                let pcm = &at.next().expect("one for each sentence")[voice];
                text(&model, &through(codec, pcm), "en")
            });
            println!("{codec:?} voice {voice}: {wrong:.1} % wrong");
            assert!(wrong <= most, "{codec:?} voice {voice}: {wrong:.1} % wrong, at most {most}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_samples() {
    let joe = joe();
    let clause = &clauses("Hello, I would like to book a visit next week.", |_, _| false)[0];
    let say = |seed| joe.say(clause, Manner { speaker: 0, length: 1.0, seed }).expect("it is said");
    let first = say(5);
    assert!(first.len() > 22_050, "{} samples", first.len());
    assert!(first == say(5), "the same seed, other samples");
    assert!(first != say(6), "another seed, the same samples");
}

/// A voice of English and one of Spanish; the graph is rewritten when it is loaded.
#[test]
fn a_kokoro_voice_is_understood_and_has_the_same_samples_again() {
    let (model, ears) = (kokoro(), whisper("tiny.en"));
    let said = kokoro_says(&model, "bm_george", "I would like to see a doctor.", 0.9);
    let heard = text(&ears, &through(Codec::Pcmu, &said), "en");
    assert_eq!(heard.to_lowercase().trim_end_matches('.'), "i would like to see a doctor");
    assert!(said[..4].iter().all(|sample| sample.unsigned_abs() < 300), "it begins with a click");
    let hello = |speed| kokoro_says(&model, "ef_dora", "Hola.", speed);
    let (slow, fast) = (hello(0.8), hello(1.6));
    assert!(slow == hello(0.8), "other samples");
    assert!(slow.len() > fast.len() * 5 / 4 && fast.len() > 4000, "{} and {} samples", slow.len(), fast.len());
}

#[test]
fn noise_and_silence_have_no_words() {
    let model = whisper("tiny.en");
    let mut state = 1u32;
    let mut noise = |level: f32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        ((state >> 8) as f32 / 8_388_608.0 - 1.0) * level
    };
    let white: Vec<i16> = (0..48_000).map(|_| noise(1500.0) as i16).collect();
    let tone = |hz: f32, at: usize| 5000.0 * (TAU * hz * at as f32 / 16_000.0).sin();
    let dial: Vec<i16> = (0..48_000).map(|at| (tone(350.0, at) + tone(440.0, at)) as i16).collect();
    let mut click = vec![0; 24_000];
    click[8000..8800].iter_mut().for_each(|sample| *sample = noise(16_000.0) as i16);
    let all = sentences();
    let voices: Vec<Vec<i16>> = (0..6).map(|at| flite(all[at], if at % 2 == 0 { "slt" } else { "rms" })).collect();
    let babble: Vec<i16> = (0..40_000)
        .map(|at| (voices.iter().map(|pcm| i32::from(*pcm.get(at).unwrap_or(&0))).sum::<i32>() / 3) as i16)
        .collect();
    for (name, pcm) in [
        ("silence", vec![0; 48_000]),
        ("noise", white),
        ("a dial tone", dial),
        ("a click", click),
        ("babble", babble),
        ("music of 2 s", music(2)),
        ("music of 5 s", music(5)),
    ] {
        for codec in [Codec::G722, Codec::Pcmu] {
            assert_eq!(text(&model, &through(codec, &pcm), "en"), "", "{name} {codec:?}");
        }
    }
}

/// Names that the model writes as it pleases, and as it is shown; silence, noise and music stay without words.
#[test]
fn likely_words_are_written_as_they_are_given_and_not_into_silence() {
    let (model, joe) = (whisper("tiny.en"), joe());
    let terms = ["Kowalczyk", "Metoprolol", "Kwasniewski", "Xolair"].map(str::to_owned);
    let bias = model.bias(&terms);
    assert_eq!(bias.terms(), 4);
    let hear = |pcm: &[i16], bias: &Bias| {
        let heard = model.hear_with(pcm, Spoken::Known("en"), bias, &|| false).expect("nobody cancels it");
        if heard.is_unclear() { String::new() } else { heard.text }
    };
    let plain = Bias::default();
    for text in ["Please ask for Mister Kowalczyk at the desk.", "She takes Metoprolol in the morning."] {
        let name = terms.iter().find(|term| text.contains(term.as_str())).expect("it has one");
        let pcm = through(Codec::Pcmu, &piper(&joe, text, 7));
        let (without, with) = (hear(&pcm, &plain), hear(&pcm, &bias));
        println!("{without} | {with}");
        assert!(with.contains(name.as_str()), "{name}: {with}, without it {without}");
        assert!(wrong(text, &with).0 <= wrong(text, &without).0, "{with} for {without}");
    }
    let mut state = 1u32;
    let mut noise = |level: f32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (((state >> 8) as f32 / 8_388_608.0 - 1.0) * level) as i16
    };
    let white: Vec<i16> = (0..48_000).map(|_| noise(1500.0)).collect();
    for (name, pcm) in [("silence", vec![0; 48_000]), ("noise", white), ("music", music(5))] {
        assert_eq!(hear(&through(Codec::Pcmu, &pcm), &bias), "", "{name}");
    }
    // Other sentences stay as they are, with silence around them too.
    let said: Vec<Vec<i16>> = sentences()[..3].iter().map(|text| flite(text, "slt")).collect();
    for (pcm, text) in said.iter().zip(sentences()) {
        let pcm = [&vec![0; 16_000], &pcm[..], &vec![0; 48_000]].concat();
        let (without, with) = (hear(&pcm, &plain), hear(&pcm, &bias));
        assert!(!terms.iter().any(|term| with.contains(term.as_str())), "{with}");
        assert!(wrong(text, &with).0 <= wrong(text, &without).0 + 1, "{with} for {without}");
    }
}

/// More words than fit: the first ones are shown, and how many is told.
#[test]
fn likely_words_are_bounded() {
    let model = whisper("tiny.en");
    let many: Vec<String> = (0..200).map(|at| format!("Kowalczyk{at}")).collect();
    let bias = model.bias(&many);
    assert!((5..30).contains(&bias.terms()), "{}", bias.terms());
    let odd = ["".to_owned(), "x".repeat(5000), " ".to_owned()];
    assert!(model.bias(&odd).is_empty());
    let mixed = [odd[1].clone(), "Alvarez".to_owned()];
    assert!(!model.bias(&mixed).is_empty(), "one that is too long keeps nobody else out");
}

#[test]
fn work_that_is_given_up_ends() {
    let model = whisper("tiny.en");
    assert_eq!(model.hear(&vec![100; 160_000], Spoken::Known("en"), &|| true), None);
}

#[test]
fn words_have_their_places() {
    let (model, text) = (whisper("tiny.en"), sentences()[0]);
    let pcm = [vec![0; 8000], flite(text, "slt")].concat();
    let heard = model.hear(&pcm, Spoken::Known("en"), &|| false).expect("nobody cancels it");
    assert!(heard.words.len() >= 9, "{:?}", heard.words);
    assert!(heard.words.windows(2).all(|pair| pair[0].from <= pair[0].to && pair[0].to <= pair[1].from + 1));
    let (first, last) = (&heard.words[0], &heard.words[heard.words.len() - 1]);
    assert!((4000..14_000).contains(&first.from), "it begins after half a second: {first:?}");
    assert!(last.to > pcm.len() as i64 * 3 / 4 && last.to <= pcm.len() as i64, "{last:?}");
    assert!(heard.confidence() > 0.6 && heard.no_speech < 0.3, "{heard:?}");
}

#[test]
fn broken_and_wrong_models_are_refused_with_words() {
    let refused = |name: &str, file: &str, bytes: usize, expect: &str| {
        let (folder, _gone) = broken(name, file, bytes);
        let why = match name {
            "joe" => PiperVoice::load(&folder.join(VOICE)).err(),
            _ => Whisper::load(&folder).err(),
        };
        let why = why.unwrap_or_else(|| panic!("{file} of {bytes} bytes is taken")).0;
        assert!(why.contains(expect) && why.contains(file), "{file} of {bytes} bytes: {why}");
    };
    refused("tiny.en", "model.bin", 30_000_000, "was cut");
    refused("tiny.en", "model.bin", 100, "it was cut: it ends at byte");
    refused("tiny.en", "tokenizer.json", 5000, "EOF while parsing");
    refused("joe", VOICE, 20_000_000, "it is no ONNX network, or was cut");
    refused("joe", "en_US-joe-medium.onnx.json", 300, "EOF while parsing");
    let why = Whisper::load(&model("joe")).err().expect("a voice hears nothing").0;
    assert!(why.contains("has neither model.bin nor model.safetensors"), "{why}");
    // The words of one model with the network of another.
    let (folder, _gone) = broken("tiny.en", "model.bin", usize::MAX);
    std::fs::copy(model("base").join("tokenizer.json"), folder.join("tokenizer.json")).expect("writable");
    let why = Whisper::load(&folder).err().expect("it has other words").0;
    assert!(why.contains("tokenizer.json: it is the vocabulary of another model"), "{why}");
    std::fs::write(folder.join("tokenizer.json"), "{}").expect("writable");
    let why = Whisper::load(&folder).err().expect("it has no words").0;
    assert!(why.contains("tokenizer.json: it has no model.vocab"), "{why}");
}

#[test]
fn numbers_are_compared_as_they_are_meant() {
    let check = |said: &str, heard: &str, expect| assert_eq!(wrong(said, heard).0, expect, "{said} / {heard}");
    check("forty two dollars and sixteen cents", "$42.16.", 0);
    check("from the tenth of June", "from the 10th of June", 0);
    check("half past three", "half past 3", 0);
    check("forty two dollars", "$43", 1);
    check("Caf\u{e9}, s\u{ed}", "cafe si no", 1);
}

/// Returns an instrument as it is heard on hold: notes of many harmonics that swell three times a second.
fn music(seconds: usize) -> Vec<i16> {
    let mut state = 42_u32.wrapping_mul(2_654_435_761) | 1;
    let mut draw = |most: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % most
    };
    let scale = [0.0, 2.0, 4.0, 5.0, 7.0, 9.0, 11.0, 12.0];
    let mut pcm = Vec::new();
    while pcm.len() < seconds * 16_000 {
        let len = 3200 * (1 + draw(6) as usize);
        let key = 48.0 + scale[draw(8) as usize] + 12.0 * draw(3) as f32;
        let hz = 440.0 * ((key - 69.0) / 12.0_f32).exp2();
        pcm.extend((0..len).map(|at| {
            let (t, share) = (at as f32 / 16_000.0, at as f32 / len as f32);
            let edge = (share * 8.0).min((1.0 - share) * 8.0).min(1.0);
            let bent = t + 0.0006 * (TAU * 5.5 * t).sin();
            let tone: f32 = (1..12).map(|k| (TAU * hz * k as f32 * bent).sin() / k as f32).sum();
            (4000.0 * edge * tone * (0.6 + 0.4 * (TAU * 3.0 * t).sin())).clamp(-30_000.0, 30_000.0) as i16
        }));
    }
    pcm.truncate(seconds * 16_000);
    pcm
}
