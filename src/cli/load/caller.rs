//! The callers of a load test: real calls whose words are recorded ones.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use ringer_media::call::{CallSpec, Ears, Limits, Move, Opening, Purpose, Thought, TurnRules};
use ringer_media::codec::Codec;
use ringer_media::noise::{Kind, snr_db};
use ringer_media::seed::Seed;
use serde_json::{Map, json};
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::mpsc;

use super::Args;
use crate::cli::call::{NewRoom, Rooms, is_socket, pipeline};
use crate::cli::out::complain;
use crate::clock::{Clock, random_seed};
use crate::config::AdapterTable;
use crate::engine::noise::NoiseBeds;
use crate::engine::{Destination, PipelineDial, Placement, RoomDial, SipDial, Speech, WebSocketDial};
use crate::human::{Fluency, Mind};
use crate::provider::Job;
use crate::provider::canned::Canned;
use crate::provider::fake::FakeRecognizer;
use crate::provider::guard::Guard;
use crate::service::{self, PlatformLine};
use crate::transport::pipeline::PipelineTarget;
use crate::transport::room::RoomTarget;

/// Platform whose adapter has the preset: any will do.
const PLATFORM: &str = "P4";
/// Volume of the noise under each caller.
const NOISE_VOLUME: f64 = 0.5;
/// Rooms that are removed at the same time.
const AT_ONCE: usize = 16;
/// Between two sentences of a caller that hears no turns.
const PAUSE: Duration = Duration::from_secs(4);

/// Makes the placements of a load test's calls.
pub(crate) struct Callers {
    to: String,
    ears: Ears,
    beds: Arc<NoiseBeds>,
    rooms: Option<CallRooms>,
    /// Way to the far side of a platform.
    platform: Option<Box<WebSocketDial>>,
}

/// Rooms of a load test's calls, one for each.
pub(crate) struct CallRooms {
    rooms: Rooms,
    /// Tells the rooms of this test from those of others.
    draw: u32,
    /// Rooms that were asked for.
    asked: Mutex<Vec<Arc<NewRoom>>>,
    /// Input of a far side that joins each room; `None`: agents are there by themselves.
    met: tokio::sync::Mutex<Option<ChildStdin>>,
}

impl CallRooms {
    /// Returns rooms at this server, none of which is there yet.
    pub(crate) fn new(rooms: Rooms, met: Option<ChildStdin>) -> CallRooms {
        let met = tokio::sync::Mutex::new(met);
        CallRooms { rooms, draw: random_seed() as u32, asked: Mutex::default(), met }
    }

    /// Creates the room of the call of this number. Returns the way into it.
    async fn open(&self, number: usize) -> Result<RoomTarget, String> {
        let (target, new_room) = self.rooms.new_room(format!("svc-load-{:08x}-{number}", self.draw));
        let new_room = Arc::new(new_room);
        self.asked.lock().push(new_room.clone());
        new_room.create().await?;
        if let Some(far) = &mut *self.met.lock().await {
            let line = format!("{}\n", new_room.room());
            far.write_all(line.as_bytes()).await.map_err(|error| format!("the far side has ended: {error}"))?;
        }
        Ok(target)
    }

    /// Removes all rooms, and lets the far side go.
    async fn close(&self) {
        drop(self.met.lock().await.take());
        let asked = std::mem::take(&mut *self.asked.lock());
        let mut removed = stream::iter(asked).map(|room| async move { room.remove().await }).buffer_unordered(AT_ONCE);
        while let Some(removed) = removed.next().await {
            if let Err(why) = removed {
                complain(format_args!("{why}"));
            }
        }
    }
}

impl Callers {
    /// Callers of `to`. Makes the noise, which takes a moment.
    pub(crate) async fn new(to: String, args: &Args, rooms: Option<CallRooms>) -> Result<Callers, String> {
        let beds = Arc::new(NoiseBeds::new(None));
        let made = beds.clone();
        tokio::task::spawn_blocking(move || made.bed(Kind::Cafe, 0.0, &mut Seed(0).stream("noise")))
            .await
            .map_err(|error| error.to_string())?;
        let platform = match args.platform {
            Some(preset) => Some(Box::new(platform_dial(preset, &to).await?)),
            None => None,
        };
        Ok(Callers {
            to,
            platform,
            ears: Ears { text: false, voice_activity: !args.no_vad, dtmf: !args.no_dtmf, whole: false },
            beds,
            rooms,
        })
    }

    /// True for calls in media rooms.
    pub(crate) fn are_in_rooms(&self) -> bool {
        self.rooms.is_some()
    }

