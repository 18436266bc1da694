//! Performing a call's effects: thinking, speaking, recognising. Each answer goes back to the call's media thread.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use ringer_human::{Fluency, Mind, SpeechPart, changed_text};
use ringer_media::call::{Comparison, Effect, EffectId, Effected, Interruption, Thought, Word};
use ringer_media::detected_language::DetectedLanguage;
use ringer_media::frame::PER_MS;
use ringer_media::time::Time;
use ringer_provider::{Failure, Recognized, RecognizerFeed, Spoken, SpokenIn, Voice};
use rtrb::Consumer;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use super::Placement;
use super::counters::InFlight;
use super::effect_times::{EffectKind, EffectTimes, Timed};
use super::following::Following;
use super::services::CallServices;
use super::shard::{CallNo, ToShard};

/// Parts of a move that may wait.
const MOVES: usize = 16;
/// Pieces of speech that may wait.
const PIECES: usize = 16;

/// Performs the effects of one call.
pub(super) struct Effects {
    link: Link,
    mind: Arc<Mutex<Box<dyn Mind>>>,
    fluency: Fluency,
    voice: Option<Voice>,
    language: String,
    /// The other side's language is spoken.
    following: Option<Following>,
    keyterms: Vec<String>,
    /// True if running text is used before a turn's end.
    wants_running: bool,
    running: HashMap<EffectId, CancellationToken>,
    tap: Consumer<i16>,
    /// Samples taken out of the tap so far.
    taken: u64,
    segments: VecDeque<Segment>,
    /// Position of the sample after the last mark.
    base: i64,
    times: EffectTimes,
}

/// One stretch of speech that is being recognised.
struct Segment {
    hear: EffectId,
    feed: Option<Box<dyn RecognizerFeed>>,
    /// Tap positions, in samples since the call began.
    from: u64,
    to: Option<u64>,
}

/// The way back to the call.
#[derive(Clone)]
struct Link {
    services: Arc<CallServices>,
    no: CallNo,
    shard: usize,
}

/// An effect that was begun.
struct Started {
    token: CancellationToken,
    timed: Timed,
    _counted: InFlight,
}

impl Started {
    async fn wait_for_cancel(&self) {
        self.token.cancelled().await;
    }

    fn over(&self) {
        self.timed.note_end();
        self.token.cancel();
    }
}

impl Link {
    fn finish(&self, id: EffectId, done: Effected) {
        self.services.order(self.shard, ToShard::Done(self.no, id, done));
    }
}

impl Effects {
    pub(crate) fn new(
        services: Arc<CallServices>,
        no: CallNo,
        shard: usize,
        placement: Placement,
        tap: Consumer<i16>,
        now: fn() -> Time,
    ) -> Effects {
        Effects {
            link: Link { services, no, shard },
            mind: Arc::new(Mutex::new(placement.mind)),
            fluency: placement.fluency,
            following: placement
                .follows
                .map(|wanted| Following::new(wanted, &placement.language, placement.voice.as_ref())),
            voice: placement.voice,
            language: placement.language,
            wants_running: matches!(
                placement.spec.interruption,
                Interruption::Keywords(_) | Interruption::Contextual { .. }
            ),
            keyterms: placement.keyterms,
            running: HashMap::new(),
            tap,
            taken: 0,
            segments: VecDeque::new(),
            base: 0,
            times: EffectTimes::new(now),
        }
    }

    /// Returns the name of the mind that has spoken. What it was asked must have been stopped.
    pub(crate) async fn speaker(&mut self) -> String {
        self.mind.lock().await.speaker()
    }

    /// Returns the times of the work that was done.
    pub(crate) fn times(&self) -> &EffectTimes {
        &self.times
    }

    /// Returns the bias words of the call.
    pub(crate) fn keyterms(&self) -> &[String] {
        &self.keyterms
    }

    /// Returns `Ok` if turns can be given text; else the reason why not.
    pub(crate) fn hears_words(&mut self, rate_hz: u32) -> Result<(), String> {
        let recognizer = &self.link.services.speech.recognizer;
        let supported = recognizer.supports(&self.language, rate_hz);
        if let Some(following) = &mut self.following {
            following.can_hear(supported.clone().and_then(|()| recognizer.identifies()));
        }
        supported
    }

