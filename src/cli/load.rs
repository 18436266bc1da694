//! `ringer load`: many calls at once, to see what this machine carries. Each is a whole caller: noise, voice activity,
//! digits, words now and then, a recording; only the recognizer and the synthesizer are left out, whose cost is their
//! own.

mod caller;
mod far;
mod figures;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::EndReason;
use tokio::sync::mpsc;

use self::caller::{CallRooms, Callers};
use self::far::{FarSide, Over};
use self::figures::{Figures, Window};
use super::call::{FAR_AGENT, RoomFlags, address, local_address, room};
use super::out::{Out, complain};
use super::signals::Signals;
use super::tls::TlsFlags;
use super::{count, fail, local};
use crate::clock::{Clock, monotonic, new_id};
use crate::config::{Encryption, OfferedIn, SrtpKeys, SymmetricRtp, most_calls, raise_file_limit};
use crate::engine::{CallControl, CallHandle, CallReport, CallUpdate, Engine, EngineConfig, START_WITHIN};
use crate::provider::opus;
use crate::tasks::Tasks;
use crate::transport::sip::names::Resolver;
use crate::transport::sip::transfer::Forwarding;
use crate::transport::websocket::platform::far::FarSide as PlatformSide;

/// Ports of the media of all calls.
const RTP_PORTS: std::ops::RangeInclusive<u16> = 10_000..=59_999;
/// Time limit for connecting the last calls.
const SET_UP: Duration = Duration::from_secs(10);
/// The same in media rooms, whose agents may be started for their rooms: as long as a call waits for its agent, and
/// somewhat more.
const SET_UP_IN_ROOMS: Duration = Duration::from_secs(40);
/// Time limit for a room that is being created when the command is told to end.
const CREATING: Duration = Duration::from_secs(3);
/// Time from the last connection to the measured window.
const SETTLE: Duration = Duration::from_secs(2);
/// Time limit for the calls to end.
const HANG_UP: Duration = Duration::from_secs(15);

/// Flags of `ringer load`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringer load --calls 200 --seconds 30
  ringer load --calls 500 --late-p99-ms 1 --late-p999-ms 2
  ringer load --websocket --calls 200
  ringer load --platform openai_realtime --calls 50
  ringer load --pipeline --calls 50
  ringer load sip:echo@192.0.2.7 --calls 50 --no-vad --json
  RINGER_ROOM_KEY=... RINGER_ROOM_SECRET=... ringer load room:wss://rooms.example --calls 50 --agent-name desk
  RINGER_ROOM_KEY=... RINGER_ROOM_SECRET=... ringer load room:wss://rooms.example --calls 50 --far")]
pub struct Args {
    /// Address to call, as of `ringer call` [default: a far side that is started for it]. Of a server of media rooms
    /// each call has a room of its own; all are removed at the end
    #[arg(value_name = "URI", value_parser = address, conflicts_with = "to")]
    pub address: Option<String>,
    /// The same address as a flag
    #[arg(long, value_name = "URI", value_parser = address)]
    pub to: Option<String>,
    /// Have a far side of this program join each media room, in place of an agent that is there
    #[arg(long)]
    pub far: bool,
    /// Call over WebSockets, in the engine's own protocol
    #[arg(long)]
    pub websocket: bool,
    /// Call over WebSockets, in the protocol of a platform by its preset; not those that make sessions first
    #[arg(long, value_name = "KIND", value_parser = far_side, conflicts_with_all = ["address", "to", "websocket"])]
    pub platform: Option<&'static str>,
    /// Call over WebRTC, as voice pipelines are called
    #[arg(long, conflicts_with_all = ["websocket", "platform"])]
    pub pipeline: bool,
    /// Number of calls at the same time
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub calls: u32,
    /// Time that all calls are up and measured, in seconds
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// Calls begun in one second
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rate: u32,
    /// Keep recordings and timelines in this folder [default: a temporary one, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Largest lateness of sending at the 99th percentile, in ms; more is an error
    #[arg(long, value_name = "MS")]
    pub late_p99_ms: Option<f64>,
    /// Largest lateness of sending at the 99.9th percentile, in ms; more is an error
    #[arg(long, value_name = "MS")]
    pub late_p999_ms: Option<f64>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Do not look for speech in what is received
    #[arg(long)]
    pub no_vad: bool,
    /// Do not look for digits in what is received
    #[arg(long)]
    pub no_dtmf: bool,
    /// Certificates of SIP over TLS.
    #[command(flatten)]
    pub tls: TlsFlags,
    /// Rooms and who may join them.
    #[command(flatten)]
    pub rooms: RoomFlags,
    /// Be the far side: answer calls until standard input ends
    #[arg(long, hide = true)]
    pub far_side: bool,
}

impl Args {
    fn to(&self) -> Option<&str> {
        self.address.as_deref().or(self.to.as_deref())
    }

    /// Returns the address of the room server, where calls are in rooms.
    fn room_server(&self) -> Option<&str> {
        room(self.to()?)
    }

