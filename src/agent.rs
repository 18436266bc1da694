//! The sample voice agent: a small appointment desk that answers calls over SIP, WebSockets and WebRTC, and messages.
//! It speaks and listens, takes keys, interrupts callers who talk for long and can be interrupted. It is a Call with a
//! [`mind::DeskMind`]. Its log of all events shows if an engine measured what the agent really did. It is a known other
//! side for tests, not a product.

pub mod chat;
mod fault;
mod log;
pub mod mind;
pub mod pipeline;
pub mod platform;
mod socket;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use ringer_media::call::{CallSpec, DtmfMethod, Interruption, Opening, Phrases, TurnRules};
use ringer_media::codec::Codec;
use ringer_media::seed::Seed;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

pub use self::fault::Fault;
use self::log::CallLog;
pub use self::log::Log;
use self::mind::{CUT_IN, DeskMind, GREETING, STILL_THERE};
use self::pipeline::{AnsweredCall, next_offer};
use self::platform::{PlatformCall, next_call};
use self::socket::next_stream;
use crate::engine::{Answering, CallHandle, CallUpdate, Destination, Engine, Placement, WebSocketDial};
use crate::human::Fluency;
use crate::provider::{Voice, VoiceWanted};
use crate::tasks::Tasks;
use crate::transport::incoming::{Incoming, IncomingChannel};
use crate::transport::pipeline::answered::AnsweredLine;

/// The header field by which a caller says which result its call belongs to.
pub const RESULT_ID: &str = "X-Simulation-Result-Id";

/// Language of an agent that speaks a wrong one.
const SPANISH: &str = "es";
/// Silence of the caller before the agent answers, in milliseconds.
const ENDPOINTING_MS: u32 = 700;
/// Pause after the last key before the keys are a turn, in milliseconds.
const DIGITS_MS: u32 = 900;
/// Range in milliseconds of a caller's turn in which the agent interrupts it.
const CUT_IN_MS: (u32, u32) = (2500, 3000);
/// Mutual silence before the agent asks if somebody is there, in milliseconds.
const SILENCE_MS: u32 = 10_000;

/// Ways beside SIP by which calls come.
#[derive(Default)]
pub struct Ways {
    /// Listener of WebSockets in the dialects.
    pub sockets: Option<TcpListener>,
    /// Calls that offers of WebRTC make.
    pub offers: Option<mpsc::Receiver<AnsweredCall>>,
    /// Calls in the protocol of a platform.
    pub platform: Option<mpsc::Receiver<PlatformCall>>,
}

/// Answers the calls of an engine.
pub struct Desk {
    engine: Engine,
    voice: Voice,
    log: Option<Arc<Log>>,
    codecs: Vec<Codec>,
    tasks: Tasks,
    calls: AtomicU64,
    fault: Option<Fault>,
    /// Ways to running calls of offers, by the names of their connections.
    lines: Mutex<HashMap<String, mpsc::Sender<AnsweredLine>>>,
}

impl Desk {
    /// Returns an agent that speaks with `voice` in `codecs` (as in [`Answering::codecs`]) and writes into `log`, when
    /// there is one.
    pub fn new(engine: Engine, voice: Voice, log: Option<Log>, codecs: Vec<Codec>, fault: Option<Fault>) -> Arc<Desk> {
        let log = log.map(Arc::new);
        let (tasks, lines) = (Tasks::new(), Mutex::default());
        Arc::new(Desk { engine, voice, log, codecs, tasks, calls: AtomicU64::new(0), fault, lines })
    }

    /// Returns the voice that an agent with a fault asks for.
    pub fn voice_wanted_with(fault: Option<Fault>) -> VoiceWanted {
        match fault {
            Some(Fault::WrongLanguage) => VoiceWanted { seed: Seed(3), ..VoiceWanted::of(SPANISH) },
            _ => Desk::voice_wanted(),
        }
    }

    /// Returns the voice that the agent asks for.
    pub fn voice_wanted() -> VoiceWanted {
        VoiceWanted {
            accent: Some("american".into()),
            gender: Some("female".into()),
            // Its sentences are kept in this voice.
            custom_voice_id: Some("kokoro:af_heart".into()),
            // One of the timbres that seeds draw which recognizers understand well, of the voice that says other words.
            seed: Seed(3),
            ..VoiceWanted::of("en")
        }
    }