    /// Returns warnings about the language that was spoken.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.following.as_ref().map(Following::warnings).unwrap_or_default();
        warnings.extend(self.link.services.speech.recognizer.doubt(&self.language));
        warnings
    }

    /// Begins an effect. `tapped`: samples that had gone into the tap when it was asked for.
    pub(crate) fn perform(&mut self, id: EffectId, effect: Effect, tapped: u64) {
        match effect {
            Effect::Hear { .. } => self.hear(id, tapped),
            Effect::Recognize { hear, .. } => {
                if let Some(segment) = self.segments.iter_mut().find(|segment| segment.hear == hear) {
                    segment.to = Some(tapped);
                }
                self.listen();
            }
            Effect::Think(thought) => self.think(id, thought),
            Effect::Compare(comparison) => self.compare(id, comparison),
            Effect::Synthesize { text, fluency } => self.speak(id, &text, fluency),
            Effect::Identify { turn, text, detected } => self.identify(id, turn, &text, &detected),
            Effect::Cancel(id) => {
                if let Some(running) = self.running.remove(&id) {
                    running.cancel();
                }
                self.segments.retain(|segment| segment.hear != id);
            }
        }
    }

    /// Cancels all running effects and recognition.
    pub(crate) fn stop(&mut self) {
        self.running.drain().for_each(|(_, running)| running.cancel());
        self.segments.clear();
    }

    fn start(&mut self, id: EffectId, kind: EffectKind) -> Started {
        let token = CancellationToken::new();
        self.running.retain(|_, running| !running.is_cancelled());
        self.running.insert(id, token.clone());
        Started { token, timed: self.times.begin(kind), _counted: InFlight::new(&self.link.services.counters) }
    }

    /// Speaks the other side's language from now on, once it is known to be another one.
    fn identify(&mut self, id: EffectId, turn: i64, text: &str, detected: &DetectedLanguage) {
        let Some(following) = &mut self.following else { return };
        let Some(taken) = following.hear(turn, text, detected, &*self.link.services.speech.synthesizer) else { return };
        self.language.clone_from(&taken.language);
        self.fluency.speak(&taken.language);
        self.voice = taken.voice.or(self.voice.take());
        self.link.finish(id, taken.effected);
    }

    fn think(&mut self, id: EffectId, thought: Thought) {
        let language = self.following.is_some().then(|| self.language.clone());
        let (link, mind, started) = (self.link.clone(), self.mind.clone(), self.start(id, EffectKind::Think));
        let (out, mut moves) = mpsc::channel(MOVES);
        self.link.services.spawn("think", async move {
            let thinking = async {
                let mut mind = mind.lock().await;
                if let Some(language) = &language {
                    mind.speak(language);
                }
                mind.think(thought, out).await;
            };
            let passing = async {
                while let Some(next) = moves.recv().await {
                    started.timed.note_answer();
                    link.finish(id, Effected::Move(next));
                }
            };
            tokio::select! {
                () = started.wait_for_cancel() => {}
                _ = async { tokio::join!(thinking, passing) } => started.over(),
            }
        });
    }

    fn compare(&mut self, id: EffectId, comparison: Comparison) {
        let (link, mind, started) = (self.link.clone(), self.mind.clone(), self.start(id, EffectKind::Compare));
        self.link.services.spawn("compare", async move {
            let comparing = async {
                let meant = mind.lock().await.compare(comparison).await;
                match &meant {
                    Ok(_) => started.timed.note_answer(),
                    Err(failure) => started.timed.note_failure(failure.code),
                }
                link.finish(id, meant.map_or_else(failed, Effected::Meant));
            };
            tokio::select! {
                () = started.wait_for_cancel() => {}
                () = comparing => started.over(),
            }
        });
    }

    fn speak(&mut self, id: EffectId, text: &str, fluent: bool) {
        let parts = if fluent { self.fluency.parts(text) } else { vec![SpeechPart::Words(text.into())] };
        let link = self.link.clone();
        let Some(voice) = self.voice.clone() else {
            return link.finish(id, failed(no_voice()));
        };
        let started = self.start(id, EffectKind::Speak);
        if let Some(voiced) = changed_text(&parts, text) {
            link.services.order(link.shard, ToShard::Voiced(link.no, id, voiced));
        }
        self.link.services.spawn("speak", async move {
            tokio::select! {
                () = started.wait_for_cancel() => {}
                () = say_parts(&link, id, parts, &voice, &started.timed) => started.over(),
            }
        });
    }

    // --- recognising ---

    /// True while a recognizer listens.
    pub(crate) fn is_listening(&self) -> bool {
        !self.segments.is_empty()
    }

    /// Opens the recognizer of the newest segment, whose audio begins at `from` with `past`; the tap goes on behind it.
    pub(crate) fn hear_from(&mut self, from: i64, past: &[i16]) {
        self.base = from;
        if let Some(segment) = self.segments.back_mut().filter(|segment| segment.to.is_none()) {
            let hear = segment.hear;
            self.open(hear, past);
        }
    }

    fn hear(&mut self, id: EffectId, tapped: u64) {
        self.segments.push_back(Segment { hear: id, feed: None, from: tapped, to: None });
    }

    /// Opens the recognizer once it is known where its audio begins.
    fn open(&mut self, hear: EffectId, past: &[i16]) {
        let language =
            if self.following.is_some() { SpokenIn::Likely(&self.language) } else { SpokenIn::Known(&self.language) };
        let recognizer = &self.link.services.speech.recognizer;
        let (mut feed, mut heard) = match self.wants_running {
            true => recognizer.open_running(language, &self.keyterms),
            false => recognizer.open(language, &self.keyterms),
        };
        feed.push(past);
        let (link, base, started) = (self.link.clone(), self.base, self.start(hear, EffectKind::Recognize));
        if let Some(segment) = self.segments.iter_mut().find(|segment| segment.hear == hear) {
            segment.feed = Some(feed);
        }
        self.link.services.spawn("recognise", async move {
            let passing = async {
                while let Some(heard) = heard.recv().await {
                    match &heard {
                        Recognized::Failed(failure) => started.timed.note_failure(failure.code),
                        _ => started.timed.note_answer(),
                    }
                    link.finish(hear, recognition_effect(heard, base));
                }
            };
            tokio::select! {
                () = started.wait_for_cancel() => {}
                () = passing => started.over(),
            }
        });
        self.listen();
    }

    /// Moves received audio into the recognizers.
    pub(crate) fn listen(&mut self) {
        // The newest segment's audio stays in the tap until it is known where it begins.
        if self.segments.iter().any(|segment| segment.feed.is_none()) {
            return;
        }
        let waiting = self.tap.slots();
        let Ok(chunk) = self.tap.read_chunk(waiting) else { return };
        let (first, second) = chunk.as_slices();
        for piece in [first, second] {
            let start = self.taken;
            for segment in &mut self.segments {
                let clip = |mark: u64| (mark.saturating_sub(start) as usize).min(piece.len());
                let (from, to) = (clip(segment.from), segment.to.map_or(piece.len(), clip));
                if let Some(feed) = segment.feed.as_mut().filter(|_| from < to) {
                    feed.push(&piece[from..to]);
                }
            }
            self.taken += piece.len() as u64;
        }
        chunk.commit_all();
        let taken = self.taken;
        self.segments.retain_mut(|segment| {
            let over = segment.to.is_some_and(|to| taken >= to);
            if let Some(feed) = segment.feed.as_mut().filter(|_| over) {
                feed.finish();
            }
            !over
        });
    }
}

