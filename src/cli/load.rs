//! `ringer load`: many calls at once, to see what this machine carries. Each is a whole caller: noise, voice activity, digits,
//! words now and then, a recording; only the recognizer and the synthesizer are left out, whose cost is their own.

mod caller;
mod far;
mod figures;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use ringer_media::call::EndReason;
use tokio::sync::mpsc;

use self::caller::Callers;
use self::far::{FarSide, Over};
use self::figures::{Figures, Window};
use super::call::{line_address, local_address};
use super::out::Out;
use super::signals::Signals;
use super::tls::TlsFlags;
use super::{count, failed};
use crate::clock::{Clock, monotonic, new_id};
use crate::config::{Encryption, OfferedIn, SrtpKeys, most_calls, raise_file_limit};
use crate::engine::{CallControl, CallHandle, CallNews, CallReport, Engine, EngineConfig};
use crate::tasks::Tasks;
use crate::transport::sip::names::Resolver;
use crate::transport::sip::transfer::Forwarding;

/// Ports of the media of all calls.
const RTP_PORTS: std::ops::RangeInclusive<u16> = 10_000..=59_999;
/// Time limit for connecting the last calls.
const SET_UP: Duration = Duration::from_secs(10);
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
  ringer load --pipeline --calls 50
  ringer load --to sip:echo@192.0.2.7 --calls 50 --no-vad --json")]
pub struct Args {
    /// Address to call [default: a far side that is started for it]
    #[arg(long, value_name = "URI", value_parser = line_address)]
    pub to: Option<String>,
    /// Call over WebSockets, in the engine's own protocol
    #[arg(long)]
    pub websocket: bool,
    /// Call over WebRTC, as voice pipelines are called
    #[arg(long, conflicts_with = "websocket")]
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
    /// Be the far side: answer calls until standard input ends
    #[arg(long, hide = true)]
    pub far_side: bool,
}

impl Args {
    fn over(&self) -> Over {
        match (self.websocket, self.pipeline) {
            (true, _) => Over::WebSocket,
            (_, true) => Over::Pipeline,
            _ => Over::Sip,
        }
    }
}

/// Makes the calls and prints the report; 0 when all calls were connected and stayed up, and were as punctual as was asked.
pub async fn run(args: Args) -> ExitCode {
    if args.far_side {
        return match args.over() {
            Over::Sip => far::run().await,
            Over::WebSocket => far::websocket::run().await,
            Over::Pipeline => far::pipeline::run().await,
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
        Err(why) => failed(why),
    }
}

async fn load(args: &Args) -> Result<Figures, String> {
    let mut stop = Signals::new()?;
    let far = match &args.to {
        None => Some(FarSide::start(args.over()).await?),
        Some(_) => None,
    };
    let to = args.to.clone().or(far.as_ref().map(|far| far.uri.clone())).unwrap_or_default();
    let sip = local_address(&to).await?;
    let most = most_calls(raise_file_limit(), &RTP_PORTS);
    if (args.calls as usize) > most {
        return Err(format!("at most {}: raise the limit of open files (ulimit -n)", count(most, "call")));
    }
    let config = EngineConfig {
        sip,
        tls: args.tls.settings()?,
        rtp_ports: RTP_PORTS,
        advertise: None,
        shards: 0,
        max_calls: most,
        srtp: Encryption::Off,
        srtp_keys: SrtpKeys::default(),
        symmetric_rtp: false,
        offer: OfferedIn::Invite,
        session_interval_s: None,
        forwarding: Forwarding::default(),
        names: Resolver::new(&[]),
    };
    let (engine, _incoming) = Engine::start(config, caller::speech(), Clock::Real)
        .await
        .map_err(|error| format!("the SIP socket {sip}: {error}"))?;
    let folder = args.data.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("ringer-load-{}", new_id())));
    let run = Run { engine: &engine, args, folder: &folder, tasks: Tasks::new() };
    let measured = tokio::select! {
        measured = async { run.measure(Callers::new(to, args).await?).await } => measured,
        () = stop.wait() => Err("stopped".to_owned()),
    };
    engine.stop().await;
    if args.data.is_none() {
        let _ = std::fs::remove_dir_all(&folder);
    }
    let mut figures = measured?;
    figures.far_side = match far {
        Some(far) => far.stop().await,
        None => None,
    };
    Ok(figures)
}

/// News of one call of the load test.
enum News {
    Connected { after: Duration },
    Ended(Box<CallReport>),
}

/// The calls of one command.
struct Run<'a> {
    engine: &'a Engine,
    args: &'a Args,
    folder: &'a Path,
    tasks: Tasks,
}

impl Run<'_> {
    async fn measure(self, callers: Callers) -> Result<Figures, String> {
        let calls = self.args.calls as usize;
        let (tell, mut news) = mpsc::channel(2 * calls + 16);
        let mut controls = Vec::with_capacity(calls);
        let mut figures = Figures::new(self.args.calls);
        let idle = Window::now(self.engine);
        let mut pace = tokio::time::interval(Duration::from_secs(1) / self.args.rate);
        for number in 0..calls {
            pace.tick().await;
            let placed = monotonic();
            match self.engine.place(callers.placement(number, self.folder)).await {
                Ok(CallHandle { news, control }) => {
                    controls.push(control);
                    self.tasks.spawn("watch", watch(news, tell.clone(), placed));
                }
                Err(refusal) => figures.refused(&refusal.to_string()),
            }
        }
        drop(tell);
        let all_up = async {
            while figures.connected + figures.failed < self.args.calls {
                let Some(news) = news.recv().await else { break };
                figures.take(news);
            }
        };
        let _ = tokio::time::timeout(SET_UP, all_up).await;
        if figures.connected == 0 {
            return Err(figures.first_failure.unwrap_or_else(|| "no call was connected".into()));
        }
        tokio::time::sleep(SETTLE).await;
        let before = Window::now(self.engine);
        tokio::time::sleep(Duration::from_secs(self.args.seconds.into())).await;
        let after = Window::now(self.engine);
        figures.window(&before, &after);
        figures.memory(&idle, &before, &after);
        self.hang_up(&controls);
        let all_down = async {
            while let Some(news) = news.recv().await {
                figures.take(news);
            }
        };
        if tokio::time::timeout(HANG_UP, all_down).await.is_err() {
            tracing::warn!("some calls did not end");
        }
        figures.finish();
        Ok(figures)
    }

    fn hang_up(&self, controls: &[CallControl]) {
        controls.iter().for_each(|control| control.hangup(EndReason::ApiHangup));
    }
}

async fn watch(mut news: mpsc::Receiver<CallNews>, tell: mpsc::Sender<News>, placed: ringer_media::time::Time) {
    while let Some(item) = news.recv().await {
        let item = match item {
            CallNews::Connected(_) => News::Connected { after: monotonic().since(placed) },
            CallNews::Ended(report) => News::Ended(report),
            CallNews::Dispatched | CallNews::Event(_) => continue,
        };
        let _ = tell.send(item).await;
    }
}
