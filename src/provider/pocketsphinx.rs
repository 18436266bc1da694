//! The embedded recognizer: libpocketsphinx decodes English at 16 kHz while the words are still being said. A bounded
//! pool of low-priority threads, one a core, each with a few warm decoders. A stream that finds none waits for the next
//! one that is free, with its audio, and catches up; where as many wait already, it is refused with `recognizer_busy`.
//!
//! Bias words are not used: the library takes them only with a pronunciation. Its dictionary has 134,000 words already.

mod library;
mod line;

use std::cell::OnceCell;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use ringer_media::detected_language::DetectedLanguage;
use tokio::sync::mpsc;

use self::library::{Decoder, Library};
use self::line::{Line, Order, Seat, Worker};
use super::{Failure, ModelName, Recognized, Recognizer, RecognizerFeed, SpokenIn, Status};

/// Folder of the model of Debian's package `pocketsphinx-en-us`.
pub const MODEL: &str = "/usr/share/pocketsphinx/model/en-us";

/// Returns the number of calls that this machine hears at once beside the rest of the work.
pub fn heard_at_once() -> usize {
    live_streams(thread::available_parallelism().map_or(1, NonZero::get))
}

/// Returns the number of live streams that `cores` carry: one core is left to everything else.
fn live_streams(cores: usize) -> usize {
    (cores.saturating_sub(1).max(1) * STREAMS_PER_CORE).min(DEFAULT_STREAMS_MAX)
}

/// Streams whose speech is over and whose text is being made: the next words of the same call must not wait for it.
const SPARE: usize = 2;
/// Live streams that one core carries beside the rest of the work (3 alone on a slow one, 5 on a fast one).
const STREAMS_PER_CORE: usize = 3;
/// Decoders take 100 MB each.
const DEFAULT_STREAMS_MAX: usize = 12;
/// Audio goes to the decoder in blocks of 100 ms.
const BLOCK: usize = 1600;
/// 30 s of audio may wait for the decoder; more is dropped.
const BACKLOG_BLOCKS: usize = 300;
/// Running text is read each 300 ms of audio.
const PARTIAL_BLOCKS: usize = 3;
/// Messages of a stream that nobody has taken yet; further running texts are skipped, the final text never is.
const NEWS_DEPTH: usize = 16;

/// The embedded recognizer. One decoder loads from the start, which shows that the model is there, and all others when
/// calls are expected. Each takes half a second of a core and 100 MB, and an engine that only answers requests needs
/// none.
pub struct Pocketsphinx {
    workers: Vec<Arc<Worker>>,
    /// True if calls were expected once.
    expects: AtomicBool,
    line: Arc<Line>,
    broken: Arc<OnceLock<String>>,
    dropped: Arc<AtomicU64>,
}

impl Pocketsphinx {
    /// Starts the pool for `streams` streams at once, with the model in the folder `model` (see [`MODEL`]). 0: three
    /// for each core but one, at most 12, and 2 to spare. Never fails: [`Recognizer::status`] says what is missing.
    pub fn new(streams: usize, model: &Path) -> Pocketsphinx {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let streams = if streams == 0 { live_streams(threads) + SPARE } else { streams };
        let broken = Arc::new(OnceLock::new());
        let mut pool = Pocketsphinx {
            workers: Vec::new(),
            expects: AtomicBool::new(false),
            broken: broken.clone(),
            line: Arc::default(),
            dropped: Arc::default(),
        };
        let library = match Library::open() {
            Ok(library) => library,
            Err(cause) => {
                let _ = broken.set(cause);
                return pool;
            }
        };
        let threads = threads.min(streams);
        for index in 0..threads {
            let slots = streams / threads + usize::from(index < streams % threads);
            let (orders, inbox) = sync_channel(slots * (BACKLOG_BLOCKS + 2) + 1);
            let worker = Arc::new(Worker { orders });
            let desk = Desk {
                library: library.clone(),
                model: model.to_owned(),
                broken: broken.clone(),
                index,
                line: pool.line.clone(),
                // Weak: the thread ends when the pool and its feeds are gone.
                worker: Arc::downgrade(&worker),
            };
            let started =
                thread::Builder::new().name(format!("recognizer-{index}")).spawn(move || desk.run(slots, &inbox));
            match started {
                Ok(_) => {
                    pool.workers.push(worker);
                    pool.line.add(index, slots);
                }
                Err(cause) => {
                    let _ = broken.set(format!("no thread for the recognizer: {cause}"));
                    break;
                }
            }
        }
        pool
    }

