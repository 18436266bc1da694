//! Trust in the judges behind verdicts, and rates corrected by their cards. Neither changes a verdict.

use std::collections::BTreeMap;

use ringer_base::error::Result;
use ringer_judge::agreement::rate;
use ringer_judge::card::{FEW, LeastRates, confusion, trust};
use ringer_judge::correction::{ppi, rogan_gladen};
use ringer_model::judge_card::{CardSubject, CorrectedRate, JudgeNote, JudgeStatus};
use ringer_model::result::{ResultBody, ResultDoc};
use ringer_store::{Row, Session};
use uuid::Uuid;

/// Reason for a judge without a card.
const NO_CARD: &str = "no report card of this model with this prompt in the data of this engine";

/// Cards in force by model and prompt version: id, trust and reason. `None`: there is none.
type Known = BTreeMap<(String, String), Option<(Uuid, JudgeStatus, Option<String>)>>;

/// Enters the cards in force beside the verdicts of results.
pub(crate) async fn note_cards(db: &mut Session, least: LeastRates, bodies: Vec<&mut ResultBody>) -> Result<()> {
    let mut known = Known::new();
    for note in bodies.into_iter().flat_map(notes_of) {
        let key = (note.model.clone(), note.prompt_version.clone());
        if !known.contains_key(&key) {
            let card = db.card_in_force(&note.model, &note.prompt_version).await?;
            let found = card.and_then(|card| {
                let (status, reason) = trust(card.doc.figures.as_ref()?, least);
                Some((card.id, status, reason))
            });
            known.insert(key.clone(), found);
        }
        (note.card_id, note.status, note.reason) = match known.get(&key).cloned().flatten() {
            Some((id, status, reason)) => (Some(id), status, reason),
            None => (None, JudgeStatus::NoCard, Some(NO_CARD.to_owned())),
        };
    }
    Ok(())
}

/// Returns the notes of all judges of a result.
fn notes_of(body: &mut ResultBody) -> Vec<&mut JudgeNote> {
    let mut notes = Vec::new();
    for evaluation in &mut body.evaluations {
        notes.extend(evaluation.judge.as_mut());
        notes.extend(evaluation.custom_metrics.iter_mut().filter_map(|metric| metric.judge.as_mut()));
    }
    notes.extend(body.custom_metrics.iter_mut().flatten().filter_map(|metric| metric.judge.as_mut()));
    notes.extend(body.expectations.iter_mut().filter_map(|kept| kept.judge.as_mut()));
    notes
}

/// Returns the share of reached goals of a run, corrected by the card of its judge. `None`: nothing was judged, there
/// is no card in force, or several judges judged.
pub(crate) async fn correct_rate(db: &mut Session, results: &[Row<ResultDoc>]) -> Result<Option<CorrectedRate>> {
    let verdicts: Vec<(i64, &JudgeNote, bool)> = results.iter().filter_map(verdict_of).collect();
    let Some((_, judge, _)) = verdicts.first() else { return Ok(None) };
    let is_same = |other: &JudgeNote| (&other.model, &other.prompt_version) == (&judge.model, &judge.prompt_version);
    if !verdicts.iter().all(|(_, other, _)| is_same(other)) {
        return Ok(None);
    }
    let Some(card) = db.card_in_force(&judge.model, &judge.prompt_version).await? else { return Ok(None) };
    let labelled = confusion(&card.doc.judged);
    let in_card = |id: i64| card.doc.judged.iter().any(|one| one.simulation_result_id == Some(id));
    let others: Vec<bool> = verdicts.iter().filter(|(id, ..)| !in_card(*id)).map(|(.., verdict)| *verdict).collect();
    let count = |verdicts: &[bool]| verdicts.iter().filter(|verdict| **verdict).count() as u64;
    let all: Vec<bool> = verdicts.iter().map(|(.., verdict)| *verdict).collect();
    let (hits, of) = (count(&others), others.len() as u64);
    let estimates = (ppi(labelled, hits, of), rogan_gladen(labelled, hits, of));
    let mut says = Vec::new();
    let (tpr, tnr) = (labelled.tpr(), labelled.tnr());
    for (label, rate) in [("true", &tpr), ("false", &tnr)] {
        if rate.of < FEW {
            says.push(format!("the card has {} labelled {label}, fewer than {FEW}: not enough to go by", rate.of));
        }
    }
    if all.len() > others.len() {
        let left = all.len() - others.len();
        says.push(format!("{left} of the judged conversations are those of the card; the estimates leave them out"));
    }
    if estimates.1.is_none() && of > 0 {
        says.push("Rogan-Gladen is undefined: TPR + TNR - 1 is not above 0, or one of both is not known".to_owned());
    }
    Ok(Some(CorrectedRate {
        of: CardSubject::Goal,
        card_id: card.id,
        model: judge.model.clone(),
        prompt_version: judge.prompt_version.clone(),
        counted: rate(count(&all), all.len() as u64),
        labelled: labelled.all(),
        ppi: estimates.0,
        rogan_gladen: estimates.1,
        says,
    }))
}

/// Returns the verdict of the judge on the goal of a result, whatever people and tool calls say.
fn verdict_of(row: &Row<ResultDoc>) -> Option<(i64, &JudgeNote, bool)> {
    let evaluation = row.doc.body.evaluations.first()?;
    let judged = match &row.doc.overruled {
        Some(judged) => judged.goal_success,
        None => evaluation.goal_success,
    };
    Some((row.id, evaluation.judge.as_ref()?, judged?))
}
