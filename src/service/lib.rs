//! Rules of the product, one folder a subject. Knows the store, the clock and the queue; knows no HTTP.
//!
//! A subject is a type with the handles that it needs, and with the subjects of earlier folders that it calls. None
//! calls a later one. [`Service`] makes them and gives them out; it has no rule itself.
//!
//! Functions are named after the operation and take the [`Caller`] whose rows they may see. What a caller may do by
//! scope is decided before a function is called; the one exception are the secrets on agents, which read-scope keys do
//! not see.

mod bundle;
mod conversation;
mod engines;
mod evaluation;
mod files;
mod generation;
mod humans;
pub mod jobs;
mod library;
mod not_done;
mod outbox;
mod placement;
mod runs;
mod spending;
mod telemetry;
mod watching;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringer_base::clock::Clock;
use ringer_base::config::{
    Behaviour, Capture, Email, Judge, Notify, OrganizationLimits, Pipelines, Retention, Sms,
    Telemetry as TelemetrySettings, Trunk,
};
use ringer_base::guard::Guard;
use ringer_base::post::Poster;
use ringer_base::tls::Roots;
use ringer_engine::{SocketSettings, TextSender};
use ringer_media::call::EndReason;
use ringer_model::api_key::Scope;
use ringer_model::language_model::ModelRecord;
use ringer_model::mail::MailHome;
use ringer_provider::{LanguageModel, Synthesizer};
use ringer_store::Store;
use ringer_store::artifacts::Artifacts;
use ringer_store::events::Feed;
use ringer_store::queue::Queue;
use ringer_transport::sip::names::Resolver;
use ringer_transport::webrtc::PeerTerms;
use ringer_transport::websocket::Dialect;
use tokio::sync::watch;
use uuid::Uuid;

