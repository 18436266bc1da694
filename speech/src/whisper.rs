//! Words from audio: a Whisper model on one thread. Encoder products in 32-bit numbers, decoder weights in 8-bit ones.
//!
//! A stretch of speech is padded with 4 s of silence to at least 10 s, not to 30. With less the model repeats itself,
//! with more it computes silence. A text that comes to its limit (`limits`), or repeats itself, is made once more
//! with all 30 s.
//!
//! A text may skip a sentence, or end behind the first of several: speech without words is heard once more by itself
//! (`missed`). Where two tokens are about as likely, both texts are made, and the likelier one is taken (`search`).

mod bias;
mod decoder;
mod encoder;
mod folder;
mod languages;
mod limits;
mod math;
mod mel;
mod missed;
mod search;
mod tokens;
mod words;

use std::path::Path;

pub use self::bias::Bias;
use self::bias::{Written, stands};
use self::decoder::{Decoder, State};
use self::encoder::Encoder;
use self::folder::Folder;
pub use self::folder::{TOKENIZER, WEIGHTS};
pub use self::languages::{Reliability, reliability};
pub use self::limits::piece_samples;
use self::limits::{TextBudget, is_brief, repeats_itself};
use self::math::{Products, log_sum_exp, softmax};
use self::mel::{HOP, Mel};
use self::tokens::Tokens;
pub use self::words::Word;
use crate::{Unusable, unusable};

/// Number of the token that ends a text, of models for many languages and for English.
const END: u32 = 50_257;
const END_OF_ENGLISH: u32 = 50_256;
/// Longest stretch that is recognized in one piece, in samples: the model knows 30 s.
pub const SAMPLES_MAX: usize = 28 * 16_000;
/// Number of frames of bands in a second.
const FRAMES_S: usize = 16_000 / HOP;
/// Silence after the speech, in frames.
const PADDING: usize = 4 * FRAMES_S;
/// Fewest and most frames of a stretch, padding included.
const FRAMES: (usize, usize) = (10 * FRAMES_S, 30 * FRAMES_S);
/// Mean logarithm of the tokens' probabilities from which a text that repeats itself is kept: people do say things
/// twice. It must also have come to its end, and repeat itself with 30 s around it.
const SURE_REPEATS: f32 = -0.35;

/// Most stretches of speech without words that are heard once more.
const MISSED_MAX: usize = 4;
/// Mean logarithm of the tokens' probabilities from which the words of such a stretch are told, and the probability of
/// no speech below which they are.
const MISSED_SURE: f32 = -0.8;
const MISSED_NO_SPEECH: f32 = 0.4;

/// A loaded model. Shared by threads; each call of [`Whisper::hear`] works on its own.
pub struct Whisper {
    mel: Mel,
    encoder: Encoder,
    decoder: Decoder,
    tokens: Tokens,
    /// Tokens that are no speech, and those with which no text begins.
    never: Vec<u32>,
    never_first: Vec<u32>,
    multilingual: bool,
    width: usize,
}

/// Probability of another language from which a stretch is taken to be in it.
pub const SURE: f32 = 0.5;

/// Language of a stretch, as a code such as `en` or `es`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Spoken<'a> {
    /// The stretch is in this language.
    Known(&'a str),
    /// The stretch is in this language, unless the model is sure of another.
    Likely(&'a str),
}

/// Languages that models up to this width are not trusted with. It is an estimate of where more than 30 % of the words
/// are wrong. English, Spanish and French were measured on the telephone (`make speech`); every other language is taken
/// on trust.
const HARD: [&str; 5] = ["ar", "hi", "ml", "vi", "yue"];
/// Width of the layers of a small model (base).
const SMALL: usize = 512;

/// Recognized text of a stretch of speech.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcription {
    /// Text as the model writes it.
    pub text: String,
    /// Words with their places in the stretch.
    pub words: Vec<Word>,
    /// Mean logarithm of the probability of a token.
    pub log_probability: f32,
    /// Probability that the stretch holds no speech.
    pub no_speech: f32,
    /// True if the text came to its limit, or repeats itself without being sure, even with more silence around it.
    pub repeats: bool,
    /// Language that the model finds, with its probability; `None` when it was not asked to find one.
    pub language: Option<(String, f32)>,
}

impl Transcription {
    /// Returns the confidence of the text, 0 to 1: the geometric mean of its tokens' probabilities, 0 for a text that
    /// repeats itself.
    pub fn confidence(&self) -> f32 {
        if self.repeats { 0.0 } else { self.log_probability.exp().clamp(0.0, 1.0) }
    }

    /// True if the model itself doubts that this was speech, so that nothing of it should be shown as words. Noise,
    /// babble of many voices, tones and silence are at -1.2 and below, or at least 0.8 of no speech. Of 600 recorded
    /// prompts through a telephone, two were. Music becomes a word or two, such as "you" or "mm-hmm", with at least
    /// 0.45 of no speech; short answers of people have at most 0.2.
    pub fn is_unclear(&self) -> bool {
        self.repeats || is_doubted(&self.text, self.log_probability, self.no_speech)
    }

