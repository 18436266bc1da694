//! `ringer up`: the engine, the jobs and the API in one process.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use ringer_media::codec::Codec;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::out::Out;
use super::sample::Sample;
use super::signals::{Asked, Signals};
use super::{
    Place, bus, capacity, count, dialects, fail, folder_warning, local, make_private, mcp, open_store,
    service_settings, tls,
};
use crate::agent::{self, Fault};
use crate::api::rate::Rates;
use crate::api::{self, ConnectionLimits, Part, Parts, Patience, Setup};
use crate::clock::{self, Clock};
use crate::config::{self, Config, SipListen};
use crate::engine::noise::NoiseBeds;
use crate::engine::{Engine, EngineConfig, Placement, START_WITHIN, Speech};
use crate::jobs::{Judging, Workers, Workshop};
use crate::model::api_key::Scope;
use crate::model::mail::MailHome;
use crate::provider::canned::Canned;
use crate::provider::chat::{ChatConfig, ChatModel, ModelTerms, Places};
use crate::provider::choice::ModelChoice;
use crate::provider::opus;
use crate::provider::{LanguageModel, Status};
use crate::service::{PlacementSettings, Running, Service, Settings};
use crate::store::artifacts::Artifacts;
use crate::suite::bodies::bodies_of;
use crate::tasks::{Tasks, behind_calls};
use crate::transport::incoming::Incoming;
use crate::transport::mail::{ListenerSettings, Mailbox, SmtpListener};
use crate::transport::sip::names::Resolver;
use crate::transport::sip::tls::Identity;
use crate::transport::sip::transfer::Forwarding;
use crate::transport::websocket::Dialect;

/// Organization that holds the first key.
const ORGANIZATION: &str = "default";

/// Name of the file with the URN of the installation.
const INSTALLATION: &str = "sip_instance";

/// Flags of `ringer up`; each wins over the environment and the settings file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  ringer up --listen 0.0.0.0:8080 --sip 192.0.2.10:5060 --data /var/lib/ringer")]
pub struct Args {
    /// Location of the settings and the data.
    #[command(flatten)]
    pub place: Place,
    /// Address of the HTTP API [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Address of the SIP socket: UDP, or with udp:, tcp: or tls: before it; commas between several
    /// [default: 127.0.0.1:5060]
    #[arg(long, value_name = "ADDRESS")]
    pub sip: Option<SipListen>,
    /// Ports for RTP and RTCP [default: 20000-29999]
    #[arg(long, value_name = "FIRST-LAST")]
    pub rtp_ports: Option<String>,
    /// Address that other sides are told to send to [default: the address of the SIP socket]
    #[arg(long, value_name = "IP")]
    pub advertise: Option<IpAddr>,
    /// Make every call in virtual time, to the sample agent; the user part of its address names a fault of it.
    #[arg(long, hide = true)]
    pub sim: bool,
    /// Print no address that opens the page without a key
    #[arg(long)]
    pub no_page_link: bool,
}

impl Args {
    /// Returns the settings with these flags over them.
    pub fn settings(&self) -> Result<Config, ExitCode> {
        self.place.settings(&[
            ("server.listen", self.listen.map(|address| address.to_string())),
            ("sip.listen", self.sip.map(|address| address.to_string())),
            ("sip.rtp_ports", self.rtp_ports.clone()),
            ("sip.advertise", self.advertise.map(|address| address.to_string())),
        ])
    }
}

/// Runs until it is told to stop.
pub async fn run(args: Args) -> ExitCode {
    let config = match args.settings() {
        Ok(config) => config,
        Err(code) => return code,
    };
    match up(&config, args.sim, !args.no_page_link).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => fail(why),
    }
}