pub use self::bundle::Bundles;
pub use self::conversation::Conversations;
pub use self::conversation::agent_stream::StreamGoal;
pub use self::conversation::artifacts::{HTTP_LOG, MAIL_LOG, Peaks, RECOGNIZED, Timeline, recording_link};
pub use self::conversation::ended::Ended;
pub use self::conversation::inbound_address::{InboundAddress, QueueStep};
pub use self::conversation::live::Running;
pub use self::conversation::mail_thread::{MailNews, MailThread, OutgoingMail};
pub use self::conversation::obstacle::Obstacle;
pub use self::conversation::outcome::{CallOutcome, Circumstances, is_unreachable};
pub use self::conversation::peaks::{PeakStretch, Zoom};
pub use self::conversation::relay::Relay;
pub use self::conversation::storing::Stored;
pub use self::conversation::stream_address::AGENT_STREAM;
pub use self::conversation::transcode::{Packing, Track};
pub use self::conversation::usage::SpendAllowed;
pub use self::engines::{EngineList, EngineRecord, EngineState, Engines, EnginesAsked, LEASE_MS};
pub use self::evaluation::Evaluations;
pub use self::evaluation::call_logs::{
    CallLogPage, CallLogQuery, CallLogWork, CallQueued, LogDeleted, LogEvaluated, LogUpdated, LogsDeleted,
};
pub use self::evaluation::cards::{CardList, CardWork};
pub use self::evaluation::follow_up::FollowUp;
pub use self::evaluation::material::ToJudge;
pub use self::evaluation::overdue::EVALUATION_MS;
pub use self::evaluation::records::Judged;
pub use self::evaluation::review::{Reviewed, Reviews};
pub use self::generation::Generation;
pub use self::generation::drafting::{GraphMade, ValuesMade};
pub use self::generation::drafts::{DraftMetrics, MetricDrafts};
pub use self::humans::Humans;
pub use self::humans::scenarios::{ScenarioDeleted, ScenarioList, Validated};
pub use self::humans::{
    BulkCreated, BulkDeleted, DigitalHumanPage, HumansOfSimulation, IdError, IndexError, PAGE_SIZES,
};
pub use self::library::Library;
pub use self::library::agents::{AgentAdded, AgentUpdated, SigningKey};
pub use self::library::communities::CommunityList;
pub use self::library::customers::{TraitDeleted, TraitList};
pub use self::library::field_rules::phone;
pub use self::library::folders::{AgentMoved, FolderDeleted};
pub use self::library::labels::LabelDeleted;
pub use self::library::metrics::{MetricPage, MetricsDeleted, MetricsUpdated};
pub use self::library::noises::{NoiseDeleted, NoiseSource};
pub use self::library::page_key::PageDoor;
pub use self::library::phone_numbers::{NumberAdded, NumberReleased};
pub use self::library::simulations::{Message, SimulationAdded, SimulationDeleted};
pub use self::library::versions::{VersionDeleted, VersionLabels};
pub use self::not_done::NotDone;
pub use self::outbox::Outbox;
pub use self::placement::Placements;
pub use self::placement::adapter::{Adapters, adapters};
pub use self::placement::definitions::{Definitions, Synced, definitions};
use self::placement::dial::RefusalCounts;
pub use self::placement::dial::{CallerNumber, Outgoing, Refusals, unmatched_limits};
pub use self::placement::{
    Begin, BeginText, PlacementSettings, PlatformLine, PreparedCall, PreparedText, Preview, RoomPlan, Sounds, Trial,
    line_of,
};
pub use self::runs::Runs;
pub use self::runs::compare::RunComparison;
pub use self::runs::evidence::manifest::{Chain, Link, Stamped, Verified, fingerprint, verify};
pub use self::runs::evidence::stamp::Authorities;
pub use self::runs::evidence::{EvidenceKeyOut, EvidenceKeys};
pub use self::runs::incoming::Reached;
pub use self::runs::ladder::Ladder;
pub use self::runs::mail_list::MailList;
pub use self::runs::mails::MailTaken;
pub use self::runs::page_file::{CallFile, RunFile};
pub use self::runs::queueing::{RunCancelled, RunDeleted, RunResults};
pub use self::runs::results::{ConversationsEnded, HungUp, ReEvaluation, ResultDeleted, ResultUpdated};
pub use self::runs::retention::Cleared;
pub use self::runs::run_list::{ListedRun, ResultChange, RunChanges, RunPage, RunQuery};
pub use self::runs::scheduler::{AutosyncAccepted, AutosyncSkipped, AutosyncTarget, RunAccepted};
pub use self::runs::schedules::{ScheduleDeleted, ScheduleList};
use self::runs::send_text::Talks;
pub use self::runs::sms_runs::{AddressedText, SmsQueued, Terminated};
pub use self::runs::span_list::SpanList;
pub use self::runs::summary::RunSummary;
pub use self::runs::text_runs::TextNews;
pub use self::runs::turn_list::TurnList;
pub use self::spending::{ModelSpending, UsedBy};
use self::telemetry::SpanQueue;
pub use self::telemetry::{SpansAdded, Telemetry, TraceCounts, TracesTaken};
pub use self::watching::Watching;
pub use self::watching::alerts::{AlertDeleted, AlertPage, ViolationPage};
pub use self::watching::monitors::{MonitorDeleted, MonitorPage, malfunction_phrases};
pub use self::watching::webhooks::{DeliveryPage, WebhookAdded, WebhookDeleted, WebhookList, WebhookTested};
pub use ringer_judge::accuracy::{AccuracyTable, table as accuracy_table};
pub use ringer_provider::otlp::{answer as answer_traces, read_request as read_traces};

/// Time limit for a webhook's connection and answer together.
const WEBHOOK_PATIENCE: Duration = Duration::from_secs(5);

/// Caller of an operation: an authenticated API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Organization whose rows it may see.
    pub organization: String,
    /// Id of the API key.
    pub key_id: Uuid,
    /// User of the key; `None`: it was made without one.
    pub user_id: Option<Uuid>,
    /// Scope that limits its operations.
    pub scope: Scope,
}

impl Caller {
    /// Returns the engine itself, working for an organization.
    pub fn engine(organization: &str) -> Caller {
        Caller::keyless(organization.to_owned(), Scope::Admin)
    }

    /// Returns a caller without a key in an organization.
    pub fn keyless(organization: String, scope: Scope) -> Caller {
        Caller { organization, key_id: Uuid::nil(), user_id: None, scope }
    }

    /// Returns the id of the author of a change: the user of the key, else the key.
    pub fn author(&self) -> Uuid {
        self.user_id.unwrap_or(self.key_id)
    }

    /// True for a key of scope admin.
    pub fn is_admin(&self) -> bool {
        self.scope.covers(Scope::Admin)
    }
}

/// Calls that are running in this process.
pub trait LiveCalls: Send + Sync {
    /// Asks the call of a result to end; false when this process does not hold it.
    fn hangup(&self, result_id: i64, reason: EndReason) -> bool;

    /// True when this process holds the call of a result.
    fn holds(&self, result_id: i64) -> bool {
        let _ = result_id;
        false
    }

