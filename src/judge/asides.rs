//! Judges if the agent came back later to words that were not meant for it. The silence rule of non-directed probes
//! cannot see that.

use ringer_media::call::TimelineEntry;
use ringer_media::measure::{Counted, asides};
use ringer_model::result::MetricValue;
use ringer_provider::LanguageModel;
use serde_json::json;

use super::measures::{UNJUDGED, conversation};
use super::reading::{AgentTurn, speech_start, turns};
use super::{Facts, decide_of, messages};

const QUESTION: &str = "While the agent spoke, the caller said a sentence to somebody else in the room. Does the agent's next turn \
    react to that sentence: answer it, follow it, or ask about it?";

/// Asks the model about each non-directed probe that the agent spoke on through, and enters into `metrics` how many
/// were passed in both ways. What cannot be asked leaves the silence rule alone, and the metric's note says why.
pub async fn judge_asides(
    moments: &[TimelineEntry],
    facts: &Facts,
    model: &dyn LanguageModel,
    metrics: &mut [MetricValue],
) {
    let Some(metric) = metrics.iter_mut().find(|metric| metric.name == UNJUDGED) else { return };
    if messages::are_written(moments) {
        return;
    }
    let counted = asides(&conversation(moments, facts));
    let unheard = |aside: &Counted| {
        aside.spoken_through && next_turn(moments, aside.span.from).is_some_and(|turn| turn.lacks_words())
    };
    if counted.iter().any(unheard) {
        metric.note = Some("words were not judged: the agent's next turn was not heard".to_owned());
        return;
    }
    let mut passed = 0u32;
    for aside in counted.iter().filter(|aside| aside.spoken_through) {
        let reacted = match aside_note(moments, aside.span.from) {
            None => false,
            Some(material) => match decide_of(QUESTION, material, model).await {
                Ok(decision) => decision.yes,
                Err(why) => {
                    metric.note = Some(format!("words were not judged: {why}"));
                    return;
                }
            },
        };
        passed += u32::from(!reacted);
    }
    let share = f64::from(passed) / counted.len() as f64;
    (metric.value, metric.note) = (json!((share * 1000.0).round() / 1000.0), None);
}

/// Returns the agent's turn after the one in which words began at `onset`.
fn next_turn(moments: &[TimelineEntry], onset: i64) -> Option<AgentTurn<'_>> {
    turns(moments).skip_while(|turn| turn.end < onset).nth(1)
}

/// Returns the words that began at `onset`, what the agent was saying, and what it said next; `None` where it said
/// nothing more.
fn aside_note(moments: &[TimelineEntry], onset: i64) -> Option<String> {
    let said = moments.iter().filter_map(|moment| speech_start(moment)).find(|start| start.at == onset)?.text;
    let mut turns = turns(moments);
    let current = turns.find(|turn| turn.end >= onset)?.text;
    let next = turns.map(|turn| turn.text).find(|text| !text.is_empty())?;
    Some(format!("AGENT, meanwhile: {current}\nCALLER, to somebody else: {said}\nAGENT, next turn: {next}"))
}

#[cfg(test)]
mod tests {
    use ringer_media::call::Event;
    use ringer_provider::testing::{Reply, ScriptedModel};
    use serde_json::Value;

    use super::*;
    use crate::{measure, moments};

    fn at(ms: i64, event: &str, side: &str, data: Value) -> Value {
        json!({ "seq": ms, "sample": ms * 16, "event": event, "side": side, "data": data })
    }

    /// Returns two turns of the agent, with an aside in the first; after `pause_ms` of it the agent is silent for a
    /// while.
    fn timeline(pause_ms: Option<i64>) -> Vec<TimelineEntry> {
        let aside =
            |event: &str, ms| at(ms, event, "dh", json!({ "kind": "probe", "text": "Leave it.", "utterance_id": 1 }));
        let turn = |from: i64, to: i64, text: &str| {
            at(
                to,
                "turn.ended",
                "agent",
                json!({ "text": text, "from_sample": from * 16, "end_sample": to * 16, "words": [] }),
            )
        };
        let speech =
            |from, to| [at(from, "speech.started", "agent", json!({})), at(to, "speech.ended", "agent", json!({}))];
        let mut lines = vec![
            at(3000, "probe", "dh", json!({ "kind": "non_directed" })),
            aside("speech.started", 3000),
            aside("speech.ended", 4200),
            turn(1000, 9000, "It is a long story."),
            at(10_000, "speech.started", "dh", json!({ "kind": "turn", "text": "Yes.", "utterance_id": 2 })),
            at(11_000, "speech.ended", "dh", json!({ "kind": "turn", "text": "Yes.", "utterance_id": 2 })),
            turn(12_000, 14_000, "What shall I leave?"),
            at(20_000, "call.ended", "engine", json!({})),
        ];
        lines.extend(match pause_ms {
            None => speech(1000, 9000).to_vec(),
            Some(after) => [speech(1000, 3000 + after), speech(5500, 9000)].concat(),
        });
        lines.extend(speech(12_000, 14_000));
        moments(&Value::Array(lines))
    }

    #[tokio::test]
    async fn an_agent_that_answers_what_was_not_meant_for_it_does_not_pass() {
        let words = r#"words were not judged: Judge answer could not be read"#;
        for (pause_ms, replies, expect, note) in [
            (None, &[r#"{"answer": "yes"}"#][..], 0.0, None),
            (None, &[r#"{"answer": "no"}"#], 1.0, None),
            (None, &["?", "?", "?"], 1.0, Some(words)),
            // It fell silent: nobody is asked.
            (Some(800), &[], 0.0, None),
        ] {
            let (moments, facts) = (timeline(pause_ms), Facts { interface: "PHONE", ..Facts::default() });
            let mut metrics = measure(&moments, &facts).metrics;
            let model = ScriptedModel::new(replies.iter().map(|reply| Reply::says(&[reply])).collect());
            judge_asides(&moments, &facts, &model, &mut metrics).await;
            let metric = metrics.iter().find(|metric| metric.name == UNJUDGED).expect("it is counted");
            assert_eq!(
                (metric.value.as_f64(), metric.note.as_deref()),
                (Some(expect), note),
                "{pause_ms:?} {replies:?}"
            );
            let asked: Vec<String> = model.requests().iter().map(|request| format!("{:?}", request.messages)).collect();
            assert_eq!(asked.len(), replies.len());
            assert!(
                asked.iter().all(|asked| asked.contains("Leave it.") && asked.contains("What shall I leave?")),
                "{asked:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_next_turn_that_was_not_heard_is_not_taken_for_no_reaction() {
        let (mut moments, facts) = (timeline(None), Facts { interface: "PHONE", ..Facts::default() });
        let next = moments.iter_mut().rfind(|moment| moment.name() == "turn.ended").expect("there are two");
        let mut data = next.data();
        (data["text"], data["text_missing"]) = (json!(""), json!("unclear"));
        next.event = Event::from_wire(next.sample, "turn.ended", "agent", data);
        let mut metrics = measure(&moments, &facts).metrics;
        let model = ScriptedModel::new(Vec::new());
        judge_asides(&moments, &facts, &model, &mut metrics).await;
        let metric = metrics.iter().find(|metric| metric.name == UNJUDGED).expect("it is counted");
        let note = Some("words were not judged: the agent's next turn was not heard");
        assert_eq!((metric.value.as_f64(), metric.note.as_deref(), model.requests().len()), (Some(1.0), note, 0));
    }
}