async fn up(config: &Config, sim: bool, links: bool) -> Result<(), String> {
    // Asked for first: a signal during the start ends what was started.
    let mut stop = Signals::new()?;
    // Calls are made whether anybody reads it or not.
    let out = Out::standard();
    let listener = TcpListener::bind(config.server.listen).await;
    let listener = listener.map_err(|error| format!("the API address {}: {error}", config.server.listen))?;
    let api = listener.local_addr().map_err(|error| error.to_string())?;
    let house = House::open(config, sim, api, &out).await?;
    weak_points(config, &house.speech).iter().for_each(|weak| tracing::warn!("{weak}"));
    let (serving, served, draining) = (CancellationToken::new(), Tasks::new(), CancellationToken::new());
    let (sample, is_loopback) = (Sample::default(), api.ip().is_loopback());
    house.service.library().close_old_pages(ORGANIZATION).await.map_err(|error| error.to_string())?;
    let (door, link) = match links && is_loopback {
        true => {
            let (door, token) = house.service.library().page_door(ORGANIZATION);
            (Some(Arc::new(door)), format!("#start={token}"))
        }
        false => (None, String::new()),
    };
    let setup = Setup {
        draining: draining.clone(),
        is_loopback,
        door: door.clone(),
        sample_agent: Some(sample.starter()),
        ..house.setup(config)
    };
    let server = api::serve(listener, house.service.clone(), setup, serving.clone().cancelled_owned());
    served.spawn("api", async move {
        if let Err(error) = server.await {
            tracing::error!(%error, "the API server stopped");
        }
    });
    let spoken = |(name, address)| format!("{address}/{name}");
    let sip: Vec<String> = house.engine.sip_addresses().all().map(spoken).collect();
    let (sip, ports) = (sip.join(" and "), &config.sip.rtp_ports);
    out.line(format_args!(
        "ringer is ready: API http://{api} (documentation /docs), SIP {sip}, RTP {}-{}, {}",
        ports.start(),
        ports.end(),
        capacity(config)
    ));
    let terms = if door.is_some() { " (works once, for ten minutes)" } else { "" };
    out.line(format_args!("the page: http://{api}/{link}{terms}"));
    if !sim {
        local::neural(config).iter().for_each(|line| out.line(line));
    }
    if stop.wait_for_kind().await == Asked::InTime {
        house.drain(config.server.drain_timeout_s, &mut stop).await;
    }
    tracing::info!(calls = house.engine.live_calls(), "stopping");
    draining.cancel();
    house.close_calls().await;
    serving.cancel();
    served.stop().await;
    sample.stop().await;
    if let Some(door) = &door
        && let Err(error) = house.service.library().close_page(door).await
    {
        tracing::warn!(%error, "the key of the page could not be revoked");
    }
    house.service.store().close().await;
    Ok(())
}

/// Returns the sample agent's side of a call in virtual time.
fn sample_agent(target: &str, caller: &Placement) -> Placement {
    let user = target.split_once(':').and_then(|(_, rest)| rest.split_once('@')).map_or("", |(user, _)| user);
    let placement =
        agent::placement(caller.id.clone(), caller.spec.seed, Canned::voice_named("agent"), Codec::ALL.to_vec());
    agent::faulty(placement, Fault::of_word(user))
}

/// Returns warnings about settings that let the engine start but are weak.
fn weak_points(config: &Config, speech: &Speech) -> Vec<String> {
    let mut weak = Vec::new();
    if let Status::Down(why) = tokio::task::block_in_place(|| speech.synthesizer.status()) {
        weak.push(format!("{why}; calls that need it cannot speak (`ringer doctor` names the command)"));
    }
    weak.extend(folder_warning(&config.data));
    let hosts = &config.tls.insecure_hosts;
    weak.extend(hosts.iter().map(|host| format!("the certificate of {host} is not verified (tls.insecure_hosts)")));
    weak
}

/// Everything but the API.
struct House {
    service: Service,
    engine: Engine,
    speech: Speech,
    model: Option<Arc<dyn LanguageModel>>,
    workers: Workers,
    /// Messages from and to other engines.
    messages: Tasks,
}

