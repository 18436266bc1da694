//! `ringer call`: one call, made now, printed as it happens.

mod check;
mod flags;
mod hint;
mod platform;
mod room;
mod show;

use std::fs::File;
use std::io::{ErrorKind, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::{CallSpec, EndReason, Limits, NoiseSpec};
use ringer_media::codec::Codec;
use ringer_media::noise::{Kind as NoiseKind, snr_db};
use ringer_media::seed::Seed;
use ringer_sip::Transport;
use tokio::sync::mpsc;

pub use self::flags::{NOISES, Noise};
pub(super) use self::flags::{address, is_socket, noise, pipeline, room};
use self::flags::{dialect, digits, header};
pub use self::platform::PlatformFlags;
use self::platform::platform;
pub use self::room::{FAR_AGENT, NewRoom, RoomFlags, Rooms, Way};
use self::show::{CALLER, Outcome, Show};
use super::lines::{Lines, Style};
use super::out::{Out, complain};
use super::signals::Signals;
use super::tls::TlsFlags;
use super::up::language_model;
use super::{UNREACHABLE, fail, local};
use crate::clock::random_seed;
use crate::config::{Secret, SipListen};
use crate::engine::lateness::quantile_ms;
use crate::engine::noise::NoiseBeds;
use crate::engine::{
    CallReport, CallUpdate, Destination, Engine, PipelineDial, Placement, SipDial, Speech, WebSocketDial,
};
use crate::human::{self, Profile};
use crate::provider::guard::Guard;
use crate::provider::{LanguageModel, Synthesizer, Voice, VoiceWanted};
use crate::service::is_unreachable;
use crate::transport::incoming::Incoming;
use crate::transport::pipeline::PipelineTarget;
use crate::transport::room::RoomTarget;
use crate::transport::sip::address::{Address, AddressFault};
use crate::transport::sip::names::Resolver;
use crate::transport::websocket::{Dialect, Kind};

/// Flags of `ringer call`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each line tells when (in seconds from the answer), who and what: words at their end, keys, interruptions, what goes wrong; at the
end a short summary. Colours are for terminals, and NO_COLOR forbids them.

With --json each line is an object with an `event`. The first is `calling`, with `to` and the `seed` that makes the same call
again; then the events of the timeline as they happen (`seq`, `sample`, `offset_ms`, `side`, `data`); the last is `report`:
`ok`, `error`, `seed`, `connected`, and of a call that was placed `end_reason`, `duration_ms`, `codec`, `sip_call_id`,
`pacing_p50_ms`, `pacing_p99_ms`, `sent_frames`, `late_frames`, `received_packets`, `lost_packets`, `late_packets`,
`concealed_ms`, `warnings` and `recording`. With --verbose beside it, the lines of text go to standard error.

The call is hung up, and its recording closed, when the command is told to end (SIGINT, SIGTERM) and when nobody reads what it
prints. The exit code is 0 when the call was connected and ended normally, 1 when not (declined, broken off), 2 for flags that cannot
be, 4 when nothing answered at the address or the credentials were refused, 141 when nobody read all of its lines.
With --check it is 0 when all steps hold, 1 when the agent answered and made no sound within 15 s or declined, 4 when it was not
reached.

Examples:
  ringer call sip:agent@127.0.0.1:5080
  ringer call sip:agent@127.0.0.1:5080 --intent 'Book a table for two at eight.' --noise cafe:0.5 --record call.wav
  ringer call 'sip:agent@192.0.2.7;transport=tcp'
  ringer call sips:agent@agent.example --tls-root-file own-authority.pem
  ringer call sip:ivr@192.0.2.7 --dtmf '1,2#' --codec PCMU --json > call.jsonl
  ringer call ws://127.0.0.1:8765/agent
  ringer call --check ws://127.0.0.1:8765/agent
  ringer call pipeline:http://127.0.0.1:7860
  RINGER_P4_KEY=... ringer call p4:AGENT_ID --preset openai_realtime
  RINGER_ROOM_KEY=... RINGER_ROOM_SECRET=... ringer call room:wss://rooms.example --agent-name desk
  ringer call wss://agent.example/stream --dialect twilio_media_streams --username u")]
pub struct Args {
    /// Address to call: sip:user@host or sip:user@host:port, with ;transport=tcp or ;transport=tls behind it, or sips:;
    /// or ws:// or wss://; or pipeline:http://host:port, a voice pipeline that takes offers at /api/offer; or
    /// room:wss://host, a server of media rooms; or p3:AGENT to p11:AGENT, an agent on a platform by its id there, with
    /// the key in RINGER_P3_KEY to RINGER_P11_KEY and [adapters.P3] to [adapters.P11] of the settings
    #[arg(value_name = "URI", value_parser = address)]
    pub to: String,
    /// Protocol of the messages of a WebSocket [default: the engine's own]
    #[arg(long, value_name = "KIND", value_parser = dialect)]
    pub dialect: Option<Kind>,
    /// Intent of the caller, in sentences that it can say
    #[arg(
        long,
        default_value = "Hello, I would like to book a table for two people tomorrow at eight in the evening."
    )]
    pub intent: String,
    /// Background noise with its volume from 0 to 1
    #[arg(long, value_name = "NAME[:VOLUME]", value_parser = noise)]
    pub noise: Option<Noise>,
    /// Digits keyed after the answer; a comma is a second of silence
    #[arg(long, value_name = "DIGITS", value_parser = digits)]
    pub dtmf: Option<String>,
    /// Settings file with recognizer, synthesizer and language model [default: what this machine has]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Write the recording here: left the caller, right the agent
    #[arg(long, value_name = "FILE.wav")]
    pub record: Option<PathBuf>,
    /// Seed of everything that is drawn [default: random, printed]
    #[arg(long)]
    pub seed: Option<u64>,
    /// Codecs to offer, in this order [default: G722,PCMU,PCMA,OPUS]
    #[arg(long, value_delimiter = ',', value_name = "NAMES", value_parser = Codec::NAMES, ignore_case = true)]
    pub codec: Vec<String>,
    /// Tell in steps where the agent is lost (resolved, connected, answered, first sound), then hang up
    #[arg(long, conflicts_with_all = ["record", "dtmf", "verbose"])]
    pub check: bool,
    /// Print one JSON object a line instead of text, see below
    #[arg(long)]
    pub json: bool,
    /// Print also running text, beginnings of speech, plans and the network's figures; with --json to standard error
    #[arg(long)]
    pub verbose: bool,
    /// Hang up after this many seconds
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub max_seconds: u32,
    /// Header field of the INVITE or of the upgrade request, none that the protocol writes itself; may be given several
    /// times
    #[arg(long, value_name = "NAME:VALUE", value_parser = header)]
    pub header: Vec<(String, String)>,
    /// User of a challenge
    #[arg(long)]
    pub username: Option<String>,
    /// Password of a challenge; better given by the environment
    #[arg(long, env = "RINGER_SIP_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
    /// Local address of the SIP socket, with tcp: or tls: before it where it is not UDP; commas between several
    /// [default: free ports of the address that reaches URI]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SipListen>,
    /// Certificates of SIP over TLS.
    #[command(flatten)]
    pub tls: TlsFlags,
    /// Rooms and who may join them.
    #[command(flatten)]
    pub rooms: RoomFlags,
    /// Adapters of agents on platforms.
    #[command(flatten)]
    pub platforms: PlatformFlags,
}