    /// Returns the events of a result as they happen; `None` when this process makes no calls.
    fn feed(&self, result_id: i64) -> Option<Arc<Feed>> {
        let _ = result_id;
        None
    }

    /// Notes that the state of a result has changed and is stored.
    fn note_change(&self, result_id: i64) {
        let _ = result_id;
    }

    /// Returns a watch that changes with every stored change of a result's state; `None` when this process makes no
    /// calls.
    fn any_change(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Returns the way to the other engines of the database; `None`: there is no bus.
    fn relay(&self) -> Option<Arc<Relay>> {
        None
    }

    /// Sender of text messages over SIP; `None` when this process has none.
    fn text_sender(&self) -> Option<TextSender> {
        None
    }

    /// Synthesizer that speaks in the calls of this process; `None` when it makes none.
    fn synthesizer(&self) -> Option<Arc<dyn Synthesizer>> {
        None
    }

    /// True when as many calls run in this process as may.
    fn is_full(&self) -> bool {
        false
    }

    /// Address on which calls come in; `None` when this process takes none.
    fn sip_address(&self) -> Option<SocketAddr> {
        None
    }
}

/// No call runs in this process.
#[derive(Copy, Clone, Debug, Default)]
pub struct NoLiveCalls;

impl LiveCalls for NoLiveCalls {
    fn hangup(&self, _: i64, _: EndReason) -> bool {
        false
    }
}

/// Settings that the services work with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Data folder, with `results/<id>/recording.wav` and the other files.
    pub data: PathBuf,
    /// Address that users reach this server at, without a slash at the end; `None`: links are paths.
    pub public_url: Option<String>,
    /// True if webhooks and fetched URLs may point to loopback and private addresses.
    pub allow_private_targets: bool,
    /// True if agents may have loopback and private addresses.
    pub allow_private_agents: bool,
    /// True if webhook URLs must be https.
    pub require_https_webhooks: bool,
    /// Results of one run.
    pub max_results_per_run: i64,
    /// Minutes of conversation that an organization may use in a month; `None`: as many as it wants.
    pub usage_minutes_per_month: Option<f64>,
    /// Likeness from 0 to 1 at which failed evaluations become one issue.
    pub issue_likeness: f64,
    /// Phrases that show that an agent is broken.
    pub malfunction_phrases: Vec<String>,
    /// Phone numbers that organizations may take, E.164.
    pub number_pool: Vec<String>,
    /// Price of a number of the pool, in the smallest unit of the currency, a month.
    pub number_price: i64,
    /// Settings for delivering notifications.
    pub notify: Notify,
    /// Traces of conversations, and the trace context of agents.
    pub telemetry: Arc<TelemetrySettings>,
    /// Traffic of a call that is captured for its evidence.
    pub capture: Capture,
    /// Address of an authority that stamps manifests of evidence (RFC 3161); `None`: they are not stamped.
    pub timestamp_url: Option<String>,
    /// True if the steps of a journey after one that failed are not held.
    pub journey_stop_on_failure: bool,
    /// Time between a Digital Human's written answer and its sending.
    pub text_reply_delay_ms: u32,
    /// The carrier of text messages.
    pub sms: Arc<Sms>,
    /// Settings of conversations by mail.
    pub email: Arc<Email>,
    /// True if a model judges by ear.
    pub hears: bool,
    /// Language models and models that judge by ear, the default of each first.
    pub models: Arc<Vec<ModelRecord>>,
    /// Panel of judges, and least rates of a proven one.
    pub judge: Arc<Judge>,
    /// Budget of the default language model a day in USD, at which new conversations wait; `None`: no limit.
    pub callers_usd_per_day: Option<f64>,
    /// Numbers behind the named levels of Digital Humans.
    pub behaviour: Behaviour,
    /// Looks up the hosts of agents' SIP addresses.
    pub names: Resolver,
    /// Providers of telephone lines, by name.
    pub trunks: Arc<BTreeMap<String, Trunk>>,
    /// True if dialects with headers and keys go to every host, on an engine that only its user calls with.
    pub any_host: bool,
    /// Limits of organizations, by their names or ids.
    pub organization_limits: Arc<BTreeMap<String, OrganizationLimits>>,
    /// Address of the API, where agents open WebSockets without a public URL; `None`: it is not known.
    pub api: Option<SocketAddr>,
    /// Times and limits of WebSockets.
    pub sockets: SocketSettings,
    /// Terms of peer connections.
    pub peers: PeerTerms,
    /// The start of voice pipelines.
    pub pipelines: Arc<Pipelines>,
    /// Authorities that servers of webhooks and agents may be certified by, beside the well-known ones.
    pub roots: Roots,
    /// True if a message of the agent that it begins to speak interrupts the Digital Human.
    pub yield_to_started_event: bool,
    /// Dialects of WebSockets with settings of their own, by name.
    pub dialects: Arc<BTreeMap<String, Dialect>>,
    /// Adapters of voice-agent platforms, by the names of these.
    pub adapters: Arc<Adapters>,
    /// Ways to read the definitions of agents, by the names of their providers.
    pub definitions: Arc<Definitions>,
    /// Times for which rows and files are kept.
    pub retention: Retention,
    /// Object store of files; `None`: they stay in the data folder.
    pub storage: Option<Artifacts>,
    /// Name of this engine among those of its database.
    pub engine: String,
    /// Start of URLs that lead to this engine and to no other; `None`: it has no address of its own.
    pub own_url: Option<String>,
    /// Milliseconds without a sign of life after which others take over what this engine did.
    pub lease_ms: i64,
    /// Time for which conversations go on while this engine is drained; `None`: until each ends.
    pub drain_timeout: Option<Duration>,
}

