//! Effects of a Call in virtual time: performed after a drawn time, or not at all.

use ringer_human::changed_text;
use ringer_provider::Failure;

use super::*;
use crate::effects::{failed, no_voice};

/// Returns a failure that was drawn.
fn drawn_failure(code: &'static str) -> Effected {
    Effected::Failed { code, why: String::new() }
}

impl Host {
    pub(super) fn after(&mut self, now: Time, (least, most): (f64, f64)) -> Time {
        now + Duration::from_nanos((self.draws.range(least, most) * 1e6) as u64)
    }

    fn schedule(&mut self, at: Time, due: Due) {
        self.number += 1;
        self.due.insert((at, self.number), due);
    }

    pub(super) fn perform(&mut self, now: Time, id: EffectId, effect: Effect) {
        let fails = self.draws.unit() < self.failures;
        match effect {
            Effect::Think(thought) => {
                self.open.insert(id, "thought");
                let at = self.after(now, THINKING_MS);
                if fails {
                    return self.schedule(at, Due::Done(id, drawn_failure("model_failed")));
                }
                self.think(id, thought, at);
            }
            Effect::Compare(comparison) => {
                self.open.insert(id, "comparison");
                let at = self.after(now, THINKING_MS);
                let done = match self.runtime.block_on(self.mind.compare(comparison)) {
                    Ok(which) if !fails => Effected::Meant(which),
                    Ok(_) => drawn_failure("model_failed"),
                    Err(failure) => failed(failure),
                };
                self.schedule(at, Due::Done(id, done));
            }
            Effect::Synthesize { text, fluency } => {
                self.open.insert(id, "speech");
                let at = self.after(now, SPEAKING_MS);
                if fails {
                    return self.schedule(at, Due::Done(id, drawn_failure("synthesizer_failed")));
                }
                self.speak(id, &text, fluency, at);
            }
            Effect::Hear { from } => {
                self.open.insert(id, "segment");
                self.segments.insert(id, from);
                self.schedule(now + PARTIAL_EVERY, Due::Partial(id));
            }
            Effect::Recognize { hear, to } => {
                let at = self.after(now, RECOGNISING_MS);
                if fails {
                    self.segments.remove(&hear);
                    return self.schedule(at, Due::Done(hear, drawn_failure("recognizer_failed")));
                }
                self.schedule(at, Due::Final(hear, to));
            }
            Effect::Identify { turn, text, detected } => self.identify(now, id, (turn, &text, &detected)),
            Effect::Cancel(id) => {
                self.open.remove(&id);
                self.segments.remove(&id);
                self.due.retain(|_, due| due.of() != id);
            }
        }
    }

    /// Speaks the other side's language from now on, once it is known to be another one.
    fn identify(&mut self, now: Time, id: EffectId, (turn, text, detected): (Sample, &str, &DetectedLanguage)) {
        let following = self.following.as_mut();
        let Some(taken) = following.and_then(|it| it.hear(turn, text, detected, &*self.synthesizer)) else { return };
        self.fluency.speak(&taken.language);
        self.mind.speak(&taken.language);
        self.voice = taken.voice.or(self.voice.take());
        self.schedule(now, Due::Done(id, taken.effected));
    }

    fn think(&mut self, id: EffectId, thought: Thought, at: Time) {
        let (out, mut moves) = mpsc::channel(MOVES);
        let mind = &mut self.mind;
        let moves = self.runtime.block_on(async {
            let collect = async {
                let mut all = Vec::new();
                while let Some(next) = moves.recv().await {
                    all.push(next);
                }
                all
            };
            tokio::join!(mind.think(thought, out), collect).1
        });
        for next in moves {
            self.schedule(at, Due::Done(id, Effected::Move(next)));
        }
    }

    fn speak(&mut self, id: EffectId, text: &str, fluent: bool, at: Time) {
        let parts = if fluent { self.fluency.parts(text) } else { vec![SpeechPart::Words(text.into())] };
        if let Some(voiced) = changed_text(&parts, text) {
            self.schedule(at, Due::Voiced(id, voiced));
        }
        let count = parts.len();
        for (n, part) in parts.into_iter().enumerate() {
            let pcm: Result<Arc<[i16]>, Failure> = match (part, &self.voice) {
                (SpeechPart::PauseMs(pause), _) => Ok(vec![0; (i64::from(pause) * PER_MS) as usize].into()),
                (SpeechPart::Words(_), None) => Err(no_voice()),
                (SpeechPart::Words(text), Some(voice)) => {
                    self.runtime.block_on(whole_speech(&*self.synthesizer, &text, voice))
                }
            };
            match pcm {
                Ok(pcm) => self.schedule(at, Due::Done(id, Effected::Audio { pcm, last: n + 1 == count })),
                Err(failure) => return self.schedule(at, Due::Done(id, failed(failure))),
            }
        }
        if count == 0 {
            self.schedule(at, Due::Done(id, Effected::Audio { pcm: Vec::new().into(), last: true }));
        }
    }

    pub(super) fn happen(&mut self, now: Time, due: Due, said: &[Said]) {
        let (id, done) = match due {
            Due::Voiced(id, voiced) => return self.tell(now, Input::Voiced(id, voiced)),
            Due::Done(id, done) => (id, done),
            Due::Partial(id) => {
                let Some(&from) = self.segments.get(&id) else { return };
                self.schedule(now + PARTIAL_EVERY, Due::Partial(id));
                let text = join(self.words_between(said, from, now).iter().map(|word| word.text.as_str()));
                (id, Effected::Partial(text))
            }
            Due::Final(id, to) => {
                let Some(from) = self.segments.remove(&id) else { return };
                let words = self.words_between(said, from, self.time(to) + MARGIN);
                let text = join(words.iter().map(|word| word.text.as_str()));
                (
                    id,
                    Effected::Final {
                        text,
                        words,
                        confidence: Some(1.0),
                        detected_language: DetectedLanguage::Unknown,
                    },
                )
            }
        };
        let is_last = match &done {
            Effected::Partial(_)
            | Effected::Note { .. }
            | Effected::Language { .. }
            | Effected::Audio { last: false, .. } => false,
            Effected::Move(next) => !next.more,
            Effected::Final { .. }
            | Effected::Meant(_)
            | Effected::Audio { last: true, .. }
            | Effected::Failed { .. } => true,
        };
        if is_last {
            self.open.remove(&id);
        }
        self.tell(now, Input::Done(id, done));
    }

    /// Returns the words of the other side from position `from` until `to`, on this side's clock.
    fn words_between(&self, said: &[Said], from: Sample, to: Time) -> Vec<Word> {
        // Over a stream of bytes each word has a delay of its own.
        let (said, delay) = match &self.socket {
            Some(socket) => (socket.as_heard(said), Duration::ZERO),
            None => (said.into(), self.delay),
        };
        let earlier = |at: Time, by: Duration| Time(at.0.saturating_sub(by.as_nanos() as u64));
        let (from, to) = (earlier(self.time(from), delay + MARGIN), earlier(to, delay));
        let heard = words(&said, from, to, self.hears_punctuation);
        let origin = self.origin.unwrap_or_default();
        let sample = |at: Time| ((at + delay).0 as i64 - origin.0 as i64) / SAMPLE_NS;
        heard.into_iter().map(|heard| heard.at(sample)).collect()
    }
}
