//! Names, voices and facts of generated Digital Humans, and what a simulation wants of all of them.

use std::collections::HashSet;

use ringer_base::clock;
use ringer_media::seed::Seed;
use ringer_model::digital_human::{
    BackgroundNoise, DigitalHumanSpec, Gender, Language, SpeaksFirst, SpeaksFirstMode, Trait,
};
use ringer_model::generate::GenerateSpec;
use ringer_model::simulation::DigitalHumansSettings;
use ringer_model::test_scenario::TestScenario;

use super::{Draft, Frame};
use crate::library::human_rules::settings::{AI_GENERATED, RANDOM, mend_settings, noises};
use crate::library::human_rules::values::invent;
use crate::library::{human_rules, names};

/// Areas of drawn numbers. Their numbers from 555-0100 to 555-0199 are nobody's.
const AREAS: [&str; 16] =
    ["202", "206", "212", "213", "303", "305", "312", "404", "415", "512", "617", "702", "713", "808", "917", "971"];
/// Draws of a name before it gets an initial.
const DRAWS: u64 = 40;

/// Finishes every draft; the same request and seed give the same. Tells which settings of the simulation were not
/// followed: those that were kept before they were checked.
pub(crate) fn finish(drafts: &mut [Draft], spec: &GenerateSpec, frame: &Frame, seed: Seed) -> Vec<String> {
    let mut settings = frame.simulation.as_ref().map(|row| row.doc.digital_humans_settings.clone()).unwrap_or_default();
    let wrong = mend_settings(&mut settings);
    let mut numbers = HashSet::new();
    let mut taken = HashSet::new();
    for name in drafts.iter_mut().filter_map(|draft| draft.human.name.as_mut()) {
        *name = number_name(name, &mut taken);
    }
    for (index, draft) in drafts.iter_mut().enumerate() {
        let own = Seed::of(&format!("{} {index}", seed.0));
        let worded = draft.worded;
        let human = &mut draft.human;
        // Settings that an attacker needs stay.
        let with_noise = draft.category != "load_testing" && human.background_noise == BackgroundNoise::None;
        settle(human, &settings, with_noise);
        if frame.simulation.is_some() {
            draw(human, &settings, with_noise, own, &mut numbers);
            if worded && settings.default_language == RANDOM && !has_given_words(human) {
                let spoken: Vec<Language> = Language::ALL.iter().copied().filter(|one| *one != Language::Ad).collect();
                human.language = spoken[own.stream("language").index(spoken.len())];
            }

            if settings.default_caller_number == RANDOM && !frame.numbers.is_empty() {
                human.phone_number = Some(frame.numbers[index % frame.numbers.len()].clone());
            }
        }
        if draft.category == "load_testing" {
            human.enriched_playback = Some(super::short_call(human.language));
        }
        human.gender = Some(if own.stream("gender").unit() < 0.5 { Gender::Female } else { Gender::Male });
        if human.name.is_none() {
            human.name = Some(name(human, &settings, own, &mut taken));
        }
        for given in spec.traits.iter().flatten() {
            human.traits.retain(|old| old.trait_name != given.trait_name);
            human.traits.push(human_rules::trait_of(given));
        }
        for wanted in &frame.traits {
            if !human.traits.iter().any(|old| old.trait_name == wanted.name) {
                let value = invent(&wanted.name, wanted.data_type, &mut own.stream(&wanted.name));
                let (trait_name, trait_data_type) = (wanted.name.clone(), wanted.data_type);
                human.traits.push(Trait { trait_name, trait_data_type, value, is_sip_header: false });
            }
        }
        human.num_runs = spec.num_runs.unwrap_or(settings.num_runs).clamp(1, 1000);
    }
    wrong.into_iter().map(|text| format!("{text}, the default was used")).collect()
}

fn settle(human: &mut DigitalHumanSpec, settings: &DigitalHumansSettings, with_noise: bool) {
    human.language = Language::parse(&settings.default_language).unwrap_or_default();
    if with_noise {
        human.background_noise = BackgroundNoise::parse(&settings.default_background_noise).unwrap_or_default();
    }
    if settings.default_caller_number != RANDOM {
        human.phone_number = Some(settings.default_caller_number.clone());
    }
    if settings.first_message != AI_GENERATED {
        human.speaks_first_config = Some(SpeaksFirst {
            speaks_first: true,
            mode: Some(SpeaksFirstMode::Custom),
            message: Some(settings.first_message.clone()),
            dynamic: false,
        });
    }
}

/// True for words that are said as they were given: they keep their language.
fn has_given_words(human: &DigitalHumanSpec) -> bool {
    let given_first = human.speaks_first_config.as_ref().is_some_and(|first| first.message.is_some());
    let of_transcript = human.original_transcript.is_some() || human.formatted_transcript.is_some();
    given_first || of_transcript || human.workflow_v2_id.is_some()
}

/// Draws the settings that a simulation leaves to chance, but for the language.
fn draw(
    human: &mut DigitalHumanSpec,
    settings: &DigitalHumansSettings,
    with_noise: bool,
    own: Seed,
    numbers: &mut HashSet<String>,
) {
    if settings.default_background_noise == RANDOM && with_noise {
        let heard: Vec<BackgroundNoise> = noises().collect();
        human.background_noise = heard[own.stream("background noise").index(heard.len())];
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

/// Returns a name that is given, from its second time on with how often it was.
fn number_name(name: &str, taken: &mut HashSet<String>) -> String {
    let mut nth = 1;
    let mut free = name.to_owned();
    while !taken.insert(free.clone()) {
        nth += 1;
        free = format!("{name} ({nth})");
    }
    free
}

/// Returns a name that nobody else in this request has.
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

/// Returns the test scenario that a draft describes.
pub(crate) fn scenario(draft: &Draft) -> TestScenario {
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