/// Language spoken in a call from the shell.
const LANGUAGE: &str = "en";
/// Time limit for a room that is being created when the command is told to end.
const CREATING: Duration = Duration::from_secs(3);
/// RTP ports of a call from the shell.
const RTP_PORTS: std::ops::RangeInclusive<u16> = 30000..=30999;

/// Makes the call: 0 when it was connected and ended normally.
pub async fn run(args: Args) -> ExitCode {
    let out = Out::standard();
    if args.check {
        return check::run(&args, &out).await;
    }
    match call(&args, &out).await {
        Err(Failed { why, code: Some(code) }) if !out.is_gone() => {
            fail(why);
            ExitCode::from(code)
        }
        done => out.finish(done.map_err(|failed| failed.why)),
    }
}

/// Failure of the command: its reason, and an exit code other than 1.
struct Failed {
    why: String,
    code: Option<u8>,
}

impl From<String> for Failed {
    fn from(why: String) -> Failed {
        Failed { why, code: None }
    }
}

impl Args {
    /// Returns the way into the room of the call, and the room that is to be created; neither where it is not in a
    /// room.
    fn way_into_room(&self) -> Result<(Option<RoomTarget>, Option<NewRoom>), String> {
        let Some(server) = room(&self.to) else { return Ok((None, None)) };
        let (target, new_room) = self.rooms.plan(server, &self.tls.settings()?.roots)?;
        Ok((Some(target), new_room))
    }
}