    /// Returns the flags of the rooms. No agent is dispatched where the far side is there: nobody serves its name.
    fn room_flags(&self) -> RoomFlags {
        let agent_name = if self.far { Some(FAR_AGENT.to_owned()) } else { self.rooms.agent_name.clone() };
        RoomFlags { agent_name, ..self.rooms.clone() }
    }

    fn over(&self) -> Over {
        if let Some(preset) = self.platform {
            return Over::Platform(preset);
        }
        match (self.websocket, self.pipeline) {
            (true, _) => Over::WebSocket,
            (_, true) => Over::Pipeline,
            _ if self.room_server().is_some() => Over::Room,
            _ => Over::Sip,
        }
    }

    /// Checks flags that do not go together.
    ///
    /// # Errors
    /// The flag that has no effect here, or what is missing.
    fn check(&self) -> Result<(), String> {
        let in_rooms = self.room_server().is_some();
        self.rooms.check(in_rooms)?;
        match () {
            () if self.far && !in_rooms => Err("--far is for room: addresses".to_owned()),
            () if self.far && self.rooms.agent_name.is_some() => {
                Err("--far takes the place of an agent: --agent-name has no effect beside it".to_owned())
            }
            () if in_rooms && self.tls.is_more_than_roots() => {
                Err("of the --tls-... flags only --tls-root-file holds for the API of a room server".to_owned())
            }
            () if self.rooms.room.is_some() => Err("--room is for one call: each of these has its own room".to_owned()),
            () => Ok(()),
        }
    }
}

/// Returns the name of the preset that a text is.
fn far_side(text: &str) -> Result<&'static str, String> {
    let names = || PlatformSide::names().collect::<Vec<_>>().join(", ");
    PlatformSide::names().find(|name| *name == text).ok_or_else(|| format!("it must be one of {}", names()))
}

/// Makes the calls and prints the report; 0 when all calls were connected and stayed up, and were as punctual as was
/// asked.
pub async fn run(args: Args) -> ExitCode {
    if args.far_side {
        return match args.over() {
            Over::Sip => far::run().await,
            Over::WebSocket => far::websocket::run().await,
            Over::Platform(preset) => far::platform::run(preset).await,
            Over::Pipeline => far::pipeline::run().await,
            Over::Room => far::room::run(&args.rooms, &args.tls, args.room_server().unwrap_or_default()).await,
        };
    }
    match load(&args).await {
        Ok(figures) => {
            let out = Out::standard();
            figures.print(&out, args.json);
            match figures.too_late(args.late_p99_ms, args.late_p999_ms) {
                Some(why) => out.finish(Err(why)),
                None => out.verdict(figures.failed == 0),
            }
        }
        Err(why) => fail(why),
    }
}

async fn load(args: &Args) -> Result<Figures, String> {
    args.check()?;
    let mut stop = Signals::new()?;
    let tls = args.tls.settings()?;
    let rooms = args.room_server().map(|server| args.room_flags().rooms(server, &tls.roots)).transpose()?;
    let mut far = match (args.to(), &rooms) {
        (None, _) => Some(FarSide::start(args.over()).await?),
        (Some(to), Some(rooms)) if args.far => {
            Some(FarSide::start_in_rooms(to, rooms.key(), args.tls.tls_root_file.as_deref()).await?)
        }
        _ => None,
    };
    let to = args.to().or(far.as_ref().map(|far| far.uri.as_str())).unwrap_or_default().to_owned();
    let met = if rooms.is_some() { far.as_mut().and_then(FarSide::take_input) } else { None };
    let rooms = rooms.map(|rooms| CallRooms::new(rooms, met));
    let sip = local_address(&to).await?;
    let most = most_calls(raise_file_limit(), &RTP_PORTS);
    if (args.calls as usize) > most {
        return Err(format!("at most {}: raise the limit of open files (ulimit -n)", count(most, "call")));
    }
    let config = EngineConfig {
        sip,
        tls,
        rtp_ports: RTP_PORTS,
        advertise: None,
        shards: 0,
        max_calls: most,
        srtp: Encryption::Off,
        srtp_keys: SrtpKeys::default(),
        symmetric_rtp: SymmetricRtp::Off,
        offer: OfferedIn::Invite,
        session_interval_s: None,
        forwarding: Forwarding::default(),
        start_within: START_WITHIN,
        opus: opus::choose(&local::own_settings().media),
        names: Resolver::new(&[]),
    };
    let (engine, _incoming) = Engine::start(config, caller::speech(), Clock::Real)
        .await
        .map_err(|error| format!("the SIP socket {sip}: {error}"))?;
    let folder = args.data.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("ringer-load-{}", new_id())));
    let callers = Arc::new(Callers::new(to, args, rooms).await?);
    let run = Run {
        engine: &engine,
        args,
        folder: &folder,
        callers: callers.clone(),
        placing: Tasks::new(),
        tasks: Tasks::new(),
    };
    let measured = tokio::select! {
        measured = run.measure() => measured,
        () = stop.wait() => Err("stopped".to_owned()),
    };
    // No call may come into an engine that has stopped.
    run.placing.stop().await;
    tokio::join!(engine.stop(), run.tasks.stop());
    tokio::select! {
        () = callers.close_rooms() => {}
        () = stop.wait() => complain("ringer: stopped: some rooms may be left"),
    }
    if args.data.is_none() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    let mut figures = measured?;
    if let Some(far) = far {
        figures.far_side = far.stop().await;
    }
    Ok(figures)
}