    /// Returns the number of 16 kHz samples that did not fit since the start.
    #[cfg(test)]
    fn dropped_samples(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Recognizer for Pocketsphinx {
    fn supports(&self, language: &str, rate_hz: u32) -> Result<(), String> {
        if language != "en" {
            return Err(format!("no recognizer model for language {language}"));
        }
        if rate_hz < 16_000 {
            return Err("the recognizer cannot read narrowband audio".into());
        }
        match self.status() {
            Status::Ok => Ok(()),
            Status::Down(_) => Err("the recognizer is not installed".into()),
        }
    }

    fn count_keyterms(&self, _keyterms: &[String]) -> usize {
        0
    }

    fn expect(&self) {
        if !self.expects.swap(true, Ordering::AcqRel) {
            self.workers.iter().for_each(|worker| worker.send(0, Order::Load));
        }
    }

    fn identifies(&self) -> Result<(), String> {
        Err("the recognizer knows English alone and hears every language as English".into())
    }

    fn open(
        &self,
        _language: SpokenIn<'_>,
        _keyterms: &[String],
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        self.expect();
        let (news, receiver) = mpsc::channel(NEWS_DEPTH);
        let last = news.clone().try_reserve_owned().expect("a new channel has space");
        let refuse = |last: mpsc::OwnedPermit<Recognized>, code, message: String| {
            last.send(Recognized::Failed(Failure { code, message }));
        };
        let backlog = Arc::new(AtomicUsize::new(0));
        let feed = if let Some(cause) = self.broken.get() {
            refuse(last, "recognizer_missing", cause.clone());
            Feed::closed_feed()
        } else if let Some(seat) = self.line.seat(&self.workers) {
            seat.order(Order::Open { news, last, backlog: backlog.clone() });
            Feed { stream: Some(seat), block: Vec::with_capacity(BLOCK), backlog, dropped: self.dropped.clone() }
        } else {
            refuse(last, "recognizer_busy", "text late: every decoder is in use".into());
            Feed::closed_feed()
        };
        (Box::new(feed), receiver)
    }

    fn status(&self) -> Status {
        self.broken.get().map_or(Status::Ok, |cause| Status::Down(cause.clone()))
    }

    fn model(&self) -> Option<ModelName> {
        Some(ModelName::new("embedded", "pocketsphinx"))
    }
}

struct Feed {
    stream: Option<Arc<Seat>>,
    block: Vec<i16>,
    backlog: Arc<AtomicUsize>,
    dropped: Arc<AtomicU64>,
}

impl Feed {
    fn closed_feed() -> Feed {
        Feed { stream: None, block: Vec::new(), backlog: Arc::default(), dropped: Arc::default() }
    }

    fn flush(&mut self) {
        let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK));
        let Some(seat) = &self.stream else { return };
        if block.is_empty() {
            return;
        }
        if self.backlog.fetch_add(1, Ordering::AcqRel) >= BACKLOG_BLOCKS {
            self.backlog.fetch_sub(1, Ordering::AcqRel);
            self.dropped.fetch_add(block.len() as u64, Ordering::Relaxed);
            return;
        }
        seat.order(Order::Audio(block));
    }
}

impl RecognizerFeed for Feed {
    fn push(&mut self, mut pcm: &[i16]) {
        while self.stream.is_some() && !pcm.is_empty() {
            let (head, rest) = pcm.split_at(pcm.len().min(BLOCK - self.block.len()));
            self.block.extend_from_slice(head);
            pcm = rest;
            if self.block.len() == BLOCK {
                self.flush();
            }
        }
    }