impl House {
    async fn open(config: &Config, sim: bool, api: SocketAddr, out: &Out) -> Result<House, String> {
        make_private(&config.data.join("cache")).await?;
        let store = open_store(config).await.map_err(|error| error.to_string())?;
        let running = Arc::new(Running::default());
        let names = Resolver::new(&config.sip.dns_servers).for_sockets(&config.sip.listen);
        let dialects = safe_dialects(config)?.into();
        let roots = local::roots(config)?;
        let clock = if store.is_shared() { Clock::correctable() } else { Clock::Real };
        let storage = Artifacts::open(&config.storage, &roots, &store, &clock, &config.data).await?;
        let urn = installation(&config.data).await?;
        let settings = Settings { names: names.clone(), dialects, storage, ..settings_of(config, api, &urn) };
        let service = Service::new(store, clock.clone(), settings, running.clone());
        let model = models("language_model", &config.language_model, &config.language_models, config, &service)?;
        let ear = models("audio_model", &config.audio_model, &config.audio_models, config, &service)?;
        let service = service.with_model(model.clone());
        let mut speech = local::speech_of(config)?;
        if sim {
            speech.synthesizer = Arc::new(Canned::default());
        }
        let messages = bus::connect(config, &service, &roots, &running).await?;
        // Steps that can fail come before interrupted work is ended.
        let (listener, mailbox) = mail_entries(config).await?;
        let (engine, incoming) = start_engine(config, (names, clock), speech.clone()).await?;
        if sim {
            engine.simulate(Arc::new(sample_agent));
        }
        let interrupted = service.runs().recover().await.map_err(|error| error.to_string())?;
        if interrupted > 0 {
            tracing::warn!("{} had not ended when the engine last stopped", count(interrupted, "call"));
        }
        admit_somebody(&service, config, out).await.map_err(|error| error.to_string())?;
        service.library().note_trunk_numbers().await.map_err(|error| error.to_string())?;
        let unmatched = service.placements().unmatched_limits().await.map_err(|error| error.to_string())?;
        unmatched.iter().for_each(|line| tracing::warn!("{line}"));
        let placement_settings = PlacementSettings {
            behaviour: config.behaviour.clone(),
            recognizer_grace_ms: config.recognizer.grace_ms,
            codecs: config.sip.codecs.clone(),
            dtmf: config.sip.dtmf,
            model: model.clone(),
            synthesizer: speech.synthesizer.clone(),
            noises: Arc::new(NoiseBeds::new(Some(config.data.join("cache").join("noise")))),
            sounds: Arc::default(),
        };
        let workshop = Workshop {
            service: service.clone(),
            engine: engine.clone(),
            running,
            placement_settings: Arc::new(placement_settings),
            fillers: config.metrics.filler_phrases.clone().into(),
            probe_times: config.metrics.probe,
            yield_times: config.metrics.yielding,
            start_rate_per_s: config.limits.start_rate_per_s,
            inbound_allow: config.sip.inbound_allow.clone(),
            ear,
            judging: Arc::new(Judging::new(config.limits.max_evaluations)),
        };
        if service.store().is_shared() {
            // Until the database says at which trunks this engine is registered.
            engine.register_lines(BTreeSet::new()).await;
        }
        let workers = Workers::start(workshop, incoming);
        workers.take_mail(&service, listener, mailbox);
        engine.limit_strangers(&config.sip.inbound_allow).await;
        if !config.sip.trunks.is_empty() {
            engine.keep_lines(&config.sip.trunks, &urn).await;
        }
        Ok(House { service, engine, speech, model, workers, messages })
    }