/// News of one call of the load test.
enum News {
    Placed(CallControl),
    Refused(String),
    Connected { after: Duration },
    Ended(Box<CallReport>),
}

impl News {
    /// True if a call is up by this, or will not be.
    fn settles(&self) -> bool {
        match self {
            News::Placed(_) => false,
            News::Refused(_) | News::Connected { .. } => true,
            News::Ended(report) => report.connected_at_ms.is_none(),
        }
    }
}

/// The calls of one command.
struct Run<'a> {
    engine: &'a Engine,
    args: &'a Args,
    folder: &'a Path,
    callers: Arc<Callers>,
    /// Tasks that place a call each.
    placing: Tasks,
    /// Tasks that follow a call each.
    tasks: Tasks,
}

impl Run<'_> {
    async fn measure(&self) -> Result<Figures, String> {
        let calls = self.args.calls as usize;
        let (tell, mut news) = mpsc::channel(3 * calls + 16);
        let mut controls = Vec::with_capacity(calls);
        let mut figures = Figures::new(self.args.calls);
        let idle = Window::now(self.engine);
        self.place_all(tell).await;
        let all_up = async {
            // A call that was connected and has ended already counts once.
            let mut settled = 0;
            while settled < calls {
                let Some(news) = news.recv().await else { break };
                settled += usize::from(news.settles());
                figures.take(news, &mut controls);
            }
        };
        let set_up = if self.callers.are_in_rooms() { SET_UP_IN_ROOMS } else { SET_UP };
        let _ = tokio::time::timeout(set_up, all_up).await;
        if figures.connected == 0 {
            return Err(figures.first_failure.unwrap_or_else(|| "no call was connected".into()));
        }
        tokio::time::sleep(SETTLE).await;
        let before = Window::now(self.engine);
        tokio::time::sleep(Duration::from_secs(self.args.seconds.into())).await;
        let after = Window::now(self.engine);
        figures.window(&before, &after);
        figures.memory(&idle, &before, &after);
        let placed = std::mem::take(&mut controls);
        placed.iter().for_each(|control| control.hangup(EndReason::ApiHangup));
        let all_down = async {
            while let Some(news) = news.recv().await {
                figures.take(news, &mut controls);
                controls.drain(..).for_each(|late: CallControl| late.hangup(EndReason::ApiHangup));
            }
        };
        if tokio::time::timeout(HANG_UP, all_down).await.is_err() {
            tracing::warn!("some calls did not end");
        }
        figures.finish();
        Ok(figures)
    }

    /// Places the calls, as many in a second as are asked for. Room servers are asked beside each other.
    async fn place_all(&self, tell: mpsc::Sender<News>) {
        let mut pace = tokio::time::interval(Duration::from_secs(1) / self.args.rate);
        for number in 0..self.args.calls as usize {
            pace.tick().await;
            let (engine, callers) = (self.engine.clone(), self.callers.clone());
            let (folder, groups) = (self.folder.to_owned(), [self.placing.clone(), self.tasks.clone()]);
            let placing = place(engine, callers, number, folder, groups, tell.clone());
            if self.callers.are_in_rooms() {
                self.placing.spawn("place", placing);
            } else {
                placing.await;
            }
        }
    }
}

async fn place(
    engine: Engine,
    callers: Arc<Callers>,
    number: usize,
    folder: PathBuf,
    [placing, tasks]: [Tasks; 2],
    tell: mpsc::Sender<News>,
) {
    let opened = tokio::select! {
        opened = callers.open_room(number) => opened,
        // A room that was asked for is waited for: one that comes after all were removed would stay.
        () = wait_stopped(&placing) => return,
    };
    if placing.is_stopping() {
        return;
    }
    let placement = match opened {
        Ok(target) => callers.placement(number, target, &folder),
        Err(why) => return drop(tell.send(News::Refused(why)).await),
    };
    let placed = monotonic();
    match engine.place(placement).await {
        Ok(CallHandle { news, control }) => {
            let _ = tell.send(News::Placed(control)).await;
            tasks.spawn("watch", watch(news, tell, placed));
        }
        Err(refusal) => drop(tell.send(News::Refused(refusal.to_string())).await),
    }
}

/// Waits until the tasks are to stop, and [`CREATING`] longer.
async fn wait_stopped(tasks: &Tasks) {
    tasks.stopping().await;
    tokio::time::sleep(CREATING).await;
}

async fn watch(mut news: mpsc::Receiver<CallUpdate>, tell: mpsc::Sender<News>, placed: ringer_media::time::Time) {
    while let Some(item) = news.recv().await {
        let item = match item {
            CallUpdate::Connected(_) => News::Connected { after: monotonic().since(placed) },
            CallUpdate::Ended(report) => News::Ended(report),
            CallUpdate::Dispatched | CallUpdate::Event(_) => continue,
        };
        let _ = tell.send(item).await;
    }
}