async fn call(args: &Args, out: &Out) -> Result<(), Failed> {
    let mut stop = Signals::new()?;
    let equipment = Equipment::new(args)?;
    if args.dialect.is_some() && !is_socket(&args.to) {
        return Err("--dialect is for ws:// and wss:// addresses".to_owned().into());
    }
    args.rooms.check(room(&args.to).is_some())?;
    args.platforms.check(platform(&args.to).is_some())?;
    let (target, new_room) = args.way_into_room()?;
    if let Some(path) = &args.record {
        writable(path).map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    }
    let listen = match args.listen {
        Some(listen) => listen,
        None => local_address(&args.to).await?,
    };
    let (engine, _incoming) = equipment.engine(listen, args).await?;
    let has_lines = !args.json || args.verbose;
    if has_lines {
        equipment.notes.iter().for_each(complain);
    }
    let folder = std::env::temp_dir().join(format!("ringer-call-{}", crate::clock::new_id()));
    let extension_digits = args.dtmf.iter().flat_map(|digits| digits.chars()).filter(|&digit| digit != ',').count();
    let seed = args.seed.unwrap_or_else(random_seed);
    let mut show = Show { out, lines: has_lines.then(|| lines(args, extension_digits)), json: args.json };
    show.show_address(&args.to, seed);
    let entered = {
        let entering = enter(
            args,
            &equipment,
            Seed(seed),
            args.record.as_ref().map(|_| folder.clone()),
            target,
            new_room.as_ref(),
        );
        unless_stopped(entering, new_room.as_ref(), out, &mut stop).await
    };
    let ended = match entered {
        Ok(placement) => hold(&engine, placement, &mut show, &mut stop).await,
        Err(why) => Err(why),
    };
    engine.stop().await;
    if let Some(new_room) = new_room
        && let Err(why) = new_room.remove().await
    {
        complain(format_args!("{why}"));
    }
    let saved = save(ended.as_ref().ok(), args.record.as_deref());
    let _ = std::fs::remove_dir_all(&folder);
    let problem = match (&ended, &saved) {
        (Err(why), _) | (_, Err(why)) => Some(why.clone()),
        (Ok(report), Ok(_)) => match (problem(report), hint::room_server(&args.to, report).await) {
            (Some(why), Some(hint)) => Some(format!("{why}; {hint}")),
            (why, _) => why,
        },
    };
    show.over(&Outcome {
        seed,
        extension_digits,
        report: ended.as_ref().ok(),
        pacing_p50_ms: quantile_ms(&engine.lateness().0, 0.5),
        recording: saved.ok().flatten(),
        problem: problem.as_deref(),
    });
    let code = ended.as_ref().is_ok_and(is_unreachable).then_some(UNREACHABLE);
    problem.map_or(Ok(()), |why| Err(Failed { why, code }))
}