    /// Opens the room of the call of this number. Returns the way into it; `None` for calls that are in no room.
    ///
    /// # Errors
    /// The request that failed.
    pub(crate) async fn open_room(&self, number: usize) -> Result<Option<RoomTarget>, String> {
        match &self.rooms {
            Some(rooms) => rooms.open(number).await.map(Some),
            None => Ok(None),
        }
    }

    /// Removes the rooms of all calls.
    pub(crate) async fn close_rooms(&self) {
        if let Some(rooms) = &self.rooms {
            rooms.close().await;
        }
    }

    fn destination(&self, number: usize, room: Option<RoomTarget>) -> Destination {
        if let Some(target) = room {
            return Destination::Room(Box::new(RoomDial { target, ..RoomDial::default() }));
        }
        if let Some(dial) = &self.platform {
            return Destination::WebSocket(Box::new(WebSocketDial { result_id: number as u64, ..(**dial).clone() }));
        }
        if is_socket(&self.to) {
            let dial = WebSocketDial { url: self.to.clone(), result_id: number as u64, ..WebSocketDial::default() };
            return Destination::WebSocket(Box::new(dial));
        }
        if let Some(base_url) = pipeline(&self.to).map(str::to_owned) {
            let target = PipelineTarget { base_url, result_id: number.to_string(), ..PipelineTarget::default() };
            return Destination::Pipeline(Box::new(PipelineDial { target, ..PipelineDial::default() }));
        }
        Destination::Sip(SipDial { target: self.to.clone(), codecs: vec![Codec::Pcmu], ..SipDial::default() })
    }

    /// Returns the call of this number, in its room where it has one; its files go below `folder`.
    pub(crate) fn placement(&self, number: usize, room: Option<RoomTarget>, folder: &Path) -> Placement {
        let seed = Seed(number as u64 + 1);
        let noise = self.beds.bed(Kind::Cafe, snr_db(NOISE_VOLUME), &mut seed.stream("noise"));
        let spec = CallSpec {
            seed,
            opening: Opening::Made,
            noise: Some(noise),
            limits: Limits { max_duration_ms: None, ..Limits::default() },
            turn: TurnRules { silence_timeout_ms: u32::MAX, ..TurnRules::default() },
            ears: self.ears,
            ..CallSpec::default()
        };
        Placement {
            id: format!("load-{number}"),
            spec,
            destination: self.destination(number, room),
            mind: Box::new(Talker { hears_turns: self.ears.voice_activity }),
            fluency: Fluency::default(),
            voice: Some(Canned::voice_named("caller")),
            language: "en".into(),
            follows: None,
            keyterms: Vec::new(),
            folder: Some(folder.join(number.to_string())),
            captured: false,
        }
    }
}

/// Returns the way to a far side at `base` in the protocol of a platform.
async fn platform_dial(preset: &str, base: &str) -> Result<WebSocketDial, String> {
    let table = AdapterTable(Map::from_iter([("preset".to_owned(), json!(preset))]));
    let read = service::adapters(&BTreeMap::from([(PLATFORM.to_owned(), table)]));
    let mut adapters = read.map_err(|problems| problems.join("; "))?;
    let moved = adapters[PLATFORM].as_ref().clone().with_base(base).map_err(|why| why.to_string())?;
    if moved.needs_session() {
        return Err(format!("--platform: {preset} makes a session before each call, and this far side makes none"));
    }
    adapters.insert(PLATFORM.to_owned(), Arc::new(moved));
    let (platform, word) = (PLATFORM.to_owned(), "load".to_owned());
    let line = PlatformLine { platform, agent_id: word.clone(), key: word, result_id: 0 };
    let dialled = line.dial(&adapters, Guard::new(true), &Clock::Real).await;
    dialled.map_err(|obstacle| format!("{}: {}", obstacle.code, obstacle.message))
}

/// Returns recorded words, and a recognizer that is never asked.
pub(crate) fn speech() -> Speech {
    Speech { synthesizer: Arc::new(Canned::default()), recognizer: Arc::new(FakeRecognizer::default()) }
}

/// Answers each turn; a caller that hears none speaks on its own.
struct Talker {
    hears_turns: bool,
}

impl Mind for Talker {
    fn think<'a>(&'a mut self, thought: Thought, out: mpsc::Sender<Move>) -> Job<'a, ()> {
        let goes_on = !self.hears_turns && thought.purpose == Purpose::Opening;
        Box::pin(async move {
            loop {
                let words = "A table, please.".into();
                let sent = out.send(Move { say: words, exact: true, more: goes_on, ..Move::default() }).await;
                if !goes_on || sent.is_err() {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
        })
    }

    fn speaker(&self) -> String {
        "load".into()
    }
}