    fn setup(&self, config: &Config) -> Setup {
        let (server, seconds) = (&config.server, Duration::from_secs);
        let (speech, model) = (self.speech.clone(), self.model.clone());
        let calls = self.engine.clone();
        let probe = move |parts: Parts| -> BoxFuture<'static, Parts> {
            let (speech, model, calls) = (speech.clone(), model.clone(), calls.clone());
            let mut sip = Part::up(true);
            sip.detail = Some(format!("{} of at most {}", count(calls.live_calls(), "call"), calls.max_calls()));
            // Programs are started and files read, which a thread of requests may not wait for.
            let measured = behind_calls("health", move || {
                let model = model.as_ref().map_or_else(Part::absent, |model| part(model.status()));
                [part(speech.synthesizer.status()), part(speech.recognizer.status()), model]
            });
            Box::pin(async move {
                let [synthesizer, recognizer, language_model] = measured
                    .await
                    .unwrap_or_else(|why| [(); 3].map(|()| Part { detail: Some(why.clone()), ..Part::up(false) }));
                Parts { synthesizer, recognizer, language_model, sip, ..parts }
            })
        };
        Setup {
            max_body_bytes: config.limits.max_body_bytes,
            max_upload_bytes: Setup::default().max_upload_bytes.max(config.limits.max_body_bytes),
            max_bodies_bytes: server.max_bodies_mb.saturating_mul(1024 * 1024),
            connections: ConnectionLimits {
                total: server.max_connections,
                per_address: server.max_connections_per_address,
                behind_proxy: server.public_host().is_some(),
            },
            refusal_delay: Setup::default().refusal_delay,
            public_host: server.public_host(),
            cors_origins: server.cors_origins.clone(),
            rates: Rates {
                generation_per_minute: config.rate_limit.generation_per_minute,
                default_per_minute: config.rate_limit.default_per_minute,
                routes: config.rate_limit.routes.iter().map(|(route, rate)| (route.clone(), *rate as u32)).collect(),
            },
            patience: Patience {
                head: seconds(server.header_timeout_s),
                body: seconds(server.body_timeout_s),
                upload: seconds(server.upload_timeout_s),
                answer: seconds(server.request_timeout_s),
                write: seconds(server.write_timeout_s),
            },
            probe: Some(Arc::new(probe)),
            engine: Some(self.engine.clone()),
            public_metrics: config.metrics.public,
            internal_token: config.security.internal_token.clone(),
            is_loopback: false,
            door: None,
            sample_agent: None,
            streams: Some(self.workers.streams()),
            line_tests: Some(self.workers.line_tests()),
            previews: Some(self.workers.previews()),
            suites: Some(Arc::new(bodies_of)),
            assistants: Some(mcp::http::assistants(config.mcp.allow_trunks)),
            draining: CancellationToken::new(),
        }
    }

    /// Begins no more conversations, and waits until those that run are over, at most for so many seconds, or until the
    /// next signal.
    async fn drain(&self, most_s: Option<u64>, stop: &mut Signals) {
        let over = self.workers.drain();
        let late = async {
            match most_s {
                Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
                None => std::future::pending().await,
            }
        };
        tracing::info!(calls = self.engine.live_calls(), "draining: a second signal ends the calls at once");
        tokio::select! {
            () = over => {}
            () = late => tracing::warn!("server.drain_timeout_s is over: calls that still run are ended"),
            () = stop.wait() => {}
        }
    }

    /// Begins no more calls, ends those that run, and waits until they are stored.
    async fn close_calls(&self) {
        self.workers.stop_claiming();
        tokio::join!(self.engine.stop(), self.workers.finish());
        self.messages.stop().await;
    }
}

/// Returns the URN of this installation, which registrars know it by after a restart, too (RFC 5626 4.1). It is kept in
/// the data folder.
async fn installation(data: &Path) -> Result<String, String> {
    let path = data.join(INSTALLATION);
    let named = |error: std::io::Error| format!("{}: {error}", path.display());
    match tokio::fs::read_to_string(&path).await {
        Ok(text) if text.trim().starts_with("urn:uuid:") => return Ok(text.trim().to_owned()),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(named(error)),
        Ok(_) | Err(_) => {}
    }
    let urn = format!("urn:uuid:{}", clock::new_id());
    tokio::fs::write(&path, &urn).await.map_err(named)?;
    Ok(urn)
}