/// Returns the lines of a call, which stand on standard error beside JSON.
fn lines(args: &Args, extension_digits: usize) -> Lines {
    let is_terminal = if args.json { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
    let lines = Lines::new(CALLER, Style::of(is_terminal));
    lines.verbose(args.verbose).with_extension(extension_digits)
}

/// Recognizer, synthesizer and language model of a call, by its settings.
struct Equipment {
    speech: Speech,
    model: Option<Arc<dyn LanguageModel>>,
    /// Lines that tell which models are used.
    notes: Vec<String>,
}

impl Equipment {
    /// Returns the equipment of `--config`, else of this machine.
    ///
    /// # Errors
    /// Names the setting that cannot be used, or the program that is missing.
    fn new(args: &Args) -> Result<Equipment, String> {
        let config = local::for_listeners(local::settings_of(args.config.as_deref())?);
        let model = language_model(&config.language_model, &config)?;
        let mut notes = local::neural(&config);
        notes.extend(model.as_ref().map(|_| "the caller's words are made by the language model".to_owned()));
        let equipment = Equipment { speech: local::speech_of(&config)?, model, notes };
        equipment.voice(Seed(0))?;
        Ok(equipment)
    }

    fn voice(&self, seed: Seed) -> Result<Voice, String> {
        local::voice_of(&*self.speech.synthesizer, &VoiceWanted { seed, ..VoiceWanted::of(LANGUAGE) })
    }

    async fn engine(&self, listen: SipListen, args: &Args) -> Result<(Engine, mpsc::Receiver<Incoming>), String> {
        local::engine_with(self.speech.clone(), listen, RTP_PORTS, args.tls.settings()?).await
    }
}

/// Returns the call with its room open: `target`, or the new room that is created for it.
async fn enter(
    args: &Args,
    equipment: &Equipment,
    seed: Seed,
    folder: Option<PathBuf>,
    target: Option<RoomTarget>,
    new_room: Option<&NewRoom>,
) -> Result<Placement, String> {
    let mut placement = placement(args, equipment, seed, folder).await?;
    if let (Destination::Room(dial), Some(target)) = (&mut placement.destination, target) {
        dial.target = target;
        dial.terms = args.rooms.terms();
    }
    if let Some(new_room) = new_room {
        new_room.create().await?;
    }
    if let Some((platform, agent)) = platform(&args.to) {
        // A session does not wait: it is asked for at the end.
        let dial = args.platforms.dial(&platform, agent, args.config.as_deref()).await?;
        placement.spec.dtmf = dial.digit_method();
        placement.destination = Destination::WebSocket(Box::new(dial));
    }
    Ok(placement)
}

/// Returns what `entering` comes to, unless the command is to end before. A room that was asked for by then is waited
/// for up to [`CREATING`], or to the next signal: one that comes after it was removed would stay.
async fn unless_stopped(
    entering: impl Future<Output = Result<Placement, String>>,
    new_room: Option<&NewRoom>,
    out: &Out,
    stop: &mut Signals,
) -> Result<Placement, String> {
    tokio::pin!(entering);
    let why = tokio::select! {
        biased;
        () = out.wait_until_closed() => "nobody reads what is printed",
        () = stop.wait() => "stopped before the call",
        made = &mut entering => return made,
    };
    if new_room.is_some_and(NewRoom::may_exist) {
        tokio::select! {
            () = stop.wait() => {}
            _ = tokio::time::timeout(CREATING, entering) => {}
        }
    }
    Err(why.to_owned())
}

/// Places the call and prints its events to its end, which comes sooner when `stop` asks for it or nobody reads.
async fn hold(
    engine: &Engine,
    placement: Placement,
    show: &mut Show<'_>,
    stop: &mut Signals,
) -> Result<CallReport, String> {
    let mut handle = engine.place(placement).await.map_err(|refusal| refusal.to_string())?;
    let control = handle.control.clone();
    let (out, mut read) = (show.out, true);
    loop {
        tokio::select! {
            news = handle.news.recv() => match news {
                Some(CallUpdate::Event(entry)) => show.event(&entry),
                Some(CallUpdate::Ended(report)) => return Ok(*report),
                Some(CallUpdate::Dispatched | CallUpdate::Connected(_)) => {}
                None => return Err("the call was lost".into()),
            },
            () = stop.wait() => control.hangup(EndReason::ApiHangup),
            () = out.wait_until_closed(), if read => {
                read = false;
                control.hangup(EndReason::ApiHangup);
            }
        }
    }
}

/// Puts the recording where it was asked for, and says where that is.
fn save<'a>(report: Option<&CallReport>, to: Option<&'a Path>) -> Result<Option<&'a Path>, String> {
    let Some((from, to)) = report.and_then(|report| report.recording.as_deref()).zip(to) else { return Ok(None) };
    std::fs::copy(from, to).map_err(|error| format!("{}: {error}", to.display()))?;
    Ok(Some(to))
}

/// Returns the reason why a finished call was not a normal one; `None` if it was.
fn problem(report: &CallReport) -> Option<String> {
    let ending = &report.ending;
    if let Some(remote) = ending.remote.as_ref().filter(|_| !ending.connected) {
        let code = remote.sip_code().map(|code| format!("{code} ")).unwrap_or_default();
        return Some(format!("not connected: {code}{}", remote.text));
    }
    let is_normal = ending.connected
        && ending.fault.is_none()
        && !matches!(ending.reason, EndReason::ConnectionLost | EndReason::MediaTimeout | EndReason::SessionExpired);
    if is_normal {
        return None;
    }
    // The end as the other side told it explains a call that broke off.
    let why = ending.remote.as_ref().map(|remote| remote.text.as_str()).filter(|text| !text.is_empty());
    let why = why.map(|text| format!(": {text}")).unwrap_or_default();
    Some(format!("the call ended: {}{why}", ending.reason.as_str()))
}

/// Tries whether a file can be written, which then is as it was before.
fn writable(path: &Path) -> std::io::Result<()> {
    match File::options().write(true).create_new(true).open(path) {
        Ok(_) => std::fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => File::options().append(true).open(path).map(drop),
        Err(error) => Err(error),
    }
}

