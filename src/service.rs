//! Rules of the product, one module a resource. Knows the store, the clock and the queue; knows no HTTP.
//!
//! Functions are named after the operation and take the [`Caller`] whose rows they may see. What a caller may do by scope
//! is decided before a function is called; the one exception are the secrets on agents, which read-scope keys do not see.

mod agent_stream;
mod agents;
mod alerts;
mod always_on;
mod call_logs;
mod check;
mod communities;
mod customers;
mod dial;
mod drafting;
mod drafts;
mod evaluation;
mod evidence;
mod export;
mod finished;
mod folders;
mod follow_up;
mod generate;
mod human_rules;
mod humans;
mod in_force;
mod internal;
mod issues;
mod judging;
mod keys;
mod labels;
mod ladder;
mod legs;
mod listening;
mod lists;
mod live;
mod metrics;
mod monitors;
mod names;
mod noises;
mod notify;
mod outcome;
mod overdue;
mod packing;
mod page_file;
mod page_key;
mod peaks;
mod phone_numbers;
mod place;
mod privacy;
mod progress;
mod pull;
mod push;
mod rerun;
mod results;
mod retention;
mod review;
mod run_list;
mod runs;
mod scenarios;
mod schedules;
mod simulations;
mod sms;
mod stream_address;
mod summary;
mod texts;
mod trigger;
mod trunks;
mod turn_list;
mod turns;
mod usage;
mod versions;
mod waiting;
mod webhooks;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::EndReason;
use tokio::sync::watch;
use uuid::Uuid;

use crate::clock::Clock;
use crate::config::{Behaviour, Capture, DialLimits, Notify, Pipelines, Sms, Trunk};
use crate::engine::SocketSettings;
use crate::error::{Error, Result};
use crate::events::Feed;
use crate::model::api_key::Scope;
use crate::provider::LanguageModel;
use crate::provider::guard::Guard;
use crate::provider::post::Poster;
use crate::queue::Queue;
use crate::store::Store;
use crate::transport::sip::names::Resolver;
use crate::transport::webrtc::PeerTerms;
use crate::transport::websocket::{Dialect, Kind};

pub use self::agent_stream::StreamGoal;
pub use self::agents::{AgentAdded, AgentUpdated, SigningKey};
pub use self::alerts::{AlertDeleted, AlertPage, ViolationPage};
pub use self::call_logs::{
    CallLogPage, CallLogQuery, CallLogWork, CallQueued, LogDeleted, LogEvaluated, LogUpdated, LogsDeleted, RECOGNIZED,
};
pub use self::check::phone;
pub use self::communities::CommunityList;
pub use self::customers::{TraitDeleted, TraitList};
pub use self::dial::{CallerNumber, Outgoing, Refusals};
pub use self::drafting::{GraphMade, ValuesMade};
pub use self::drafts::{DraftMetrics, MetricDrafts};
pub use self::evaluation::Judged;
pub use self::evidence::HTTP_LOG;
pub use self::export::ExportFormat;
pub use self::folders::{AgentMoved, FolderDeleted};
pub use self::follow_up::FollowUp;
pub use self::humans::{BulkCreated, BulkDeleted, DigitalHumanPage, HumansOfSimulation, IdError, IndexError};
pub use self::internal::{Accepted, AutosyncAccepted, AutosyncTarget, RunAccepted};
pub use self::judging::ToJudge;
pub use self::labels::LabelDeleted;
pub use self::ladder::Ladder;
pub use self::legs::{Leg, Reached, Turn};
pub use self::listening::{Peaks, Timeline};
pub use self::live::Running;
pub use self::metrics::{MetricPage, MetricsDeleted, MetricsUpdated};
pub use self::monitors::{MonitorDeleted, MonitorPage, malfunction_phrases};
pub use self::noises::{NoiseDeleted, NoiseSource};
pub use self::overdue::EVALUATION_MS;
pub use self::packing::{Packing, Track};
pub use self::page_file::CallFile;
pub use self::page_key::PageDoor;
pub use self::peaks::{Levels, PeakStretch, Zoom};
pub use self::phone_numbers::{NumberAdded, NumberReleased};
pub use self::place::{Obstacle, Placed, Placer, RoomPlan, Sounds, TextPlaced};
pub use self::results::{ConversationsEnded, HungUp, ReEvaluation, ResultDeleted, ResultUpdated};
pub use self::retention::Cleared;
pub use self::review::{Reviewed, Reviews};
pub use self::run_list::{ListedRun, ResultChange, RunChanges, RunPage, RunQuery};
pub use self::runs::{RunCancelled, RunDeleted, RunResults};
pub use self::scenarios::{ScenarioDeleted, ScenarioList, Validated};
pub use self::schedules::{ScheduleDeleted, ScheduleList};
pub use self::simulations::{Message, SimulationAdded, SimulationDeleted};
pub use self::sms::{SmsQueued, Terminated};
pub use self::stream_address::AGENT_STREAM;
pub use self::summary::RunTold;
pub use self::texts::TextNews;
pub use self::turn_list::TurnList;
pub use self::usage::SpendAllowed;
pub use self::versions::{VersionDeleted, VersionLabels};
pub use self::webhooks::{DeliveryPage, WebhookAdded, WebhookDeleted, WebhookList, WebhookTested};

/// Time limit for a webhook's connection and answer together.
const WEBHOOK_PATIENCE: Duration = Duration::from_secs(5);