/// Returns the settings of the services that are this engine's own.
fn settings_of(config: &Config, api: SocketAddr, urn: &str) -> Settings {
    Settings {
        api: Some(api),
        engine: config.server.name.clone().unwrap_or_else(|| engine_name(&host_name(), urn)),
        own_url: config.server.own_url.clone().or_else(|| own_url(api)),
        ..service_settings(config)
    }
}

/// Returns the dialects of the settings; refuses one whose headers and keys would go to every host.
fn safe_dialects(config: &Config) -> Result<BTreeMap<String, Dialect>, String> {
    let dialects = dialects(config)?;
    match dialect_without_hosts(&dialects).filter(|_| !config.websocket.any_host) {
        Some(name) => Err(format!(
            "[websocket.dialects.{name}] has headers or keys and no hosts: any key of the API could send them anywhere; name \
             the hosts that get them, as in hosts = [\"agent.example.com\", \"*.example.org\"]"
        )),
        None => Ok(dialects),
    }
}

/// Returns the name of this machine; empty: it has none.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default()
}

/// Returns the name of an engine without one of its own: that of its host, and the end of its installation's URN.
fn engine_name(host: &str, urn: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    let host: String = host.trim().chars().take(48).map(plain).collect();
    let host = if host.is_empty() { "engine" } else { &host };
    let end = urn.get(urn.len().saturating_sub(6)..).unwrap_or_default();
    format!("{host}-{end}")
}

/// Returns the start of URLs that lead to an API; `None`: it listens at every address, and none of them is known.
fn own_url(api: SocketAddr) -> Option<String> {
    (!api.ip().is_unspecified()).then(|| format!("http://{api}"))
}

/// Returns the name of a dialect whose headers and keys would go to every host; `None`: there is none.
fn dialect_without_hosts(dialects: &BTreeMap<String, Dialect>) -> Option<&str> {
    let is_open = |dialect: &Dialect| dialect.has_secrets() && dialect.hosts.is_empty();
    dialects.iter().find(|(_, dialect)| is_open(dialect)).map(|(name, _)| name.as_str())
}

/// Returns the state of a provider as `/health/deps` shows it.
fn part(status: Status) -> Part {
    match status {
        Status::Ok => Part::up(true),
        Status::Down(why) => Part { detail: Some(why), ..Part::up(false) },
    }
}

/// Makes sure that there is a key: where there is none, the one that was given, else a new one, which is shown this
/// once.
async fn admit_somebody(service: &Service, config: &Config, out: &Out) -> crate::error::Result<()> {
    match &config.bootstrap_key {
        Some(key) if !service.library().has_keys().await? => {
            service.library().bootstrap(ORGANIZATION, key.expose()).await.map(drop)
        }
        Some(key) if service.library().authenticate(key.expose()).await?.is_none() => {
            tracing::warn!("the bootstrap key is not used: there are keys already (ringer keys list)");
            Ok(())
        }
        Some(_) => Ok(()),
        None if service.library().has_keys().await? => Ok(()),
        None => {
            let key = service.library().create_key_in(ORGANIZATION, Scope::Admin, "first key").await?;
            out.line(format_args!("the first API key, of scope admin, shown only now: {}", key.api_key));
            Ok(())
        }
    }
}

/// Returns the listener and the mailbox of the settings, as far as there are any.
async fn mail_entries(config: &Config) -> Result<(Option<SmtpListener>, Option<Mailbox>), String> {
    let email = &config.email;
    let mailbox = match &email.imap_url {
        Some(url) => Some(Mailbox::new(url.clone(), local::roots(config)?)),
        None => None,
    };
    let Some(listen) = email.listen else { return Ok((None, mailbox)) };
    let identity = match (&email.tls_cert, &email.tls_key) {
        (Some(certificate), Some(key)) => Some(Identity::load(certificate, key).map_err(|(_, why)| why)?),
        _ => None,
    };
    let home = MailHome::new(email.address.as_deref(), email.inbound_domain.as_deref());
    let host = home.map_or_else(|| "localhost".to_owned(), |home| home.domain().to_owned());
    let listener = SmtpListener::bind(ListenerSettings { listen, host, identity }).await;
    let listener = listener.map_err(|error| format!("email.listen {listen}: {error}"))?;
    Ok((Some(listener), mailbox))
}

