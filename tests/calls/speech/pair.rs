//! Two engines in one process and a call between them: the caller with the speech that a test gives it, the other side
//! with programs that are installed.

use std::sync::Arc;
use std::time::Duration;

use ringer::engine::lateness::quantile_ms;
use ringer::engine::{CallHandle, CallReport, CallUpdate, Destination, Placement, SipDial, Speech, TimelineEntry};
use ringer::human::{Fluency, Mind};
use ringer::provider::speech::EmbeddedSpeech;
use ringer::provider::{Job, Recognizer, VoiceWanted};
use ringer_media::call::{CallSpec, Interruption, Move, Opening, Purpose, Then, Thought, TurnRules};
use ringer_media::codec::Codec;
use ringer_media::seed::Seed;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::calls::local;

/// Time limit of one step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Ports for media of both engines.
const RTP_PORTS: std::ops::RangeInclusive<u16> = 34_000..=35_999;

/// Says its lines one after the other; the other side hangs up after its last.
struct Lines {
    lines: &'static [&'static str],
    hangs_up: bool,
}

impl Mind for Lines {
    fn think<'a>(&'a mut self, thought: Thought, out: mpsc::Sender<Move>) -> Job<'a, ()> {
        let next = match thought.purpose {
            Purpose::BargeIn => {
                Move { say: "Sorry, I have to ask you something else first.".into(), ..Move::default() }
            }
            // A move that was not said is made again.
            _ => self.line(thought.history.iter().filter(|line| !line.other).count()),
        };
        Box::pin(async move {
            let _ = out.send(next).await;
        })
    }

    fn speaker(&self) -> String {
        "lines".into()
    }
}

impl Lines {
    fn line(&self, at: usize) -> Move {
        let say = self.lines.get(at).copied().unwrap_or("Goodbye.").to_owned();
        let then = if at + 1 >= self.lines.len() && self.hangs_up { Then::Hangup } else { Then::Listen };
        Move { say, exact: true, then, ..Move::default() }
    }
}

/// Returns the voice that callers and servers speak with.
pub(super) fn a_woman() -> VoiceWanted {
    VoiceWanted { gender: Some("female".into()), seed: Seed(3), ..VoiceWanted::of("en") }
}

/// Settings of the other side.
pub(super) struct Far {
    pub lines: &'static [&'static str],
    pub interruption: Interruption,
    pub recognizer: Arc<dyn Recognizer>,
}

/// Outcome of a call on both sides.
pub(super) struct Outcome {
    pub report: CallReport,
    /// The caller's events as they were shown live.
    pub live: Vec<TimelineEntry>,
    pub far: CallReport,
    /// Lateness of the caller's frames: of 95 in 100, and of the worst.
    pub late_ms: (f64, f64),
}

impl Outcome {
    /// Returns the caller's events of one name and side.
    pub(super) fn events<'a>(&'a self, event: &'a str, side: &'a str) -> impl Iterator<Item = &'a TimelineEntry> {
        self.report.timeline.iter().filter(move |entry| entry.name() == event && entry.side_name() == side)
    }

    /// Returns the wall clock at a position of the caller's timeline, in milliseconds since the epoch.
    pub(super) fn wall_ms(&self, sample: i64) -> f64 {
        self.report.connected_at_ms.expect("it was connected") as f64 + sample as f64 / 16.0
    }
}

/// Calls `far` and says `says`, one line a turn.
pub(super) async fn call(
    embedded: &Arc<EmbeddedSpeech>,
    speech: Speech,
    spec: CallSpec,
    says: &'static [&'static str],
    far: Far,
) -> Outcome {
    let there = Speech { synthesizer: embedded.clone(), recognizer: far.recognizer };
    let (callee, mut incoming) = local::engine(RTP_PORTS, 1, there.clone()).await;
    let (caller, _) = local::engine(RTP_PORTS, 1, speech.clone()).await;
    let opening = Opening::Say(far.lines.first().copied().unwrap_or_default().into());
    let turn = TurnRules { endpointing_delay_ms: 700, ..TurnRules::default() };
    let theirs = CallSpec { seed: Seed(2), turn, opening, interruption: far.interruption, ..CallSpec::default() };
    let theirs = placement(&there, theirs, far.lines, true, String::new());
    let ours = placement(&speech, spec, says, false, format!("sip:desk@{}", callee.sip_address()));
    let handle = caller.place(ours).await.expect("it was placed");
    let answering = async {
        let invite = timeout(PATIENCE, incoming.recv()).await.expect("it rings").expect("the engine runs");
        follow(callee.answer(invite, theirs).await.expect("it was answered")).await
    };
    let ((report, live), (far, _)) = tokio::join!(follow(handle), answering);
    let (counts, most) = caller.lateness();
    tokio::join!(caller.stop(), callee.stop());
    Outcome { report, live, far, late_ms: (quantile_ms(&counts, 0.95), most) }
}

fn placement(
    speech: &Speech,
    spec: CallSpec,
    lines: &'static [&'static str],
    hangs_up: bool,
    target: String,
) -> Placement {
    let wanted = a_woman();
    Placement {
        id: "1".into(),
        destination: Destination::Sip(SipDial { target, codecs: vec![Codec::G722], ..SipDial::default() }),
        mind: Box::new(Lines { lines, hangs_up }),
        fluency: Fluency::default(),
        voice: Some(speech.synthesizer.voice(&wanted).expect("there is a voice")),
        language: "en".into(),
        follows: spec.follows_language.then(a_woman),
        keyterms: Vec::new(),
        folder: None,
        captured: false,
        spec,
    }
}

/// Follows a call to its end.
async fn follow(mut handle: CallHandle) -> (CallReport, Vec<TimelineEntry>) {
    let mut live = Vec::new();
    let ended = async {
        loop {
            match handle.news.recv().await {
                Some(CallUpdate::Ended(report)) => return *report,
                Some(CallUpdate::Event(entry)) => live.push(entry),
                Some(_) => {}
                None => panic!("the call was lost"),
            }
        }
    };
    (timeout(PATIENCE, ended).await.expect("the call ends"), live)
}
