//! `ringer agent`: the sample voice agent as a program of its own.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;

use ringer_media::codec::Codec;
use tokio::net::TcpListener;

use super::out::Out;
use super::signals::Signals;
use super::tls::TlsFlags;
use super::{fail, local};
use crate::agent::{Desk, Fault, Log, Ways, chat, pipeline, platform};
use crate::config::{Secret, SipListen};
use crate::tasks::Tasks;
use crate::transport::websocket::platform::far::FarSide;

/// Flags of `ringer agent`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ringer agent --listen 127.0.0.1:5080 &
  ringer call sip:desk@127.0.0.1:5080
  ringer agent --listen tcp:127.0.0.1:5080 &
  ringer call 'sip:desk@127.0.0.1:5080;transport=tcp'
  ringer agent --websocket 127.0.0.1:8765 &
  ringer call ws://127.0.0.1:8765/
  ringer agent --pipeline 127.0.0.1:7860 &
  ringer call pipeline:http://127.0.0.1:7860
  ringer call ws://127.0.0.1:8765/twilio_media_streams --dialect twilio_media_streams
  ringer agent --platform openai_realtime --port 8766 &
  RINGER_P4_KEY=any ringer call p4:desk --preset openai_realtime --base ws://127.0.0.1:8766")]
pub struct Args {
    /// Address of the SIP socket: UDP, or with udp:, tcp: or tls: before it; commas between several
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5080")]
    pub listen: SipListen,
    /// Answer WebSockets here, too: the engine's own protocol at /, each dialect at /KIND
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:8765")]
    pub websocket: Option<SocketAddr>,
    /// Answer offers of WebRTC here, too, as voice pipelines do: POST /api/offer
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:7860")]
    pub pipeline: Option<SocketAddr>,
    /// Answer messages here, too: POST /v1/chat/completions
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:8000")]
    pub chat: Option<SocketAddr>,
    /// Answer on 127.0.0.1, too, as a platform does: the WebSocket of this preset of adapters, and the request for its
    /// session
    #[arg(long, value_name = "KIND", value_parser = kind_of_platform)]
    pub platform: Option<String>,
    /// Port of --platform; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 8766, requires = "platform")]
    pub port: u16,
    /// Key that callers of --platform must have [default: any]
    #[arg(long, value_name = "KEY", env = "RINGER_PLATFORM_KEY", hide_env_values = true, requires = "platform")]
    pub platform_key: Option<String>,
    /// Certificates of SIP over TLS.
    #[command(flatten)]
    pub tls: TlsFlags,
    /// Append one JSON object a line here: calls, what was heard and what was said
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Codecs to accept, by name
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_value = "G722,PCMU,PCMA",
          value_parser = Codec::NAMES, ignore_case = true)]
    pub codec: Vec<String>,
    /// Ports for RTP and RTCP
    #[arg(long, value_name = "FIRST-LAST", default_value = "30000-39999", value_parser = ports)]
    pub rtp_ports: RangeInclusive<u16>,
    /// Have a fault on purpose
    #[arg(long, value_name = "KIND")]
    pub fault: Option<Fault>,
    /// End after this many calls
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub once: Option<u64>,
}

/// Says that the agent answers; the address follows.
pub const READY: &str = "agent ready on ";

/// Answers calls until it is told to stop.
pub async fn run(args: Args) -> ExitCode {
    match serve(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => fail(why),
    }
}

async fn serve(args: Args) -> Result<(), String> {
    let mut stop = Signals::new()?;
    let speech = local::speech()?;
    let voice = local::voice_of(&*speech.synthesizer, &Desk::voice_wanted_with(args.fault))?;
    speech.synthesizer.ready(&voice).await;
    let log = match &args.log {
        Some(path) => Some(Log::append(path).map_err(|error| format!("{}: {error}", path.display()))?),
        None => None,
    };
    let (engine, incoming) =
        local::engine_with(speech, args.listen, args.rtp_ports.clone(), args.tls.settings()?).await?;
    let mut addresses = addresses(&engine.sip_addresses());
    let tasks = Tasks::new();
    let ways = ways(&args, &tasks, &mut addresses).await?;
    let desk = Desk::new(engine, voice, log, local::codecs(&args.codec), args.fault);
    // Calls are answered whether anybody reads this or not.
    let out = Out::standard();
    out.line(format_args!("{READY}{addresses}"));
    local::neural(&local::own_settings()).iter().for_each(|line| out.line(line));
    tokio::select! {
        () = desk.serve(incoming, ways, args.once) => {}
        () = stop.wait() => {}
    }
    desk.stop().await;
    tasks.stop().await;
    Ok(())
}

/// Opens the ways beside SIP that are asked for, and adds their addresses.
async fn ways(args: &Args, tasks: &Tasks, addresses: &mut String) -> Result<Ways, String> {
    let mut ways = Ways::default();
    if let Some(address) = args.websocket {
        let (listener, bound) = bind("the WebSocket address", address).await?;
        addresses.push_str(&format!(" and ws://{bound}/"));
        ways.sockets = Some(listener);
    }
    if let Some(address) = args.pipeline {
        let (listener, bound) = bind("the address of offers", address).await?;
        addresses.push_str(&format!(" and pipeline:http://{bound}"));
        ways.offers = Some(pipeline::listen(listener, tasks));
    }
    if let Some(side) = args.platform.as_deref().and_then(FarSide::of) {
        let (listener, bound) =
            bind("the address of --platform", SocketAddr::from(([127, 0, 0, 1], args.port))).await?;
        addresses.push_str(&format!(" and ws://{bound} ({})", side.name()));
        let key = args.platform_key.clone().map(Secret::new);
        let (calls, receiver) = platform::channel();
        platform::listen(listener, tasks, side, key, calls);
        ways.platform = Some(receiver);
    }
    if let Some(address) = args.chat {
        let (listener, bound) = bind("the address of messages", address).await?;
        addresses.push_str(&format!(" and http://{bound}/v1"));
        chat::listen(listener, tasks, args.fault);
    }
    Ok(ways)
}

/// Returns a listener and its address; `what` names it in an error.
async fn bind(what: &str, address: SocketAddr) -> Result<(TcpListener, SocketAddr), String> {
    let listener = TcpListener::bind(address).await.map_err(|error| format!("{what} {address}: {error}"))?;
    let bound = listener.local_addr().map_err(|error| error.to_string())?;
    Ok((listener, bound))
}

fn kind_of_platform(text: &str) -> Result<String, String> {
    let names = || FarSide::names().collect::<Vec<_>>().join(", ");
    let is_known = FarSide::names().any(|name| name == text);
    if is_known { Ok(text.to_owned()) } else { Err(format!("it must be one of {}", names())) }
}

/// Returns the addresses to call: `sip:desk@127.0.0.1:5080`, and the same for each other transport.
fn addresses(listen: &SipListen) -> String {
    let uri = |(name, address)| match name {
        "udp" => format!("sip:desk@{address}"),
        other => format!("sip:desk@{address};transport={other}"),
    };
    listen.all().map(uri).collect::<Vec<_>>().join(" and ")
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    crate::config::parse_ports(text)
        .ok_or_else(|| "ports must be two ports like 30000-39999, the first even".to_owned())
}