    /// Answers what comes in, by SIP and by the other `ways`, until `most` calls are over, or for ever when it is
    /// `None`. Dropping the future ends no call.
    pub async fn serve(self: &Arc<Self>, mut incoming: mpsc::Receiver<Incoming>, ways: Ways, most: Option<u64>) {
        let Ways { sockets, mut offers, mut platform } = ways;
        let (over, mut ended) = mpsc::channel(64);
        let mut count = 0;
        while most.is_none_or(|most| count < most) {
            tokio::select! {
                call = incoming.recv() => match call {
                    Some(call) => self.take(call, over.clone()),
                    None => return,
                },
                Some((stream, address)) = next_stream(sockets.as_ref()) => self.take_stream(stream, address, over.clone()),
                call = next_offer(&mut offers) => self.take_offer(call, over.clone()),
                call = next_call(&mut platform) => self.take_platform_call(call, over.clone()),
                Some(()) = ended.recv() => count += 1,
            }
        }
    }

    /// Ends all calls and waits until each is written down.
    pub async fn stop(&self) {
        self.engine.stop().await;
        self.tasks.stop().await;
    }

    fn take(self: &Arc<Self>, call: Incoming, over: mpsc::Sender<()>) {
        let desk = self.clone();
        self.tasks.spawn("desk call", async move {
            desk.answer(call, None).await;
            let _ = over.send(()).await;
        });
    }

    async fn answer(&self, incoming: Incoming, socket: Option<Box<WebSocketDial>>) {
        let call_id = incoming.call_id.clone();
        let named = incoming.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(RESULT_ID));
        let result_id = named.map(|(_, value)| value.clone());
        let mut log = self.log.clone().map(|log| CallLog::new(log, call_id.clone(), result_id));
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let placement = placement(call_id.clone(), Seed(number), self.voice.clone(), self.codecs.clone());
        let mut placement = faulty(placement, self.fault);
        if let Some(dial) = socket {
            placement.spec.dtmf = dial.digit_method();
            placement.destination = Destination::Incoming(Answering { websocket: Some(dial), ..Answering::default() });
        }
        if matches!(incoming.channel, IncomingChannel::Pipeline(_)) {
            placement.spec.dtmf = DtmfMethod::Inband;
        }
        match self.engine.answer(incoming, placement).await {
            Ok(handle) => follow(handle, &mut log).await,
            Err(refusal) => tracing::warn!("a call was refused: {refusal}"),
        }
    }
}

/// Returns the agent's side of one call, speaking with `voice`; it takes `codecs`, or the usual ones when there are
/// none.
pub fn placement(id: String, seed: Seed, voice: Voice, codecs: Vec<Codec>) -> Placement {
    let spec = CallSpec {
        seed,
        turn: TurnRules {
            endpointing_delay_ms: ENDPOINTING_MS,
            silence_timeout_ms: SILENCE_MS,
            digit_turn_ms: Some(DIGITS_MS),
            ..TurnRules::default()
        },
        opening: Opening::Say(GREETING.into()),
        interruption: Interruption::Level {
            name: "level",
            probability: 1.0,
            from_ms: CUT_IN_MS.0,
            to_ms: CUT_IN_MS.1,
            at_most: Some(1),
        },
        phrases: Phrases {
            reprompt: STILL_THERE.into(),
            interruption: vec![CUT_IN.into()],
            still_there: STILL_THERE.into(),
            ..Phrases::default()
        },
        ..CallSpec::default()
    };
    Placement {
        id,
        spec,
        destination: Destination::Incoming(Answering { codecs, ..Answering::default() }),
        mind: Box::new(DeskMind::default()),
        fluency: Fluency::default(),
        voice: Some(voice),
        language: "en".into(),
        follows: None,
        keyterms: Vec::new(),
        folder: None,
        captured: false,
    }
}

/// Returns the agent's side of a call with a fault on purpose.
pub fn faulty(mut placement: Placement, fault: Option<Fault>) -> Placement {
    if let Some(fault) = fault {
        fault.bend(&mut placement.spec);
        placement.mind = Box::new(DeskMind::faulty(fault));
        if fault == Fault::WrongLanguage {
            placement.language = SPANISH.to_owned();
        }
    }
    placement
}

async fn follow(mut handle: CallHandle, log: &mut Option<CallLog>) {
    while let Some(news) = handle.news.recv().await {
        let over = matches!(news, CallUpdate::Ended(_));
        if let Some(log) = log {
            log.add(&news);
        }
        if over {
            return;
        }
    }
}
