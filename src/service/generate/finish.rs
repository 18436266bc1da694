//! Names, voices and facts of generated Digital Humans, and what a simulation wants of all of them.

use std::collections::HashSet;

use ringer_media::seed::Seed;

use super::super::names;
use super::{Draft, Frame, invent};
use crate::clock;
use crate::model::digital_human::{
    BackgroundNoise, DigitalHumanSpec, Gender, Language, SpeaksFirst, SpeaksFirstMode, Trait,
};
use crate::model::generate::GenerateSpec;
use crate::model::simulation::DigitalHumansSettings;
use crate::model::test_scenario::TestScenario;

/// What stands for a draw in the settings of a simulation.
const RANDOM: &str = "random";
/// Areas of drawn numbers. Their numbers from 555-0100 to 555-0199 are nobody's.
const AREAS: [&str; 16] =
    ["202", "206", "212", "213", "303", "305", "312", "404", "415", "512", "617", "702", "713", "808", "917", "971"];
/// Draws of a name before it gets an initial.
const DRAWS: u64 = 40;

/// Finishes every draft; the same request and seed give the same.
pub fn finish(drafts: &mut [Draft], spec: &GenerateSpec, frame: &Frame, seed: Seed) {
    let settings = frame.simulation.as_ref().map(|row| row.doc.digital_humans_settings.clone()).unwrap_or_default();
    let mut numbers = HashSet::new();
    let mut taken: HashSet<String> = drafts.iter().filter_map(|draft| draft.human.name.clone()).collect();
    for (index, draft) in drafts.iter_mut().enumerate() {
        let own = Seed::of(&format!("{} {index}", seed.0));
        let human = &mut draft.human;
        settle(human, &settings, draft.category != "load_testing");
        if frame.simulation.is_some() {
            draw(human, &settings, own, &mut numbers);
        }
        human.gender = Some(if own.stream("gender").unit() < 0.5 { Gender::Female } else { Gender::Male });
        if human.name.is_none() {
            human.name = Some(name(human, &settings, own, &mut taken));
        }
        for given in spec.traits.iter().flatten() {
            human.traits.retain(|old| old.trait_name != given.trait_name);
            human.traits.push(given.clone());
        }
        for wanted in &frame.traits {
            if !human.traits.iter().any(|old| old.trait_name == wanted.name) {
                let value = invent::value(&wanted.name, wanted.data_type, &mut own.stream(&wanted.name));
                let (trait_name, trait_data_type) = (wanted.name.clone(), wanted.data_type);
                human.traits.push(Trait { trait_name, trait_data_type, value, is_sip_header: false });
            }
        }
        human.num_runs = spec.num_runs.unwrap_or(settings.num_runs).clamp(1, 1000);
    }
}

fn settle(human: &mut DigitalHumanSpec, settings: &DigitalHumansSettings, with_noise: bool) {
    human.language = Language::parse(&settings.default_language).unwrap_or_default();
    if with_noise {
        human.background_noise = match settings.default_background_noise.as_str() {
            // A custom noise would need its sound.
            "custom" => BackgroundNoise::None,
            named => BackgroundNoise::parse(named).unwrap_or_default(),
        };
    }
    if settings.default_caller_number != RANDOM {
        human.phone_number = Some(settings.default_caller_number.clone());
    }
    if settings.first_message != "ai_generated" {
        human.speaks_first_config = Some(SpeaksFirst {
            speaks_first: true,
            mode: Some(SpeaksFirstMode::Custom),
            message: Some(settings.first_message.clone()),
            dynamic: false,
        });
    }
}

/// What a simulation leaves to chance. Words that are given stay in their language.
fn draw(human: &mut DigitalHumanSpec, settings: &DigitalHumansSettings, own: Seed, numbers: &mut HashSet<String>) {
    let has_words =
        human.original_transcript.is_some() || human.formatted_transcript.is_some() || human.workflow_v2_id.is_some();
    if settings.default_language == RANDOM && !has_words {
        let spoken: Vec<Language> = Language::ALL.iter().copied().filter(|one| *one != Language::Ad).collect();
        human.language = spoken[own.stream("language").index(spoken.len())];
    }
    if settings.default_caller_number == RANDOM {
        let mut draws = own.stream("number");
        human.phone_number = Some(loop {
            let area = AREAS[draws.index(AREAS.len())];
            let number = format!("+1{area}55501{:02}", draws.index(100));
            if numbers.insert(number.clone()) {
                break number;
            }
        });
    }
}

/// A name that nobody else in this request has.
fn name(human: &DigitalHumanSpec, settings: &DigitalHumansSettings, seed: Seed, taken: &mut HashSet<String>) -> String {
    let mut tries = 0..;
    let mut next = || {
        let nth: u64 = tries.next().unwrap_or(u64::MAX);
        if settings.default_name != RANDOM {
            return if nth == 0 {
                settings.default_name.clone()
            } else {
                format!("{} {}", settings.default_name, nth + 1)
            };
        }
        let drawn = names::draw(Seed::of(&format!("{} name {nth}", seed.0)), human.language, human.gender);
        match drawn.split_once(' ') {
            Some((given, family)) if nth >= DRAWS => {
                let initial = char::from(b'A' + (nth % 26) as u8);
                format!("{given} {initial}. {family}")
            }
            _ => drawn,
        }
    };
    loop {
        let name = next();
        if taken.insert(name.clone()) {
            return name;
        }
    }
}

/// What a draft is about.
pub fn scenario(draft: &Draft) -> TestScenario {
    let human = &draft.human;
    TestScenario {
        id: Some(clock::new_id()),
        name: human.name.clone().unwrap_or_default(),
        description: human.role_description.clone().unwrap_or_else(|| human.intent.clone()),
        goal: draft.goal.clone(),
        category: draft.category.to_owned(),
        intent: human.intent.clone(),
        success_criteria: human.success_criteria.clone(),
        persona: None,
        traits: human.traits.clone(),
        language: human.language,
        original_transcript: human.original_transcript.clone(),
        formatted_transcript: human.formatted_transcript.clone(),
        expected_tool_calls: human.expected_tool_calls.clone(),
    }
}