    /// True if the words of speech that had none before may be told: stricter than [`Transcription::is_unclear`], as
    /// the model itself passed over them.
    fn is_clear_speech(&self) -> bool {
        let is_sure = self.log_probability > MISSED_SURE && self.no_speech < MISSED_NO_SPEECH;
        is_sure && !self.words.is_empty() && !self.is_unclear()
    }
}

/// True for a text that the model doubts, by the mean logarithm of its tokens' probabilities and the probability that
/// nobody speaks.
fn is_doubted(text: &str, sure: f32, nobody: f32) -> bool {
    let is_invented = sure < -1.2 || (nobody > 0.6 && sure < -0.7) || (nobody > 0.8 && sure < -0.4);
    let is_doubtful = (nobody > 0.4 && sure < -0.9) || (nobody > 0.5 && sure < -0.3) || nobody > 0.8;
    is_invented || (is_doubtful && is_brief(text))
}

/// Returns the code of a stretch's language: another than the likely one where the model is sure of it.
fn code_of<'a>(language: Spoken<'a>, found: Option<&'a (String, f32)>) -> &'a str {
    match language {
        Spoken::Known(code) => code,
        Spoken::Likely(code) => found.filter(|(_, sure)| *sure >= SURE).map_or(code, |(found, _)| found),
    }
}

/// Encoded audio of a stretch: steps of the encoder, padding included, and samples of the speech.
#[derive(Copy, Clone)]
struct Audio {
    steps: usize,
    samples: usize,
}

/// Returns the frames of so many samples with the silence behind them: an even number.
fn padded_frames(samples: usize) -> usize {
    (samples / HOP + PADDING).clamp(FRAMES.0, FRAMES.1).next_multiple_of(2)
}

/// A text as the decoder made it.
struct Made {
    tokens: Vec<(u32, f32)>,
    log_probability: f32,
    no_speech: f32,
    /// True if the text came to its end within its budget.
    ended: bool,
    repeats: bool,
    language: Option<(String, f32)>,
    words: Vec<Word>,
}