impl Settings {
    /// Returns the defaults, with files under `data`.
    pub fn new(data: impl Into<PathBuf>) -> Settings {
        Settings {
            data: data.into(),
            public_url: None,
            allow_private_targets: true,
            allow_private_agents: true,
            require_https_webhooks: false,
            max_results_per_run: 10_000,
            usage_minutes_per_month: None,
            issue_likeness: 0.82,
            malfunction_phrases: malfunction_phrases(&[]),
            number_pool: Vec::new(),
            number_price: 0,
            notify: Notify::default(),
            telemetry: Arc::default(),
            capture: Capture::default(),
            timestamp_url: None,
            journey_stop_on_failure: false,
            text_reply_delay_ms: 0,
            sms: Arc::default(),
            email: Arc::default(),
            hears: false,
            models: Arc::default(),
            judge: Arc::default(),
            callers_usd_per_day: None,
            behaviour: Behaviour::default(),
            names: Resolver::default(),
            trunks: Arc::default(),
            any_host: false,
            organization_limits: Arc::default(),
            api: None,
            sockets: SocketSettings::default(),
            peers: PeerTerms::default(),
            pipelines: Arc::default(),
            roots: Roots::default(),
            yield_to_started_event: true,
            dialects: Arc::default(),
            adapters: Arc::default(),
            definitions: Arc::default(),
            retention: Retention::default(),
            storage: None,
            engine: "ringer".to_owned(),
            own_url: None,
            lease_ms: LEASE_MS,
            drain_timeout: None,
        }
    }

    /// Returns the addresses of conversations by mail; `None`: there are none.
    pub fn mail_home(&self) -> Option<MailHome> {
        MailHome::new(self.email.address.as_deref(), self.email.inbound_domain.as_deref())
    }
}

/// Handles that the subjects are made with.
#[derive(Clone)]
struct Handles {
    store: Store,
    clock: Clock,
    settings: Arc<Settings>,
    live: Arc<dyn LiveCalls>,
    poster: Arc<Poster>,
    model: Option<Arc<dyn LanguageModel>>,
    talks: Arc<Talks>,
    refusals: Arc<RefusalCounts>,
    spending: Arc<ModelSpending>,
    drain: Arc<engines::Drain>,
    outgoing: Arc<SpanQueue>,
}

/// The product: its subjects, each with the operations of its folder. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    handles: Arc<Handles>,
    outbox: Arc<Outbox>,
    library: Arc<Library>,
    conversations: Arc<Conversations>,
    humans: Arc<Humans>,
    placements: Arc<Placements>,
    evaluations: Arc<Evaluations>,
    engines: Arc<Engines>,
    runs: Arc<Runs>,
    telemetry: Arc<Telemetry>,
    watching: Arc<Watching>,
    generation: Arc<Generation>,
    bundles: Arc<Bundles>,
}

impl Service {
    /// Returns a product over `store`. `live` is asked to end calls.
    pub fn new(store: Store, clock: Clock, settings: Settings, live: Arc<dyn LiveCalls>) -> Service {
        let poster = Arc::new(Poster::new(
            Guard::new(settings.allow_private_targets).trusting(&settings.roots),
            WEBHOOK_PATIENCE,
        ));
        store.keep_time(&clock);
        let settings = Arc::new(settings);
        let (talks, refusals, drain) = (Arc::default(), Arc::default(), Arc::default());
        let spending = ModelSpending::new(&store, &clock);
        let (model, outgoing) = (None, Arc::new(SpanQueue::new(&settings)));
        Service::with(Handles {
            store,
            clock,
            settings,
            live,
            poster,
            model,
            talks,
            refusals,
            spending,
            drain,
            outgoing,
        })
    }