    fn finish(&mut self) {
        self.flush();
        if let Some(seat) = self.stream.take() {
            seat.order(Order::Finish);
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        if let Some(seat) = self.stream.take() {
            seat.order(Order::Abandon);
        }
    }
}

/// State of a decoder thread.
struct Desk {
    library: Arc<Library>,
    model: PathBuf,
    broken: Arc<OnceLock<String>>,
    index: usize,
    line: Arc<Line>,
    worker: std::sync::Weak<Worker>,
}

/// A stream that a decoder is working on.
struct Stream {
    news: mpsc::Sender<Recognized>,
    last: mpsc::OwnedPermit<Recognized>,
    backlog: Arc<AtomicUsize>,
    blocks: usize,
    shown: String,
}

impl Desk {
    fn run(&self, slots: usize, inbox: &Receiver<(usize, Order)>) {
        // SAFETY: a plain system call; who = 0 is this thread. A refusal leaves the priority as it was.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 10) };
        let mut decoders: Vec<OnceCell<Option<Decoder>>> = (0..slots).map(|_| OnceCell::new()).collect();
        let mut streams: Vec<Option<Stream>> = (0..slots).map(|_| None).collect();
        let mut ahead = usize::from(self.index == 0);
        while let Some((slot, order)) = self.next(inbox, &decoders, ahead) {
            decoders[slot].get_or_init(|| self.load());
            let stream = &mut streams[slot];
            match (decoders[slot].get_mut().and_then(Option::as_mut), order) {
                (_, Order::Load) => ahead = slots,
                (decoder, Order::Open { news, last, backlog }) => {
                    if decoder.is_some_and(Decoder::start) {
                        *stream = Some(Stream { news, last, backlog, blocks: 0, shown: String::new() });
                        continue;
                    }
                    let message = self.broken.get().cloned().unwrap_or_else(|| "the decoder did not start".into());
                    last.send(Recognized::Failed(Failure { code: "recognizer_failed", message }));
                }
                (Some(decoder), Order::Audio(pcm)) => {
                    if let Some(stream) = stream {
                        stream.hear(decoder, &pcm);
                    }
                }
                (Some(decoder), Order::Finish) => {
                    let answer = stream.take().map(|stream| stream.close(decoder));
                    // First: who has the final text may open the next stream at once.
                    self.release(slot);
                    if let Some((last, result)) = answer {
                        last.send(result);
                    }
                }
                (Some(decoder), Order::Abandon) => {
                    if stream.take().is_some() {
                        decoder.finish();
                    }
                    self.release(slot);
                }
                (None, Order::Finish | Order::Abandon) => self.release(slot),
                (None, Order::Audio(_)) => {}
            }
        }
    }

    /// Returns the next order; until one comes, the first `ahead` decoders are loaded. `None`: no more orders can come.
    fn next(
        &self,
        inbox: &Receiver<(usize, Order)>,
        decoders: &[OnceCell<Option<Decoder>>],
        ahead: usize,
    ) -> Option<(usize, Order)> {
        loop {
            match inbox.try_recv() {
                Ok(asked) => return Some(asked),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if self.load_one(&decoders[..ahead]) => {}
                Err(TryRecvError::Empty) => return inbox.recv().ok(),
            }
        }
    }

    /// Loads one of these that nobody has asked for yet; false when there is none.
    fn load_one(&self, decoders: &[OnceCell<Option<Decoder>>]) -> bool {
        let absent = decoders.iter().find(|decoder| decoder.get().is_none());
        absent.map(|decoder| decoder.get_or_init(|| self.load())).is_some()
    }

    fn load(&self) -> Option<Decoder> {
        match Decoder::new(&self.library, &self.model) {
            Ok(decoder) => Some(decoder),
            Err(cause) => {
                let _ = self.broken.set(cause);
                None
            }
        }
    }

