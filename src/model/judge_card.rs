//! Report cards of judges: how often a language model judges as people do, and what follows for verdicts and rates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::id::IdString;
use super::time::Timestamp;

words! {
    /// State of a card.
    kept CardStatus { Queued = "queued", Running = "running", Completed = "completed", Failed = "failed" } default Queued
}

words! {
    /// Verdict that a card is about: the goal, a custom metric, or the meaning of an expectation.
    kept CardSubject { Goal = "goal_success", Metric = "metric", Meaning = "meaning" } default Goal
}

words! {
    /// Trust in a judge. Proven: by its card, both rates are surely at least the least ones of the settings.
    kept JudgeStatus { Proven = "proven", Unproven = "unproven", NoCard = "no_card" } default NoCard
}

words! {
    /// Answer of a judge. Only true and false are verdicts.
    kept JudgeAnswer {
        True = "true", False = "false", Uncertain = "not_known", Unreadable = "unreadable", Failed = "failed",
    } default Unreadable
}

impl JudgeAnswer {
    /// Returns the answer that is a verdict.
    pub fn of(verdict: bool) -> JudgeAnswer {
        if verdict { JudgeAnswer::True } else { JudgeAnswer::False }
    }

    /// Returns the verdict; `None` for an answer that is none.
    pub fn verdict(self) -> Option<bool> {
        match self {
            JudgeAnswer::True => Some(true),
            JudgeAnswer::False => Some(false),
            _ => None,
        }
    }
}

/// Answer of one model of a panel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JudgeVote {
    /// Name of the model in the settings.
    pub name: String,
    /// Name of the model at its server.
    pub model: String,
    /// Answer in one word: the value, or `not_known`, `unreadable` or `failed`.
    pub answer: String,
}

/// Judge behind a verdict, and whether it is proven.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JudgeNote {
    /// Name of the model at its server; of a panel, the names of all of them.
    pub model: String,
    /// Version of the prompt: the beginning of the hash of its text.
    pub prompt_version: String,
    /// Identifier of the card in force, of the same model and prompt version; null: there is none.
    pub card_id: Option<Uuid>,
    /// Trust in the judge.
    pub status: JudgeStatus,
    /// Reason why the judge is not proven; null: it is.
    pub reason: Option<String>,
    /// Answers of the models of a panel; empty where one model judged.
    pub votes: Vec<JudgeVote>,
}

/// A conversation with the verdict of a person. It is a stored result, or a text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CardLabel {
    /// Stored result that is the conversation.
    #[serde(default)]
    #[schemars(with = "IdString", extend("x-unless" = "conversation"))]
    pub simulation_result_id: Option<IdString>,
    /// Conversation as lines that begin with `AGENT:` or `USER:`.
    #[serde(default)]
    #[schemars(length(max = 200_000))]
    pub conversation: Option<String>,
    /// Verdict of a person: true for reached, passed or yes.
    pub label: bool,
    /// Goal that the caller was to reach; needed for a text where goals are judged.
    #[serde(default)]
    #[schemars(length(max = 20_000))]
    pub success_criteria: Option<String>,
    /// Language of the conversation; absent: that of the result.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub language: Option<String>,
    /// Channel of the conversation; absent: that of the result.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub channel: Option<String>,
    /// Position of the words that decide, 0 at the beginning and 1 at the end.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub evidence_at: Option<f64>,
    /// Line of the label in the file that it comes from; refusals name it.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub line: Option<i64>,
}

/// Request for a card. Without labels, the values that people set in reviews are the labels.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct CardRequest {
    /// Name of the language model in the settings; absent: the panel, else the default one.
    #[serde(default)]
    #[schemars(length(min = 1, max = 200))]
    pub model: Option<String>,
    /// Custom metric whose verdicts are judged; it is of type pass_fail, yes_no or boolean.
    #[serde(default)]
    pub metric_id: Option<Uuid>,
    /// Meaning of an expectation whose verdicts are judged.
    #[serde(default)]
    #[schemars(length(min = 1, max = 20_000))]
    pub meaning: Option<String>,
    /// Agent whose results count; absent: all agents.
    #[serde(default)]
    pub agent_id: Option<IdString>,
    /// Conversations with their verdicts.
    #[serde(default)]
    #[schemars(length(min = 1, max = 5000))]
    pub labels: Option<Vec<CardLabel>>,
    /// Number of times that each conversation is judged.
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 10))]
    pub repeat: i64,
}