async fn placement(
    args: &Args,
    equipment: &Equipment,
    seed: Seed,
    folder: Option<PathBuf>,
) -> Result<Placement, String> {
    let noise = match &args.noise {
        Some(noise) => noise_of(noise, seed).await?,
        None => None,
    };
    let voice = equipment.voice(seed)?;
    let profile = Profile { intent: args.intent.clone(), ..Profile::default() };
    let destination = destination(args);
    let dtmf = destination.digit_method().unwrap_or_default();
    let limits = Limits { max_duration_ms: Some(args.max_seconds * 1000), ..Limits::default() };
    Ok(Placement {
        id: "call".into(),
        spec: CallSpec { seed, noise, limits, dtmf, extension: args.dtmf.clone(), ..CallSpec::default() },
        destination,
        fluency: profile.fluency(seed),
        language: profile.language.clone(),
        mind: human::mind(profile, equipment.model.clone(), seed),
        voice: Some(voice),
        follows: None,
        keyterms: Vec::new(),
        folder,
        captured: false,
    })
}

fn destination(args: &Args) -> Destination {
    if is_socket(&args.to) {
        let mut dialect = Dialect::new(args.dialect.unwrap_or(Kind::Default));
        dialect.headers.clone_from(&args.header);
        return Destination::WebSocket(Box::new(WebSocketDial {
            url: args.to.clone(),
            username: args.username.clone(),
            password: args.password.clone().map(Secret::new),
            dialect: Some(dialect),
            ..WebSocketDial::default()
        }));
    }
    if let Some(base) = pipeline(&args.to) {
        let target = PipelineTarget {
            base_url: base.to_owned(),
            api_key: args.password.clone().map(Secret::new),
            result_id: "0".to_owned(),
            ..PipelineTarget::default()
        };
        return Destination::Pipeline(Box::new(PipelineDial { target, ..PipelineDial::default() }));
    }
    if room(&args.to).is_some() {
        return Destination::Room(Box::default());
    }
    if platform(&args.to).is_some() {
        return Destination::WebSocket(Box::default());
    }
    Destination::Sip(SipDial {
        target: args.to.clone(),
        username: args.username.clone(),
        password: args.password.clone().map(Secret::new),
        headers: args.header.clone(),
        codecs: local::codecs(&args.codec),
        ..SipDial::default()
    })
}

/// Returns the background noise of the call. Its voices are made before the call is placed.
async fn noise_of(noise: &Noise, seed: Seed) -> Result<Option<NoiseSpec>, String> {
    let Some(kind) = NoiseKind::from_name(&noise.kind) else { return Ok(None) };
    let (beds, snr_db) = (Arc::new(NoiseBeds::new(None)), snr_db(noise.volume));
    let synthesizer: Arc<dyn Synthesizer> = Arc::new(local::synthesizer()?);
    let prepared = beds.prepare(kind, LANGUAGE, &*synthesizer).await;
    let made = tokio::task::spawn_blocking(move || match prepared {
        Ok(()) => beds.with_voices(kind, LANGUAGE, snr_db, &mut seed.stream("noise")).0,
        Err(failure) => {
            complain(format_args!("the background's voices say no words: {}", failure.message));
            beds.bed(kind, snr_db, &mut seed.stream("noise"))
        }
    });
    made.await.map(Some).map_err(|error| error.to_string())
}

/// Returns the local address from which the target is reached, with a free port, and one more for TCP: large requests
/// go by it (RFC 3261 18.1.1), and the other side may open a connection of its own for its requests.
pub(super) async fn local_address(target: &str) -> Result<SipListen, String> {
    if is_socket(target) || pipeline(target).is_some() || room(target).is_some() || platform(target).is_some() {
        // No SIP is spoken.
        return Ok(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    }
    let describe = |fault: AddressFault| fault.to_string();
    let address = Address::parse(target).map_err(describe)?;
    let hops = address.hops(&Resolver::new(&[]), &Guard::by(|_| true)).await.map_err(describe)?;
    let to = hops.first().ok_or_else(|| format!("{target} has no address"))?;
    let host = crate::transport::sockets::address_towards(to.address)
        .map_err(|error| format!("{target} is not reachable from here: {error}"))?;
    let free = SocketAddr::new(host, 0);
    let is_tcp = hops.iter().any(|hop| hop.transport != Transport::Tls);
    Ok(SipListen { tcp: is_tcp.then_some(free), ..free.into() })
}

#[cfg(test)]
mod tests {
    use super::writable;

    #[test]
    fn a_file_that_is_tried_stays_as_it_was() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (fresh, old) = (folder.path().join("fresh.wav"), folder.path().join("old.wav"));
        std::fs::write(&old, "old").expect("the folder is writable");
        assert!(writable(&fresh).is_ok() && !fresh.exists());
        assert!(writable(&old).is_ok());
        assert_eq!(std::fs::read_to_string(&old).expect("it is there"), "old");
        assert!(writable(&folder.path().join("none").join("x.wav")).is_err());
        assert!(writable(folder.path()).is_err());
    }
}