    fn release(&self, slot: usize) {
        if let Some(worker) = self.worker.upgrade() {
            self.line.free(self.index, slot, &worker);
        }
    }
}

impl Stream {
    fn hear(&mut self, decoder: &mut Decoder, pcm: &[i16]) {
        self.backlog.fetch_sub(1, Ordering::AcqRel);
        if !decoder.push(pcm) {
            return;
        }
        self.blocks += 1;
        // Behind by more than a second: the words matter more than their progress.
        if self.blocks.is_multiple_of(PARTIAL_BLOCKS) && self.backlog.load(Ordering::Acquire) < 10 {
            let text = decoder.text();
            if text != self.shown {
                self.shown.clone_from(&text);
                let _ = self.news.try_send(Recognized::Partial(text));
            }
        }
    }

    fn close(self, decoder: &mut Decoder) -> (mpsc::OwnedPermit<Recognized>, Recognized) {
        let heard = decoder.finish();
        let words = if heard { decoder.words() } else { Vec::new() };
        let confidence = (!words.is_empty())
            .then(|| words.iter().filter_map(|word| word.confidence).sum::<f32>() / words.len() as f32);
        let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        (self.last, Recognized::Final { text, words, confidence, detected_language: DetectedLanguage::Fixed })
    }
}

#[cfg(test)]
mod tests {
    use ringer_media::frame::Sample;
    use ringer_media::seed::Seed;

    use super::*;
    use crate::speech::EmbeddedSpeech;
    use crate::{Synthesizer, Voice, VoiceWanted, whole_speech};

    const SENTENCES: [&str; 10] = [
        "hello i would like to make an appointment with the doctor",
        "my last bill was much higher than i expected",
        "could you please tell me when the office is open on saturday",
        "i need to change the address on my account",
        "the package has not arrived and i am waiting for two weeks",
        "yes that is correct thank you very much",
        "is there a way to speak with a real person",
        "we are sorry but the line is busy at the moment",
        "please hold while i transfer you to the right department",
        "your order will be delivered on monday in the morning",
    ];

    async fn speech(text: &str, seed: u64) -> Vec<i16> {
        let synthesizer = EmbeddedSpeech::new().expect("there is a temporary folder");
        let wanted = VoiceWanted {
            custom_voice_id: Some(if seed.is_multiple_of(2) { "slt" } else { "rms" }.into()),
            seed: Seed(seed),
            ..VoiceWanted::of("en")
        };
        let voice = synthesizer.voice(&wanted).expect("the voice is known");
        let pcm = whole_speech(&synthesizer, text, &voice).await.expect("flite is installed");
        [&[0; 3200], &*pcm, &[0; 3200]].concat()
    }

    async fn hear(pool: &Pocketsphinx, pcm: &[i16]) -> Vec<Recognized> {
        let (mut feed, mut news) = pool.open(SpokenIn::Known("en"), &[]);
        pcm.chunks(320).for_each(|frame| feed.push(frame));
        feed.finish();
        let mut all = Vec::new();
        while let Some(message) = news.recv().await {
            all.push(message);
        }
        all
    }

    /// Returns the number of word errors by edit distance.
    fn errors(said: &str, heard: &str) -> usize {
        let (said, heard): (Vec<&str>, Vec<&str>) = (said.split(' ').collect(), heard.split(' ').collect());
        let mut row: Vec<usize> = (0..=heard.len()).collect();
        for (at, word) in said.iter().enumerate() {
            let mut corner = std::mem::replace(&mut row[0], at + 1);
            for (index, other) in heard.iter().enumerate() {
                let best = (corner + usize::from(word != other)).min(row[index] + 1).min(row[index + 1] + 1);
                corner = std::mem::replace(&mut row[index + 1], best);
            }
        }
        row[heard.len()]
    }

