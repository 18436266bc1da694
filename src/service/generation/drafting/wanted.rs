//! Scenarios that a request wants: its list, and the numbers that it allocates besides.

use ringer_base::error::Result;
use ringer_model::Object;
use ringer_model::digital_human::{ExpectedToolCall, TranscriptLine};
use ringer_model::test_scenario::{CallAllocation, CustomerPersona, ScenariosAsked, TranscriptWanted};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::library::human_rules::transcripts::{customer_lines, transcript_lines};

/// Category of scenarios that are made for a kind of customers.
const CUSTOMER_PERSONAS: &str = "customerPersonas";

/// Scenarios of one request.
const MAX_SCENARIOS: usize = 100;

/// Scenarios of one kind: what is known of them beforehand is not left to the model.
#[derive(Default)]
pub(crate) struct Item {
    pub category: String,
    pub count: usize,
    pub goal: Option<String>,
    /// The stored scenario that the goal is the id of, if there is one.
    pub workflow: Option<Uuid>,
    pub instructions: Option<String>,
    pub persona: Option<CustomerPersona>,
    pub intent: Option<String>,
    pub success_criteria: Option<String>,
    pub description: Option<String>,
    pub transcript: Option<String>,
    pub lines: Option<Vec<TranscriptLine>>,
    pub tools: Vec<ExpectedToolCall>,
}

impl Item {
    /// Returns the scenario as JSON for the language model's prompt.
    pub(crate) fn material(&self) -> Value {
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        let persona = self.persona.as_ref().map(|persona| match persona.id {
            Some(_) => json!({ "name": persona.name, "description": persona.description, "goal": persona.goal }),
            None => json!(persona.name),
        });
        json!({
            "category": self.category, "goal": self.goal, "instructions": self.instructions, "persona": persona,
            "intent": self.intent, "success_criteria": self.success_criteria, "transcript": self.transcript,
            "tools_that_the_agent_should_call": tools,
        })
    }
}

/// Returns the items, at most 100 scenarios in all, and the warning when there would have been more. `stored`: personas
/// that the request names by their ids, each with its number.
pub(crate) fn list_items(
    asked: &ScenariosAsked,
    stored: Vec<(CustomerPersona, i64)>,
) -> Result<(Vec<Item>, Option<String>)> {
    let mut items: Vec<Item> = Vec::new();
    for request in &asked.scenarios {
        items.push(Item {
            category: request.category.clone(),
            count: usize::try_from(request.count).unwrap_or(0),
            goal: request.goal.clone(),
            instructions: request.instructions.clone(),
            ..Item::default()
        });
    }
    add_allocation(&asked.call_allocation, &mut items);
    items.extend(stored.into_iter().map(|(persona, count)| Item {
        category: CUSTOMER_PERSONAS.into(),
        count: usize::try_from(count).unwrap_or(0),
        goal: persona.goal.clone().filter(|goal| !goal.trim().is_empty()),
        persona: Some(persona),
        ..Item::default()
    }));
    let mut left = MAX_SCENARIOS;
    let mut cut = false;
    for item in &mut items {
        cut |= item.count > left;
        item.count = item.count.min(left);
        left -= item.count;
    }
    items.retain(|item| item.count > 0);
    Ok((items, cut.then(|| format!("Request was truncated to {MAX_SCENARIOS} scenarios"))))
}

fn add_allocation(allocation: &CallAllocation, items: &mut Vec<Item>) {
    let maps: [(&str, &Object); 5] = [
        ("goalAdherence", &allocation.goal_adherence),
        ("systemIntegrity", &allocation.system_integrity),
        (CUSTOMER_PERSONAS, &allocation.customer_personas),
        ("workflowAdherence", &allocation.workflow_adherence),
        ("workflowAdherenceV2", &allocation.workflow_adherence_v2),
    ];
    for (category, map) in maps {
        for (key, count) in map {
            let (persona, goal) = match category {
                CUSTOMER_PERSONAS => (Some(persona_of(key)), None),
                _ => (None, Some(key.clone())),
            };
            let workflow = category.starts_with("workflow").then(|| Uuid::parse_str(key).ok()).flatten();
            let count = count.as_f64().unwrap_or(0.0).max(0.0) as usize;
            items.push(Item { category: category.into(), count, goal, workflow, persona, ..Item::default() });
        }
    }
    for tool in &allocation.expected_tool_calls {
        let output = tool.output.clone().map_or(Value::Null, Value::String);
        let tools = vec![ExpectedToolCall { name: tool.name.clone(), parameters: None, output }];
        items.push(Item { category: "expectedToolCalls".into(), count: 1, tools, ..Item::default() });
    }
    if let Some(custom) = &allocation.custom_prompt {
        let (count, instructions) = (usize::try_from(custom.count).unwrap_or(0), Some(custom.prompt.clone()));
        items.push(Item { category: "customPrompt".into(), count, instructions, ..Item::default() });
    }
    items.extend(allocation.transcript_generation.iter().map(from_transcript));
    for row in &allocation.csv_call_allocation {
        items.push(Item {
            category: "csvCallAllocation".into(),
            count: usize::try_from(row.count).unwrap_or(0),
            intent: Some(row.intent.clone()),
            success_criteria: Some(row.success_criteria.clone()),
            ..Item::default()
        });
    }
}

/// Returns the persona of which only the name is known.
fn persona_of(name: &str) -> CustomerPersona {
    CustomerPersona { name: name.to_owned(), description: name.to_owned(), goal: None, id: None }
}

fn from_transcript(asked: &TranscriptWanted) -> Item {
    let lines = transcript_lines(&asked.transcript);
    // The customer's own words, as a JSON text; a transcript without roles is all the customer's.
    let utterances = || {
        let own: Vec<&str> = match &lines {
            Some(lines) => customer_lines(lines),
            None => asked.transcript.lines().map(str::trim).filter(|line| !line.is_empty()).collect(),
        };
        json!(own).to_string()
    };
    Item {
        category: "transcriptGeneration".into(),
        count: 1,
        description: asked.use_specific_utterances.then(utterances),
        success_criteria: asked.success_criteria.clone(),
        transcript: Some(asked.transcript.clone()),
        lines,
        ..Item::default()
    }
}