/// Caller of an operation: an authenticated API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Organization whose rows it may see.
    pub organization: String,
    /// Id of the API key.
    pub key_id: Uuid,
    /// Scope that limits its operations.
    pub scope: Scope,
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
    fn changed(&self, result_id: i64) {
        let _ = result_id;
    }

    /// Returns a watch that changes with every stored change of a result's state; `None` when this process makes no
    /// calls.
    fn any_change(&self) -> Option<watch::Receiver<u64>> {
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
    /// Traffic of a call that is captured for its evidence.
    pub capture: Capture,
    /// True if the steps of a journey after one that failed are not held.
    pub journey_stop_on_failure: bool,
    /// Time between a Digital Human's written answer and its sending.
    pub text_reply_delay_ms: u32,
    /// The carrier of text messages.
    pub sms: Arc<Sms>,
    /// True if a model judges by ear.
    pub hears: bool,
    /// Numbers behind the named levels of Digital Humans.
    pub behaviour: Behaviour,
    /// Looks up the hosts of agents' SIP addresses.
    pub names: Resolver,
    /// Providers of telephone lines, by name.
    pub trunks: Arc<BTreeMap<String, Trunk>>,
    /// Limits of the numbers that organizations dial, by organization.
    pub dial_limits: Arc<BTreeMap<String, DialLimits>>,
    /// Address of the API, where agents open WebSockets without a public URL; `None`: it is not known.
    pub api: Option<SocketAddr>,
    /// Times and limits of WebSockets.
    pub sockets: SocketSettings,
    /// Terms of peer connections.
    pub peers: PeerTerms,
    /// The start of voice pipelines.
    pub pipelines: Arc<Pipelines>,
    /// True if a message of the agent that it begins to speak interrupts the Digital Human.
    pub yield_to_started_event: bool,
    /// Dialects of WebSockets with settings of their own, by name.
    pub dialects: Arc<BTreeMap<String, Dialect>>,
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
            capture: Capture::default(),
            journey_stop_on_failure: false,
            text_reply_delay_ms: 0,
            sms: Arc::default(),
            hears: false,
            behaviour: Behaviour::default(),
            names: Resolver::default(),
            trunks: Arc::default(),
            dial_limits: Arc::default(),
            api: None,
            sockets: SocketSettings::default(),
            peers: PeerTerms::default(),
            pipelines: Arc::default(),
            yield_to_started_event: true,
            dialects: Arc::default(),
        }
    }

    /// Returns the dialect of a name; `None`: the engine's own protocol.
    ///
    /// # Errors
    /// The name is neither a kind's nor one of the settings.
    pub fn dialect(&self, name: Option<&str>) -> Result<Dialect> {
        let Some(name) = name else { return Ok(Dialect::new(Kind::Default)) };
        let known = Kind::from_name(name).map(Dialect::new).or_else(|| self.dialects.get(name).cloned());
        known.ok_or_else(|| Error::Refused(Kind::unknown(name)))
    }

    /// Returns the file of an uploaded background noise.
    pub fn noise_file(&self, noise: Uuid) -> PathBuf {
        self.data.join("noises").join(noise.to_string())
    }
}

/// The product. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    store: Store,
    clock: Clock,
    settings: Arc<Settings>,
    live: Arc<dyn LiveCalls>,
    poster: Arc<Poster>,
    model: Option<Arc<dyn LanguageModel>>,
    talks: Arc<turns::Talks>,
    refusals: Arc<dial::RefusalCounts>,
}

impl Service {
    /// Returns a product over `store`. `live` is asked to end calls.
    pub fn new(store: Store, clock: Clock, settings: Settings, live: Arc<dyn LiveCalls>) -> Service {
        let poster = Arc::new(Poster::new(Guard::new(settings.allow_private_targets), WEBHOOK_PATIENCE));
        let settings = Arc::new(settings);
        let (talks, refusals) = (Arc::default(), Arc::default());
        Service { store, clock, settings, live, poster, model: None, talks, refusals }
    }

    /// Returns the same product with a language model, or without one.
    pub fn with_model(self, model: Option<Arc<dyn LanguageModel>>) -> Service {
        Service { model, ..self }
    }

    /// Returns the same product, which looks at and posts to the addresses of users where `guard` lets it.
    pub fn with_guard(self, guard: Guard) -> Service {
        Service { poster: Arc::new(Poster::new(guard, WEBHOOK_PATIENCE)), ..self }
    }

    /// Returns the language model; an error if none is configured.
    fn model(&self) -> Result<Arc<dyn LanguageModel>> {
        self.model.clone().ok_or_else(|| Error::Unavailable("Language model is not configured".into()))
    }

    /// Returns the client that posts to addresses given by users.
    fn poster(&self) -> Arc<Poster> {
        self.poster.clone()
    }

    /// Returns the store that holds the rows.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the clock in use.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns the settings that the services work with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the jobs that wait for a worker.
    pub fn queue(&self) -> Queue {
        Queue::new(self.store.clone(), self.clock.clone())
    }

    /// Returns the events of a result as they happen.
    pub fn feed(&self, result_id: i64) -> Option<Arc<Feed>> {
        self.live.feed(result_id)
    }

    /// Returns the folder of the files of a result.
    pub fn result_folder(&self, result_id: i64) -> PathBuf {
        self.settings.data.join("results").join(result_id.to_string())
    }

    /// Removes the files of deleted results. A file that cannot be removed is left and logged.
    async fn remove_files(&self, result_ids: &[i64]) {
        for id in result_ids {
            match tokio::fs::remove_dir_all(self.result_folder(*id)).await {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    tracing::warn!(result = id, %error, "files of a deleted result could not be removed");
                }
                _ => {}
            }
        }
    }
}