    #[tokio::test]
    async fn clear_sentences_are_understood_also_over_g722() {
        use ringer_media::codec::{Codec, Decoder, Encoder};
        let pool = Pocketsphinx::new(1, Path::new(MODEL));
        let (mut wrong, mut wrong_g722, mut words) = (0, 0, 0);
        for (seed, text) in SENTENCES.iter().enumerate() {
            let pcm = speech(text, seed as u64).await;
            let (mut encoder, mut decoder) = (Encoder::new(Codec::G722), Decoder::new(Codec::G722));
            let (mut bytes, mut frame, mut wire) = ([0; 160], [0; 320], Vec::new());
            for block in pcm.chunks_exact(320) {
                let count = encoder.encode(block, &mut bytes);
                let count = decoder.decode(&bytes[..count], &mut frame);
                wire.extend_from_slice(&frame[..count]);
            }
            words += text.split(' ').count();
            for (audio, wrong) in [(&pcm, &mut wrong), (&wire, &mut wrong_g722)] {
                let news = hear(&pool, audio).await;
                let Some(Recognized::Final { text: heard, words, .. }) = news.last() else {
                    panic!("no final text: {news:?}")
                };
                *wrong += errors(text, heard);
                let end = audio.len() as Sample;
                assert!(words.iter().all(|word| word.from >= 0 && word.from < word.to && word.to <= end + 1600));
                assert!(words.is_sorted_by_key(|word| word.from));
                let first = words.first().map_or(0, |word| word.from);
                assert!((1600..6400).contains(&first), "first word at {first}, speech begins at 3200");
            }
        }
        println!("{wrong} of {words} words are heard wrong, {wrong_g722} over G.722");
        assert!(wrong * 100 <= words * 15, "{wrong} of {words} words wrong");
        assert!(wrong_g722 * 100 <= words * 20, "{wrong_g722} of {words} words wrong over G.722");
        assert_eq!(pool.dropped_samples(), 0);
    }

    /// Returns the number of words said and of words wrong, of these sentences in this voice.
    async fn understood(speech: &EmbeddedSpeech, pool: &Pocketsphinx, voice: &Voice, texts: &[&str]) -> (usize, usize) {
        let (mut words, mut wrong) = (0, 0);
        for text in texts {
            let pcm = whole_speech(speech, text, voice).await.expect("flite is installed");
            let news = hear(pool, &[&[0; 3200], &*pcm, &[0; 3200]].concat()).await;
            let Some(Recognized::Final { text: heard, .. }) = news.last() else { panic!("no final text: {news:?}") };
            words += text.split(' ').count();
            wrong += errors(text, heard);
        }
        (words, wrong)
    }

    #[tokio::test]
    async fn callers_are_understood_as_well_as_the_voices_they_are_made_of() {
        let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
        let pool = Pocketsphinx::new(1, Path::new(MODEL));
        for (id, gender) in [("flite:slt", "female"), ("flite:rms", "male")] {
            let plain = Voice { id: id.into(), ..Voice::default() };
            let (words, wrong) = understood(&speech, &pool, &plain, &SENTENCES).await;
            let (mut callers_words, mut callers_wrong) = (0, 0);
            for seed in 0..10 {
                let wanted =
                    VoiceWanted { gender: Some(gender.into()), seed: Seed(seed as u64 + 1), ..VoiceWanted::of("en") };
                let voice = speech.voice(&wanted).expect("English has voices");
                assert_eq!(voice.id, id);
                let texts = [SENTENCES[seed], SENTENCES[(seed + 5) % 10]];
                let (words, wrong) = understood(&speech, &pool, &voice, &texts).await;
                (callers_words, callers_wrong) = (callers_words + words, callers_wrong + wrong);
            }
            let [plain, callers] = [(words, wrong), (callers_words, callers_wrong)]
                .map(|(words, wrong)| 100.0 * wrong as f64 / words as f64);
            println!("{id}: {plain:.1} % of {words} words wrong, of ten callers {callers:.1} % of {callers_words}");
            assert!(callers <= plain + 5.0, "{id}: {plain} % wrong, of callers {callers} %");
        }
    }

