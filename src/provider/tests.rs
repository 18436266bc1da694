//! Are callers told apart? Ten seeds of one wish, each saying two different texts, held against each other by what
//! tells speakers apart: pitch, formants and the long-term spectrum. Every feature counts in units of what a caller's
//! own two texts differ by.

mod roots;

use ringer_media::seed::Seed;
use ringer_media::testing::speaker::{FEATURES, Features, features};

use super::speech::EmbeddedSpeech;
use super::{Synthesizer, VoiceWanted, whole_speech};

const TEXTS: [&str; 2] = [
    "I would like to make an appointment for next week because my back hurts a lot. Please tell me which days are free and \
     whether the doctor is there in the morning or only in the afternoon.",
    "The number on my last bill does not match what I see on the meter, and nobody could tell me why. I have called three \
     times already and every time somebody promised to look into it.",
];
const CALLERS: u64 = 10;

/// A caller's features, of each text.
type Caller = [Features; TEXTS.len()];

async fn caller(speech: &EmbeddedSpeech, gender: &str, seed: u64) -> Caller {
    let wanted = VoiceWanted { gender: Some(gender.into()), seed: Seed(seed), ..VoiceWanted::of("en") };
    let voice = speech.voice(&wanted).expect("English has voices");
    let mut found = [[0.0; FEATURES]; TEXTS.len()];
    for (found, text) in found.iter_mut().zip(TEXTS) {
        let pcm = whole_speech(speech, text, &voice).await.expect("flite is installed");
        assert!(pcm.len() >= 8 * 16_000, "{} samples", pcm.len());
        *found = features(&pcm);
    }
    found
}

/// Checks that all pairs of callers lie further apart, by different texts, than any caller's two texts do.
fn apart(wish: &str, callers: &[Caller]) {
    let mut spread = [0.0; FEATURES];
    for (at, spread) in spread.iter_mut().enumerate() {
        let sum: f64 = callers.iter().map(|[one, two]| (one[at] - two[at]).powi(2)).sum();
        *spread = (sum / callers.len() as f64).sqrt().max(1e-3);
    }
    let distance = |one: &Features, two: &Features| {
        let parts = one.iter().zip(two).zip(&spread).map(|((one, two), spread)| ((one - two) / spread).powi(2));
        parts.sum::<f64>().sqrt()
    };
    let own = callers.iter().map(|[one, two]| distance(one, two)).fold(0.0, f64::max);
    let mut pairs = Vec::new();
    for (at, one) in callers.iter().enumerate() {
        let others = callers[at + 1..].iter().enumerate();
        pairs.extend(others.map(|(more, two)| {
            let nearest = distance(&one[0], &two[1]).min(distance(&one[1], &two[0]));
            (nearest, at, at + 1 + more)
        }));
    }
    pairs.sort_by(|one, two| one.0.total_cmp(&two.0));
    println!("{wish}: a caller's own texts are at most {own:.2} apart, two callers at least {:.2?}", &pairs[..3]);
    assert!(pairs[0].0 > own, "{wish}: callers {:?} are as near as one caller's texts ({own})", pairs[0]);
}

#[tokio::test]
async fn ten_callers_of_one_wish_are_told_apart() {
    let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
    let (mut women, mut men, mut drawn) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 1..=CALLERS {
        let (woman, man) = tokio::join!(caller(&speech, "female", seed), caller(&speech, "male", seed));
        let wanted = VoiceWanted { seed: Seed(seed), ..VoiceWanted::of("en") };
        // The seed draws the rest of a voice alike, whether the gender was drawn or wished for.
        drawn.push(if super::voice::is_female(&wanted) { woman } else { man });
        women.push(woman);
        men.push(man);
    }
    apart("no wish", &drawn);
    apart("women", &women);
    apart("men", &men);
}