async fn say_parts(link: &Link, id: EffectId, parts: Vec<SpeechPart>, voice: &Voice, timed: &Timed) {
    let count = parts.len();
    for (at, part) in parts.into_iter().enumerate() {
        let last = at + 1 == count;
        match part {
            SpeechPart::PauseMs(pause) => {
                let pcm = vec![0; (i64::from(pause) * PER_MS) as usize].into();
                link.finish(id, Effected::Audio { pcm, last });
            }
            SpeechPart::Words(text) => {
                if let Err(failure) = say_words(link, id, &text, voice, last, timed).await {
                    timed.note_failure(failure.code);
                    tracing::warn!(call = link.no.0, code = failure.code, "speech failed: {}", failure.message);
                    return link.finish(id, failed(failure));
                }
            }
        }
    }
    if count == 0 {
        link.finish(id, Effected::Audio { pcm: Vec::new().into(), last: true });
    }
}

/// Passes each piece on as it comes. The last piece is held until it is known how the speech ended, so that speech in
/// one piece is one message.
async fn say_words(
    link: &Link,
    id: EffectId,
    text: &str,
    voice: &Voice,
    last: bool,
    timed: &Timed,
) -> Result<(), Failure> {
    let (out, mut pieces) = mpsc::channel(PIECES);
    let passing = async {
        let mut held = None;
        while let Some(spoken) = pieces.recv().await {
            timed.note_answer();
            match spoken {
                Spoken::Audio(pcm) if pieces.is_closed() && pieces.is_empty() => held = Some(pcm),
                Spoken::Audio(pcm) => link.finish(id, Effected::Audio { pcm, last: false }),
                Spoken::Fallback(failure) => {
                    tracing::warn!(
                        call = link.no.0,
                        code = failure.code,
                        "the fallback synthesizer is used: {}",
                        failure.message
                    );
                    link.finish(id, fallback_note(failure, "another voice speaks"));
                }
            }
        }
        held
    };
    let (result, held) = tokio::join!(link.services.speech.synthesizer.synthesize(text, voice, out), passing);
    if result.is_ok() || held.is_some() {
        let last = last && result.is_ok();
        link.finish(id, Effected::Audio { pcm: held.unwrap_or_default(), last });
    }
    result
}

/// Returns the failure of speech in a call that has no voice.
pub(super) fn no_voice() -> Failure {
    Failure { code: "synthesizer_missing", message: "the call has no voice".into() }
}

pub(super) fn failed(failure: Failure) -> Effected {
    Effected::Failed { code: failure.code, why: failure.message }
}

fn fallback_note(failure: Failure, how: &str) -> Effected {
    Effected::Note { code: failure.code, why: format!("{}; {how}", failure.message) }
}

fn recognition_effect(heard: Recognized, base: i64) -> Effected {
    match heard {
        Recognized::Partial(text) => Effected::Partial(text),
        Recognized::Failed(failure) => failed(failure),
        Recognized::Fallback(failure) => fallback_note(failure, "another recognizer listens"),
        Recognized::Final { text, words, confidence, detected_language } => {
            let words = words.into_iter().map(|word| Word {
                text: word.text,
                from: base + word.from,
                to: base + word.to,
                confidence: word.confidence,
            });
            Effected::Final { text, words: words.collect(), confidence, detected_language }
        }
    }
}
