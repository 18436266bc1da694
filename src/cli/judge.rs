//! `ringer judge`: how far the language model that judges can be trusted.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::sleep;
use uuid::Uuid;

use super::keys::is_there;
use super::out::Out;
use super::run::client::{Client, Trouble};
use super::{BAD_USAGE, Place, UNREACHABLE, complain, make_private, open_store, service_settings, up};
use crate::clock::Clock;
use crate::config::{Config, variable};
use crate::error::Error;
use crate::jobs::{Upkeep, make_card};
use crate::judge::read_labels;
use crate::model::api_key;
use crate::model::judge_card::CardRequest;
use crate::service::{Caller, NoLiveCalls, Service};
use crate::store::queue::JudgeCardJob;

/// Time between two looks at a card that a server makes.
const LOOK: Duration = Duration::from_millis(500);
/// Longest file of labels, in bytes.
const LABELS_BYTES: u64 = 64 << 20;

/// Flags of `ringer judge`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ringer judge card                                    people's reviews in the data folder are the labels
  ringer judge card --labels labels.csv --repeat 5     conversations and verdicts of a file
  ringer judge card --model careful --json
  RINGER_API_KEY=... ringer judge card --server https://ringer.example

A file of labels has a JSON object a line, or is CSV with a head line. Members or columns: result_id (a stored result) or
conversation (lines that begin with AGENT: or USER:), label (true, pass, yes, 1 or false, fail, no, 0), and where they are
known success_criteria (needed beside a conversation where goals are judged), language, channel, and evidence_at (position
of the words that decide, 0 to 1).

The exit code is 0 when the card was made, whatever it says, 1 when not, 2 for a bad file, flag or setting, 4 when the server
was not reached or refused the key.")]
pub struct Args {
    /// Action that is carried out.
    #[command(subcommand)]
    pub action: Action,
}

/// Actions of `ringer judge`.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Judge labelled conversations again, and report how often the judge is right.
    Card(Card),
}

/// Flags of `ringer judge card`.
#[derive(Debug, clap::Args)]
pub struct Card {
    /// Location of the settings and the data.
    #[command(flatten)]
    pub place: Place,
    /// Address of a server, with its key in RINGER_API_KEY [default: the data folder of this machine]
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// File of labelled conversations [default: the values that people set in reviews]
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Name of the language model in the settings [default: the panel, else the default model]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Custom metric whose verdicts are judged, by its id [default: whether the goal was reached]
    #[arg(long, value_name = "ID", conflicts_with = "meaning")]
    pub metric: Option<Uuid>,
    /// Meaning of an expectation whose verdicts are judged
    #[arg(long, value_name = "TEXT", requires = "labels")]
    pub meaning: Option<String>,
    /// Agent whose reviewed results count [default: all agents]
    #[arg(long, value_name = "ID", conflicts_with = "labels")]
    pub agent: Option<i64>,
    /// Number of times that each conversation is judged
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(i64).range(1..=10))]
    pub repeat: i64,
    /// Organization whose results and cards these are, in the data folder
    #[arg(long, value_name = "NAME", default_value = "default", conflicts_with = "server")]
    pub organization: String,
    /// Print the card as JSON
    #[arg(long)]
    pub json: bool,
}

/// Reason why there is no card.
enum Stop {
    /// Lines on a bad file, flag or setting.
    Bad(Vec<String>),
    /// The server is not reached.
    Unreached(String),
    /// Reason why the card has no figures.
    Failed(String),
    /// The settings cannot be used, which is told already.
    Told(ExitCode),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        match error {
            Error::Refused(why) => Stop::Bad(vec![why]),
            Error::NotFound(_) => Stop::Bad(vec![error.to_string()]),
            error => Stop::Failed(error.to_string()),
        }
    }
}

impl From<Trouble> for Stop {
    fn from(trouble: Trouble) -> Stop {
        match trouble {
            Trouble::Refused(refusal) => Stop::Bad(vec![refusal.message]),
            Trouble::Unreached(_) | Trouble::Key(_) => Stop::Unreached(trouble.to_string()),
        }
    }
}

/// Carries out the action.
pub async fn run(args: Args) -> ExitCode {
    let Action::Card(args) = args.action;
    let out = Out::standard();
    let card = match make(&args).await {
        Ok(card) => card,
        Err(Stop::Told(code)) => return code,
        Err(Stop::Bad(lines)) => {
            lines.iter().for_each(complain);
            return ExitCode::from(BAD_USAGE);
        }
        Err(Stop::Unreached(why)) => {
            complain(why);
            return ExitCode::from(UNREACHABLE);
        }
        Err(Stop::Failed(why)) => return out.finish(Err(why)),
    };
    match args.json {
        true => out.line(&card),
        false => lines_of(&card).iter().for_each(|line| out.line(line)),
    }
    match card["status"].as_str() {
        Some("completed") => out.finish(Ok::<(), String>(())),
        _ => out.finish(Err(text(&card["reason"]))),
    }
}

/// Makes a card on the server, or in the data folder.
async fn make(args: &Card) -> Result<Value, Stop> {
    let body = body_of(args)?;
    let Some(server) = &args.server else { return make_here(args, body).await };
    let key = variable("RINGER_API_KEY").unwrap_or_default();
    let client = Client::new(server, &key).map_err(|why| Stop::Bad(vec![why]))?;
    let mut card = client.post("/v1/judge-cards", &body).await?;
    let path = format!("/v1/judge-cards/{}", text(&card["id"]));
    while !matches!(card["status"].as_str(), Some("completed" | "failed")) {
        sleep(LOOK).await;
        card = client.get(&path).await?;
    }
    Ok(card)
}