    #[tokio::test]
    async fn running_text_comes_before_the_end_and_a_full_line_says_so() {
        let pool = Pocketsphinx::new(1, Path::new(MODEL));
        let pcm = speech(SENTENCES[0], 0).await;
        let news = hear(&pool, &pcm).await;
        let partial = |message: &Recognized| matches!(message, Recognized::Partial(text) if text.contains("hello"));
        assert!(news.iter().any(partial), "{news:?}");
        assert!(news.len() <= 1 + pcm.len() / 4800 + 1);

        // One decoder: the second stream waits with what was said, the third is one too many.
        let (mut feed, _news) = pool.open(SpokenIn::Known("en"), &[]);
        let (mut late, mut waiting) = pool.open(SpokenIn::Known("en"), &[]);
        let (_, mut refused) = pool.open(SpokenIn::Known("en"), &[]);
        let Some(Recognized::Failed(failure)) = refused.recv().await else { panic!("two streams on one decoder") };
        assert_eq!(failure.code, "recognizer_busy");
        late.push(&pcm);
        late.finish();
        assert!(waiting.try_recv().is_err());
        feed.finish();
        let news = last_of(&mut waiting).await;
        assert!(matches!(&news, Some(Recognized::Final { text, .. }) if text.contains("doctor")), "{news:?}");

        // A stream that is given up while it waits, or on the decoder, leaves the place to others.
        let (feed, _news) = pool.open(SpokenIn::Known("en"), &[]);
        drop(pool.open(SpokenIn::Known("en"), &[]));
        let (mut late, mut waiting) = pool.open(SpokenIn::Known("en"), &[]);
        late.push(&pcm);
        drop(feed);
        late.finish();
        let news = last_of(&mut waiting).await;
        assert!(matches!(&news, Some(Recognized::Final { text, .. }) if text.contains("doctor")), "{news:?}");
    }

    async fn last_of(news: &mut mpsc::Receiver<Recognized>) -> Option<Recognized> {
        let mut last = None;
        while let Some(message) = news.recv().await {
            last = Some(message);
        }
        last
    }

    #[tokio::test]
    async fn silence_has_no_words() {
        let pool = Pocketsphinx::new(1, Path::new(MODEL));
        let news = hear(&pool, &[0; 16_000]).await;
        let Some(Recognized::Final { words, confidence, .. }) = news.last() else { panic!("no final text") };
        assert!(words.len() <= 1 && confidence.is_some() != words.is_empty(), "{words:?}");
    }

    #[test]
    fn decoders_load_one_by_one_as_many_as_are_wanted() {
        let desk = Desk {
            library: Library::open().expect("it is installed"),
            model: PathBuf::from(MODEL),
            broken: Arc::default(),
            index: 0,
            line: Arc::default(),
            worker: std::sync::Weak::new(),
        };
        let decoders = [const { OnceCell::new() }; 3];
        let loaded = || decoders.iter().filter(|decoder| decoder.get().is_some_and(Option::is_some)).count();
        let (orders, inbox) = sync_channel(1);
        // Orders come first.
        orders.try_send((2, Order::Load)).expect("there is space");
        assert!(matches!(desk.next(&inbox, &decoders, 1), Some((2, Order::Load))));
        assert_eq!(loaded(), 0);
        assert_eq!([desk.load_one(&decoders[..1]), desk.load_one(&decoders[..1])], [true, false]);
        assert_eq!(loaded(), 1);
        assert_eq!([desk.load_one(&decoders), desk.load_one(&decoders), desk.load_one(&decoders)], [true, true, false]);
        assert_eq!(loaded(), 3);
        drop(orders);
        assert!(desk.next(&inbox, &decoders, 3).is_none());
    }

    #[tokio::test]
    async fn a_missing_model_names_its_package() {
        let pool = Pocketsphinx::new(1, Path::new("/nowhere"));
        let news = hear(&pool, &[0; 320]).await;
        let Some(Recognized::Failed(failure)) = news.last() else { panic!("there is no model: {news:?}") };
        assert!(failure.message.contains("pocketsphinx-en-us"), "{}", failure.message);
        assert!(matches!(pool.status(), Status::Down(_)));
        assert!(pool.supports("en", 16_000).is_err());
    }

    #[test]
    fn only_wideband_english_is_promised() {
        let pool = Pocketsphinx::new(1, Path::new(MODEL));
        assert_eq!(pool.supports("en", 16_000), Ok(()));
        assert_eq!(pool.supports("en", 8000), Err("the recognizer cannot read narrowband audio".to_owned()));
        assert!(pool.supports("de", 16_000).expect_err("no model").contains("de"));
        assert!(pool.tells_running_text() && pool.count_keyterms(&["Alvarez".into()]) == 0);
    }
}