impl Whisper {
    /// Loads the model in `folder`: `model.bin` or `model.safetensors`, and `tokenizer.json`.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn load(folder: &Path) -> Result<Whisper, Unusable> {
        math::settle();
        let mut from = Folder::open(folder)?;
        let of = |why: Unusable| Unusable(format!("{}: {why}", folder.display()));
        let products = Products::default();
        let tokens = Tokens::load(&from.tokenizer, from.sizes.tokens)
            .map_err(|why| Unusable(format!("{}: {why}", folder.join(TOKENIZER).display())))?;
        let multilingual = from.sizes.tokens >= 51_865;
        if tokens.end != if multilingual { END } else { END_OF_ENGLISH } {
            return unusable(format!("{}: it is the vocabulary of another model", folder.join(TOKENIZER).display()));
        }
        if multilingual && tokens.transcribe.is_none() {
            return unusable(format!("{}: {TOKENIZER} has no mark <|transcribe|>", folder.display()));
        }
        let mut never = from.list_of(&["suppress_ids", "suppress_tokens"]);
        never.retain(|&token| token != tokens.end);
        let never_first = from.list_of(&["suppress_ids_begin", "begin_suppress_tokens"]);
        Ok(Whisper {
            mel: Mel::new(&products, from.sizes.bands),
            encoder: Encoder::load(&products, &mut from).map_err(of)?,
            decoder: Decoder::load(&products, &mut from).map_err(of)?,
            tokens,
            never,
            never_first,
            multilingual,
            width: from.sizes.width,
        })
    }

    /// True if the model knows other languages than English.
    pub fn is_multilingual(&self) -> bool {
        self.multilingual
    }

    /// True if the model has a token for this language, and is not too small to be trusted with it.
    pub fn knows(&self, language: &str) -> bool {
        let easy = self.width > SMALL || !HARD.contains(&language);
        if self.multilingual { easy && self.tokens.language(language).is_some() } else { language == "en" }
    }

    /// Returns the first of these words, which are likely to come, as the model is shown them.
    pub fn bias(&self, terms: &[String]) -> Bias {
        Bias::of(&self.tokens, terms)
    }

    /// Recognizes `pcm` (16 kHz) in this language; samples after [`SAMPLES_MAX`] are ignored. `None` when `cancelled`
    /// became true. Works on the calling thread alone.
    pub fn hear(&self, pcm: &[i16], language: Spoken<'_>, cancelled: &dyn Fn() -> bool) -> Option<Transcription> {
        self.hear_with(pcm, language, &Bias::default(), cancelled)
    }

    /// Recognizes `pcm` as [`Whisper::hear`] does, with words that are likely to come.
    pub fn hear_with(
        &self,
        pcm: &[i16],
        language: Spoken<'_>,
        bias: &Bias,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<Transcription> {
        math::settle();
        let products = &Products::default();
        let pcm: Vec<f32> = pcm.iter().take(SAMPLES_MAX).map(|&sample| f32::from(sample) / 32_768.0).collect();
        let frames = padded_frames(pcm.len());
        let mut made = self.make(products, &pcm, frames, language, bias, cancelled)?;
        if made.repeats && frames < FRAMES.1 {
            made = self.make(products, &pcm, FRAMES.1, language, bias, cancelled)?;
        }
        let mut whole = self.transcription(made);
        let mut from = 0;
        for _ in 0..MISSED_MAX {
            if whole.is_unclear() || whole.words.is_empty() {
                break;
            }
            let Some(missed) = missed::find(&pcm, &whole.words, from) else { break };
            let frames = padded_frames(missed.samples.len());
            let made = self.make(products, &pcm[missed.samples.clone()], frames, language, bias, cancelled)?;
            // What has words now is looked at again: it may have ended early as well.
            from = missed.samples.start + 1;
            let found = self.transcription(made);
            if found.is_clear_speech() {
                missed::insert(&mut whole, found, missed);
            }
        }
        Some(whole)
    }

    fn transcription(&self, made: Made) -> Transcription {
        let text = self.text_of(&made);
        let stands = made.ended && made.log_probability > SURE_REPEATS;
        Transcription {
            text,
            words: made.words,
            log_probability: made.log_probability,
            no_speech: made.no_speech,
            repeats: made.repeats && !stands,
            language: made.language,
        }
    }

    fn text_of(&self, made: &Made) -> String {
        let numbers: Vec<u32> = made.tokens.iter().map(|&(token, _)| token).collect();
        self.tokens.text(&numbers).trim().to_owned()
    }

    fn make(
        &self,
        products: &Products,
        pcm: &[f32],
        frames: usize,
        language: Spoken<'_>,
        bias: &Bias,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<Made> {
        let bands = self.mel.bands(products, pcm, frames);
        let encoded = self.encoder.encode(products, &bands, cancelled)?;
        let mut state = self.decoder.begin(products, &encoded);
        let audio = Audio { steps: frames / 2, samples: pcm.len() };
        let plain = self.write(&mut state, audio, language, &Bias::default(), cancelled)?;
        let text = self.text_of(&plain);
        // Words that are shown are not made of what is no speech.
        if bias.is_empty()
            || plain.repeats
            || text.is_empty()
            || is_doubted(&text, plain.log_probability, plain.no_speech)
        {
            return Some(plain);
        }
        state.restart();
        let language = Spoken::Known(code_of(language, plain.language.as_ref()));
        let biased = self.write(&mut state, audio, language, bias, cancelled)?;
        let written = Written { text: &text, log_probability: plain.log_probability };
        let other = self.text_of(&biased);
        let other = Written { text: &other, log_probability: biased.log_probability };
        Some(match !biased.repeats && stands(written, other) {
            true => Made { no_speech: plain.no_speech, language: plain.language, ..biased },
            false => plain,
        })
    }

    /// Returns the likeliest text of encoded audio. `state` holds no text yet.
    fn write(
        &self,
        state: &mut State,
        audio: Audio,
        language: Spoken<'_>,
        bias: &Bias,
        cancelled: &dyn Fn() -> bool,
    ) -> Option<Made> {
        for &token in bias.tokens() {
            if cancelled() {
                return None;
            }
            self.decoder.take(state, token);
        }
        let mut odds = Vec::new();
        self.decoder.step(state, self.tokens.start, &mut odds);
        let no_speech = self.tokens.no_speech.map_or(0.0, |mark| (odds[mark as usize] - log_sum_exp(&odds)).exp());
        let mut found = None;
        if self.multilingual {
            if let Spoken::Likely(_) = language {
                found = self.likeliest(&odds);
            }
            let mark = self.tokens.language(code_of(language, found.as_ref())).or_else(|| self.tokens.language("en"));
            for mark in [mark, self.tokens.transcribe].into_iter().flatten() {
                self.decoder.step(state, mark, &mut odds);
            }
        }
        self.decoder.step(state, self.tokens.no_times, &mut odds);
        let seconds = audio.samples as f64 / 16_000.0;
        let budget = TextBudget::of(seconds, self.decoder.tokens_max() - state.count);
        let search::Text { tokens, ended, log_probability, followed } =
            search::likeliest(self, state, &mut odds, budget, cancelled)?;
        let numbers: Vec<u32> = tokens.iter().map(|&(token, _)| token).collect();
        let repeats = !ended || repeats_itself(&self.tokens.text(&numbers));
        let words = words::words(&self.tokens, &tokens, &followed, audio.steps, audio.samples as i64);
        Some(Made { tokens, log_probability, no_speech, ended, repeats, language: found, words })
    }

    /// Returns the likeliest language and its share of all.
    fn likeliest(&self, odds: &[f32]) -> Option<(String, f32)> {
        let mut shares: Vec<f32> = self.tokens.languages.iter().map(|&(_, mark)| odds[mark as usize]).collect();
        softmax(&mut shares);
        let best = (0..shares.len()).max_by(|&a, &b| shares[a].total_cmp(&shares[b]))?;
        Some((self.tokens.languages[best].0.clone(), shares[best]))
    }
}

#[cfg(test)]
mod tests;