    /// Returns a product whose subjects have these handles.
    fn with(handles: Handles) -> Service {
        let outbox = Arc::new(Outbox::new(&handles));
        let library = Arc::new(Library::new(&handles, &outbox));
        let conversations = Arc::new(Conversations::new(&handles, &outbox));
        let humans = Arc::new(Humans::new(&handles, &conversations));
        let placements = Arc::new(Placements::new(&handles, &outbox, &library, &conversations));
        let evaluations = Arc::new(Evaluations::new(&handles, &outbox, &library, &conversations));
        let engines = Arc::new(Engines::new(&handles, &conversations));
        let runs = Arc::new(Runs::new(&handles, &outbox, &conversations, &evaluations));
        let telemetry = Arc::new(Telemetry::new(&handles));
        let watching = Arc::new(Watching::new(&handles, &outbox, &conversations, &runs));
        let generation = Arc::new(Generation::new(&handles, &humans));
        let bundles = Arc::new(Bundles::new(&handles, &library, &humans, &runs));
        let handles = Arc::new(handles);
        Service {
            handles,
            outbox,
            library,
            conversations,
            humans,
            placements,
            evaluations,
            engines,
            runs,
            telemetry,
            watching,
            generation,
            bundles,
        }
    }

    /// Returns the same product with a language model, or without one.
    pub fn with_model(self, model: Option<Arc<dyn LanguageModel>>) -> Service {
        Service::with(Handles { model, ..(*self.handles).clone() })
    }

    /// Returns the same product, which looks at and posts to the addresses of users where `guard` lets it.
    #[cfg(any(test, feature = "testing"))]
    pub fn with_guard(self, guard: Guard) -> Service {
        let poster = Arc::new(Poster::new(guard, WEBHOOK_PATIENCE));
        Service::with(Handles { poster, ..(*self.handles).clone() })
    }

    /// Returns the store that holds the rows.
    pub fn store(&self) -> &Store {
        &self.handles.store
    }

    /// Returns the clock in use.
    pub fn clock(&self) -> &Clock {
        &self.handles.clock
    }

    /// Returns the settings that the services work with.
    pub fn settings(&self) -> &Settings {
        &self.handles.settings
    }

    /// Returns the jobs that wait for a worker.
    pub fn queue(&self) -> Queue {
        Queue::new(self.handles.store.clone(), self.handles.clock.clone())
    }

    /// Returns the events of a result as they happen.
    pub fn feed(&self, result_id: i64) -> Option<Arc<Feed>> {
        self.handles.live.feed(result_id)
    }

    /// Returns the way to the other engines of the database; `None`: there is no bus.
    pub fn relay(&self) -> Option<Arc<Relay>> {
        self.handles.live.relay()
    }

    /// Returns the uses of language models, and their cost.
    pub fn spending(&self) -> &Arc<ModelSpending> {
        &self.handles.spending
    }

    /// Returns what writes events, notices and jobs in the transaction of a change.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Returns the operations on resources.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// Returns the operations on conversations.
    pub fn conversations(&self) -> &Conversations {
        &self.conversations
    }

    /// Returns the operations on Digital Humans and scenarios.
    pub fn humans(&self) -> &Humans {
        &self.humans
    }

    /// Returns the operations that make calls and written conversations of results.
    pub fn placements(&self) -> &Placements {
        &self.placements
    }

    /// Returns the operations on evaluations and production calls.
    pub fn evaluations(&self) -> &Evaluations {
        &self.evaluations
    }

    /// Returns the operations on the engines of the database.
    pub fn engines(&self) -> &Engines {
        &self.engines
    }

    /// Returns the operations on runs and results.
    pub fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Returns the operations on traces, and on spans of agents.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// Returns the operations on monitors, alerts, issues, notifications and webhooks.
    pub fn watching(&self) -> &Watching {
        &self.watching
    }

    /// Returns the operations that draft.
    pub fn generation(&self) -> &Generation {
        &self.generation
    }

    /// Returns the operations on definitions of a suite.
    pub fn bundles(&self) -> &Bundles {
        &self.bundles
    }
}