async fn make_here(args: &Card, body: Value) -> Result<Value, Stop> {
    let config: Config = args.place.settings(&[]).map_err(Stop::Told)?;
    let request: CardRequest = serde_json::from_value(body).map_err(Error::internal)?;
    match args.labels {
        Some(_) => make_private(&config.data).await.map_err(|why| Stop::Bad(vec![why]))?,
        None => is_there(&config)?,
    }
    let store = open_store(&config).await?;
    let service = Service::new(store, Clock::Real, service_settings(&config), Arc::new(NoLiveCalls));
    let model = up::models("language_model", &config.language_model, &config.language_models, &config, &service);
    let model = model.map_err(|why| Stop::Bad(vec![why]))?;
    let service = service.with_model(model.clone());
    let organization = match service.library().organization(&args.organization).await? {
        Some(organization) => organization,
        None if args.labels.is_some() => service.library().create_organization(&args.organization).await?,
        None => return Err(Stop::Bad(vec![format!("there is no organization {:?}", args.organization)])),
    };
    let caller = Caller::keyless(organization.clone(), api_key::Scope::Admin);
    let card = service.evaluations().add_card(&caller, request, false).await?;
    let judged_at_once = config.limits.max_evaluations;
    let upkeep = Upkeep { model, judged_at_once, ..Upkeep::new(service.clone()) };
    make_card(&upkeep, &JudgeCardJob { organization, card_id: card.id }).await?;
    let card = service.evaluations().card(&caller, &card.id.to_string()).await?;
    service.store().clone().close().await;
    Ok(serde_json::to_value(&card).map_err(Error::internal)?)
}

/// Returns the request for a card.
fn body_of(args: &Card) -> Result<Value, Stop> {
    let mut body = Map::from_iter([("repeat".to_owned(), json!(args.repeat))]);
    body.extend(args.model.as_ref().map(|model| ("model".to_owned(), json!(model))));
    body.extend(args.metric.map(|metric| ("metric_id".to_owned(), json!(metric))));
    body.extend(args.meaning.as_ref().map(|meaning| ("meaning".to_owned(), json!(meaning))));
    body.extend(args.agent.map(|agent| ("agent_id".to_owned(), json!(agent.to_string()))));
    if let Some(path) = &args.labels {
        let describe = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let about = std::fs::metadata(path).map_err(|error| Stop::Bad(vec![describe(&error)]))?;
        if about.len() > LABELS_BYTES {
            return Err(Stop::Bad(vec![describe(&"it is longer than 64 MiB")]));
        }
        let text = std::fs::read_to_string(path).map_err(|error| Stop::Bad(vec![describe(&error)]))?;
        let labels = read_labels(&text);
        let labels = labels.map_err(|lines| Stop::Bad(lines.iter().map(|line| describe(line)).collect()))?;
        body.insert("labels".to_owned(), json!(labels));
    }
    Ok(Value::Object(body))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns a rate with its interval, such as `90 % (82.1 to 94.6) of 80`.
fn rate_of(rate: &Value) -> String {
    let percent = |key: &str| rate[key].as_f64().map(|share| (share * 1000.0).round() / 10.0);
    match (percent("share"), percent("low"), percent("high")) {
        (Some(share), Some(low), Some(high)) => format!("{share} % ({low} to {high}) of {}", rate["of"]),
        _ => "not known".to_owned(),
    }
}

/// Returns a card in lines for a person.
fn lines_of(card: &Value) -> Vec<String> {
    let figures = &card["figures"];
    let subject = match card["subject"].as_str() {
        Some("metric") => format!("the metric {}", text(&card["metric_id"])),
        Some("meaning") => format!("the meaning {:?}", text(&card["meaning"])),
        _ => "goal_success".to_owned(),
    };
    let mut lines = vec![format!(
        "card {} of {} (prompt {}) on {subject}; intervals of 95 %",
        text(&card["id"]),
        text(&card["model"]),
        text(&card["prompt_version"]),
    )];
    if !figures.is_object() {
        return lines;
    }
    lines.push(format!(
        "{} conversations, {} labelled true, {} false; judged {} times each",
        figures["conversations"], figures["labelled_true"], figures["labelled_false"], card["repeat"]
    ));
    for (name, key) in [("TPR", "tpr"), ("TNR", "tnr"), ("accuracy", "accuracy")] {
        lines.push(format!("{name:<9} {}", rate_of(&figures[key])));
    }
    let kappa = &figures["kappa"];
    let hundredth = |key: &str| kappa[key].as_f64().map(|value| format!("{value:.2}"));
    lines.push(match (hundredth("value"), hundredth("low"), hundredth("high")) {
        (Some(value), Some(low), Some(high)) => format!("kappa     {value} ({low} to {high}, asymptotic)"),
        (Some(value), ..) => format!("kappa     {value} (no interval: its estimated variance is 0)"),
        _ => "kappa     not known".to_owned(),
    });
    lines.push(format!("itself    same verdict each time: {}", rate_of(&figures["same_answer"])));
    lines.push(format!("          same verdict of pairs:  {}", rate_of(&figures["same_pairs"])));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for by in list(&figures["groups"]) {
        for group in list(&by["groups"]) {
            let (tpr, tnr) = (rate_of(&group["tpr"]), rate_of(&group["tnr"]));
            lines.push(format!("{:<9} {}: TPR {tpr}, TNR {tnr}", text(&by["by"]), text(&group["name"])));
        }
        lines.extend(list(&by["says"]).iter().map(|says| format!("          {}", text(says))));
    }
    lines.extend(list(&figures["says"]).iter().map(|says| format!("note      {}", text(says))));
    let why = card["judge_reason"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
    lines.push(format!("judge     {}{why}", text(&card["judge_status"])));
    lines
}