fn three() -> i64 {
    3
}

/// A share with its interval of 95 % (Wilson); null where nothing was counted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// Number that is counted.
    pub hits: u64,
    /// Number of all that are counted.
    pub of: u64,
    /// Share, 0 to 1.
    pub share: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
}

/// Cohen's kappa with its asymptotic interval of 95 % (Fleiss, Cohen and Everitt 1969).
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Kappa {
    /// Agreement beyond chance, at most 1.
    pub value: f64,
    /// Lower end of its interval; null where the estimated variance is 0.
    pub low: Option<f64>,
    /// Upper end of its interval; null where the estimated variance is 0.
    pub high: Option<f64>,
}

/// Numbers of answers, of all repetitions.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnswerCounts {
    /// Number of questions to the judge.
    pub asked: u64,
    /// Number of answers that were verdicts.
    pub verdicts: u64,
    /// Number of answers that could not be read.
    pub unreadable: u64,
    /// Number of answers that the verdict depends on words that are not known.
    pub not_known: u64,
    /// Number of questions that the model was not reached with.
    pub failed: u64,
}

/// Rates of some of the conversations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CardGroup {
    /// Name of the group.
    pub name: String,
    /// Number of its conversations with a verdict.
    pub conversations: u64,
    /// Share of those labelled true that the judge calls true.
    pub tpr: Rate,
    /// Share of those labelled false that the judge calls false.
    pub tnr: Rate,
    /// Share of all that the judge calls as they are labelled.
    pub accuracy: Rate,
}

/// Groups of conversations by one property.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CardGroups {
    /// Property: length, evidence, language or channel.
    pub by: String,
    /// Groups by the property.
    pub groups: Vec<CardGroup>,
    /// Differences whose intervals do not overlap; else `too few to tell`.
    pub says: Vec<String>,
}

/// Figures of a card. The first answer of each conversation is its verdict, as in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CardFigures {
    /// Number of conversations that were judged.
    pub conversations: u64,
    /// Number of these that are labelled true.
    pub labelled_true: u64,
    /// Number of these that are labelled false.
    pub labelled_false: u64,
    /// Number of conversations that could not be judged at all.
    pub left_out: u64,
    /// Number of conversations whose first answer is no verdict; they are in no rate.
    pub without_verdict: u64,
    /// Number labelled true that the judge calls true.
    pub true_positives: u64,
    /// Number labelled true that the judge calls false.
    pub false_negatives: u64,
    /// Number labelled false that the judge calls false.
    pub true_negatives: u64,
    /// Number labelled false that the judge calls true.
    pub false_positives: u64,
    /// Numbers of answers of all repetitions.
    pub answers: AnswerCounts,
    /// Share of those labelled true that the judge calls true.
    pub tpr: Rate,
    /// Share of those labelled false that the judge calls false.
    pub tnr: Rate,
    /// Share of all that the judge calls as they are labelled.
    pub accuracy: Rate,
    /// Agreement of judge and labels beyond chance; null where one of both knows one answer only.
    pub kappa: Option<Kappa>,
    /// Share of the conversations with the same verdict in all repetitions.
    pub same_answer: Rate,
    /// Share of the pairs of repetitions with the same verdict; its interval counts conversations, not pairs.
    pub same_pairs: Rate,
    /// Rates by properties of the conversations.
    pub groups: Vec<CardGroups>,
    /// Restrictions of the figures, in words.
    pub says: Vec<String>,
}

/// A conversation of a card with its label and answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct JudgedLabel {
    /// Stored result that is the conversation; null: a text.
    pub simulation_result_id: Option<i64>,
    /// Line of the label in its file, else its place in the list, from 1.
    pub line: i64,
    /// Verdict of a person.
    pub label: bool,
    /// Answers of the judge, one a repetition; empty: it was left out.
    pub answers: Vec<JudgeAnswer>,
    /// Reason why it was left out, or why the model was not reached.
    pub reason: Option<String>,
    /// Number of words of the conversation.
    pub words: u64,
    /// Language of the conversation.
    pub language: Option<String>,
    /// Channel of the conversation.
    pub channel: Option<String>,
    /// Position of the words that decide, 0 to 1.
    pub evidence_at: Option<f64>,
}