/// Returns the engine, and the calls that come in to it.
async fn start_engine(
    config: &Config,
    (names, clock): (Resolver, Clock),
    speech: Speech,
) -> Result<(Engine, mpsc::Receiver<Incoming>), String> {
    let engine = EngineConfig {
        sip: config.sip.listen,
        tls: tls::from_config(config)?,
        rtp_ports: config.sip.rtp_ports.clone(),
        advertise: config.sip.advertise,
        shards: 0,
        max_calls: config.limits.max_calls,
        srtp: config.sip.srtp,
        srtp_keys: config.sip.srtp_keys,
        symmetric_rtp: config.sip.symmetric_rtp,
        offer: config.sip.offer,
        session_interval_s: Some(config.sip.session_interval_s).filter(|seconds| *seconds > 0),
        forwarding: Forwarding::from(&config.sip),
        start_within: START_WITHIN,
        opus: opus::choose(&config.media),
        names,
    };
    let started = Engine::start(engine, speech, clock).await;
    started.map_err(|error| format!("the SIP socket {}: {error}", config.sip.listen))
}

/// Returns the default model of one kind, set in `section`, with those that are chosen by name.
pub(super) fn models(
    section: &str,
    main: &config::LanguageModel,
    others: &BTreeMap<String, config::LanguageModel>,
    config: &Config,
    service: &Service,
) -> Result<Option<Arc<dyn LanguageModel>>, String> {
    let terms = |section: String, settings: &config::LanguageModel| ModelTerms {
        spending: Some(service.spending().clone()),
        ..terms_of(section, settings)
    };
    let Some(main) = model_with(main, config, terms(section.to_owned(), main))? else { return Ok(None) };
    let mut named = BTreeMap::new();
    for (name, settings) in others {
        let model = model_with(settings, config, terms(format!("{section}s.{name}"), settings))?;
        named.extend(model.map(|model| (name.clone(), model)));
    }
    Ok(Some(Arc::new(ModelChoice::new(main, named))))
}

/// Returns the prices and limits of the model that is set in a section.
fn terms_of(section: String, settings: &config::LanguageModel) -> ModelTerms {
    ModelTerms {
        section,
        model: settings.model.clone().unwrap_or_default(),
        usd_per_million: settings.usd_per_million_input_tokens.zip(settings.usd_per_million_output_tokens),
        places: settings.max_per_minute.map(|most| Arc::new(Places::new(Clock::Real, most))),
        max_usd_per_day: settings.max_usd_per_day,
        spending: None,
    }
}

/// Returns the model of one part of the settings, whose use is not summed up.
pub(super) fn language_model(
    settings: &config::LanguageModel,
    config: &Config,
) -> Result<Option<Arc<dyn LanguageModel>>, String> {
    model_with(settings, config, terms_of(String::new(), settings))
}

fn model_with(
    settings: &config::LanguageModel,
    config: &Config,
    terms: ModelTerms,
) -> Result<Option<Arc<dyn LanguageModel>>, String> {
    let (Some(base_url), Some(model)) = (&settings.base_url, &settings.model) else { return Ok(None) };
    let key = settings.api_key.as_ref().map(|key| key.expose().to_owned());
    let roots = local::roots(config)?;
    let place = ChatConfig { roots, terms, tokens_max: settings.max_tokens, ..ChatConfig::new(base_url, key, model) };
    let model = ChatModel::new(place).map_err(|failure| failure.message)?;
    Ok(Some(Arc::new(model)))
}