/// A card as stored. Labels are kept until they are judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JudgeCardDoc {
    /// Names of the models in the settings: one, or those of a panel.
    pub names: Vec<String>,
    /// Name of the judge, as verdicts have it.
    pub model: String,
    /// Version of the prompt.
    pub prompt_version: String,
    /// Verdict that the card is about.
    pub subject: CardSubject,
    /// Custom metric, where the card is about one.
    pub metric_id: Option<Uuid>,
    /// Meaning of an expectation, where the card is about one.
    pub meaning: Option<String>,
    /// Agent whose results count.
    pub agent_id: Option<i64>,
    /// Number of times that each conversation is judged.
    pub repeat: i64,
    /// State of the card.
    pub status: CardStatus,
    /// Reason why there are no figures.
    pub reason: Option<String>,
    /// True: the labels are values of reviews.
    pub from_reviews: bool,
    /// Conversations that wait to be judged.
    pub labels: Vec<CardLabel>,
    /// Conversations that are judged.
    pub judged: Vec<JudgedLabel>,
    /// Figures; `None` until it is completed.
    pub figures: Option<CardFigures>,
    /// Time at which it was completed or failed.
    pub completed_at: Option<Timestamp>,
}

/// Returns the key by which the card of a judge is found.
pub fn judge_key(model: &str, prompt_version: &str) -> String {
    format!("{prompt_version} {model}")
}

/// A report card of a judge.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct JudgeCardRecord {
    /// Identifier of the card.
    pub id: Uuid,
    /// Time at which it was asked for.
    pub created_at: Timestamp,
    /// Time at which it was completed or failed.
    pub completed_at: Option<Timestamp>,
    /// State of the card.
    pub status: CardStatus,
    /// Reason why there are no figures; null: there are, or will be.
    pub reason: Option<String>,
    /// Names of the models in the settings: one, or those of a panel.
    pub names: Vec<String>,
    /// Name of the model at its server; of a panel, the names of all of them.
    pub model: String,
    /// Version of the prompt: the beginning of the hash of its text.
    pub prompt_version: String,
    /// Verdict that the card is about.
    pub subject: CardSubject,
    /// Custom metric, where the card is about one.
    pub metric_id: Option<Uuid>,
    /// Meaning of an expectation, where the card is about one.
    pub meaning: Option<String>,
    /// Agent whose results count; null: all agents.
    pub agent_id: Option<i64>,
    /// Number of times that each conversation is judged.
    pub repeat: i64,
    /// True: the labels are values of reviews.
    pub from_reviews: bool,
    /// True: the newest completed card of its model and prompt version.
    pub in_force: bool,
    /// Trust in the judge by this card; no_card until it is completed.
    pub judge_status: JudgeStatus,
    /// Reason why the judge is not proven; null: it is.
    pub judge_reason: Option<String>,
    /// Figures; null until it is completed.
    pub figures: Option<CardFigures>,
    /// Conversations with their labels and answers; null in lists.
    pub conversations: Option<Vec<JudgedLabel>>,
}

/// An estimated share with its interval of 95 %, all from 0 to 1.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Estimate of the share.
    pub share: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
    /// Weight of the judge's verdicts in a prediction-powered estimate, 0 to 1; null for others.
    pub lambda: Option<f64>,
}

/// Share of a run's conversations that reached their goal, corrected by the card of the judge. It decides nothing.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CorrectedRate {
    /// Verdict whose rate it is: always goal_success.
    pub of: CardSubject,
    /// Identifier of the card in force.
    pub card_id: Uuid,
    /// Name of the judge.
    pub model: String,
    /// Version of the prompt.
    pub prompt_version: String,
    /// Share that the judge calls reached, of the conversations that it judged.
    pub counted: Rate,
    /// Number of labelled conversations with a verdict behind the correction.
    pub labelled: u64,
    /// Estimate by prediction-powered inference; null where it is not defined.
    pub ppi: Option<Estimate>,
    /// Estimate of Rogan and Gladen; null where it is not defined.
    pub rogan_gladen: Option<Estimate>,
    /// Restrictions of the estimates, in words.
    pub says: Vec<String>,
}
