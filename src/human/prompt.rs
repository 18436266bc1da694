//! Prompts of the language model: its role, its facts, its manner of speaking, and the conversation so far. No network,
//! no choice of words.

use ringer_base::config::Words;
use ringer_media::call::{ConversationLine, Purpose, Thought};
use ringer_provider::{ChatMessage, ChatRequest, ChatRole, ChatTool};
use serde_json::json;

use super::frequent::COUNT;
use super::phrases::phrases;
use super::text::Facts;
use super::{FluencyLevel, Profile};

/// Most lines of the conversation that a model is shown.
const LINES_MAX: usize = 200;
/// Tokens for one word of an answer: more than needed, so that the word limit applies and not this one.
const TOKENS_PER_WORD: u32 = 6;

/// Name of the tool that hangs up.
pub(super) const END_CALL: &str = "end_call";
/// Name of the tool that skips a turn.
pub(super) const STAY_SILENT: &str = "stay_silent";
/// Name of the tool that presses keys.
pub(super) const SEND_DTMF: &str = "send_dtmf";

/// Returns the request for one move.
pub(super) fn request(profile: &Profile, thought: &Thought, seed: u64) -> ChatRequest {
    let mut messages = vec![message(ChatRole::System, system(profile))];
    let skipped = thought.history.len().saturating_sub(LINES_MAX);
    messages.extend(thought.history[skipped..].iter().map(line));
    messages.extend(task(thought).map(|text| message(ChatRole::System, text)));
    let talks = matches!(thought.purpose, Purpose::Opening | Purpose::Reply | Purpose::GoOn);
    ChatRequest {
        messages,
        tools: if talks { tools(profile) } else { Vec::new() },
        temperature: profile.creativity.clamp(0.0, 2.0),
        tokens_max: profile.words().maximum * TOKENS_PER_WORD,
        json: false,
        seed: Some(seed),
        audio: None,
        live: !profile.written,
    }
}

/// Returns the request for other words in a beginner's sentence, in place of those that are `unknown`.
pub(super) fn rewording(profile: &Profile, sentence: &str, unknown: &[String]) -> ChatRequest {
    let language = language(&profile.language);
    let facts: String = profile.traits.iter().map(|(_, value)| format!("\n- {value}")).collect();
    let task = format!(
        "A beginner in {language} speaks. Say the sentence with the {COUNT} most frequent words of {language} alone, at most 10 \
         words in a sentence. Keep its meaning, its names and numbers, and these facts as they are written:{facts}\n\
         Do not use these words: {}. Answer with the new sentence and nothing else.",
        unknown.join(", ")
    );
    ChatRequest {
        messages: vec![message(ChatRole::System, task), message(ChatRole::User, sentence.to_owned())],
        temperature: 0.0,
        tokens_max: profile.words().maximum * TOKENS_PER_WORD,
        live: !profile.written,
        ..ChatRequest::default()
    }
}

fn message(role: ChatRole, content: String) -> ChatMessage {
    ChatMessage { role, content }
}

fn line(line: &ConversationLine) -> ChatMessage {
    let mut text = if line.text.is_empty() && line.digits.is_empty() {
        "(something that could not be understood)".to_owned()
    } else {
        line.text.to_string()
    };
    if !line.digits.is_empty() {
        text.push_str(&format!(" (pressed the keys {})", line.digits));
    }
    if line.interrupted {
        text.push_str(" ...");
    }
    message(if line.other { ChatRole::User } else { ChatRole::Assistant }, text.trim().to_owned())
}

/// Returns the instructions for this one move, beyond answering; `None`: there are none.
fn task(thought: &Thought) -> Option<String> {
    let unsaid = thought.unsaid.as_ref().map(|words| {
        format!("You were interrupted. The other side did not hear these words of yours: \"{words}\". Do not take them as said.")
    });
    let now = match &thought.purpose {
        Purpose::Opening => {
            Some("You speak first. Say your opening line now: who you are is less important than what you want.".into())
        }
        Purpose::Reply | Purpose::GoOn => None,
        Purpose::BargeIn => {
            Some("Interrupt the other side now, in the middle of its sentence, with at most 12 words.".into())
        }
        Purpose::Contextual { prompt } => Some(format!(
            "The last message is still being said. Decide whether you interrupt it now. Condition: {prompt}\n\
             Answer NO when the condition is not met. Otherwise answer only the words with which you interrupt, at most 12."
        )),
        Purpose::StillThere => Some(
            "The other side asked you to wait and has been silent for a minute. Ask whether it is still there.".into(),
        ),
    };
    match (unsaid, now) {
        (Some(unsaid), Some(now)) => Some(format!("{unsaid}\n{now}")),
        (unsaid, now) => unsaid.or(now),
    }
}

/// Returns the instructions for the whole conversation.
fn system(profile: &Profile) -> String {
    let mut text = String::from(match (profile.written, profile.called) {
        (false, false) => {
            "You are a person on the telephone. You are the caller; the other side is the agent that serves callers.\n"
        }
        (false, true) => "You are a person on the telephone. An agent has called you; it is the other side.\n",
        (true, _) => {
            "You are a person who writes text messages. You are the customer; the other side is the agent that serves customers.\n"
        }
    });
    let mut add = |part: String| {
        text.push_str(&part);
        text.push('\n');
    };
    if !profile.name.is_empty() {
        add(format!("Your name: {}", profile.name));
    }
    let facts = Facts::of(&profile.traits);
    if !profile.role_description.is_empty() {
        add(format!("Who you are: {}", facts.fill(&profile.role_description)));
    }
    add(format!("What you want: {}", facts.fill(&profile.intent)));
    if !profile.traits.is_empty() {
        add("Facts about you. Give them exactly as written, letter by letter and digit by digit:".into());
        profile.traits.iter().for_each(|(name, value)| add(format!("- {name}: {value}")));
    }
    if !profile.earlier.is_empty() {
        add("You have been in contact with this agent before, oldest first. You remember it and take it up:".into());
        profile.earlier.iter().for_each(|memory| add(format!("- {memory}")));
    }
    if !profile.rules.is_empty() {
        add("Find out, without naming them, whether the agent keeps these rules:".into());
        profile.rules.iter().for_each(|rule| add(format!("- {rule}")));
    }
    add("How you speak:".into());
    manners(profile).into_iter().for_each(|rule| add(format!("- {rule}")));
    text
}

fn manners(profile: &Profile) -> Vec<String> {
    let words = profile.words();
    let mut rules = vec![
        format!("Speak only {}.", language(&profile.language)),
        format!("About {} words a turn, never more than {}.", words.target, words.maximum),
        "Follow what you want step by step. Reveal a fact only when you are asked for it or need it.".into(),
        "When you are asked for a fact that is not listed, say that you do not have it at hand. Do not invent numbers."
            .into(),
        match profile.written {
            false => "Answer with spoken words only: no stage directions, no lists, no markup, no emoji.".into(),
            true => "Answer with the words of your message only: no stage directions, no lists, no markup.".into(),
        },
        "Never say that you are simulated, a test or a language model. Never speak or act as the agent.".into(),
    ];
    if profile.fluency == FluencyLevel::Beginner {
        rules.push("You are a beginner in this language: only its 2000 most frequent words, at most 10 words in a sentence. Names, numbers and your facts are exempt.".into());
    }
    if profile.allow_end_call {
        let when = profile
            .hangup_instructions
            .as_deref()
            .unwrap_or("when your goal is reached, when it is refused for good, or when goodbye was said");
        rules.push(format!(
            "Say goodbye ({}) and call the tool {END_CALL}: {when}.",
            phrases(&profile.language).goodbye
        ));
    }
    if profile.allow_dtmf {
        let keyed = if profile.keyed {
            "Give every number that is asked for by keys"
        } else {
            "Give numbers by voice; press keys only when you are asked to"
        };
        rules.push(format!("{keyed}, with the tool {SEND_DTMF}."));
    }
    rules
}

fn tools(profile: &Profile) -> Vec<ChatTool> {
    let nothing = || json!({"type": "object", "properties": {}});
    let mut tools = Vec::new();
    if profile.allow_end_call {
        let description = "Hangs up after your words.".into();
        tools.push(ChatTool { name: END_CALL, description, parameters: nothing() });
    }
    if profile.allow_silence {
        let description = match profile.silence_instructions.as_str() {
            "" | "default" => {
                "Stay silent instead of speaking. Use it only when the agent asks you to wait or puts you on hold."
            }
            own => own,
        };
        tools.push(ChatTool { name: STAY_SILENT, description: description.into(), parameters: nothing() });
    }
    if profile.allow_dtmf {
        let digits = json!({"type": "string", "pattern": "^[0-9*#A-D]{1,32}$"});
        let parameters = json!({"type": "object", "properties": {"digits": digits}, "required": ["digits"]});
        let description = "Presses these telephone keys after your words.".into();
        tools.push(ChatTool { name: SEND_DTMF, description, parameters });
    }
    tools
}

fn language(code: &str) -> &str {
    const NAMES: [(&str, &str); 15] = [
        ("en", "English"),
        ("es", "Spanish"),
        ("pt", "Portuguese"),
        ("ja", "Japanese"),
        ("tr", "Turkish"),
        ("hi", "Hindi"),
        ("ar", "Arabic"),
        ("ru", "Russian"),
        ("zh", "Mandarin Chinese"),
        ("ml", "Malayalam"),
        ("fr", "French"),
        ("yue", "Cantonese"),
        ("vi", "Vietnamese"),
        ("de", "German"),
        ("ko", "Korean"),
    ];
    NAMES.iter().find(|(known, _)| *known == code).map_or("the language of the other side", |(_, name)| name)
}

impl Profile {
    /// Returns the number of words in a turn.
    pub fn words(&self) -> &Words {
        self.verbosity.words(&self.lengths)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Verbosity;
    use super::*;

    fn thought(purpose: Purpose) -> Thought {
        let say = |other, text: &str, interrupted| ConversationLine {
            other,
            text: text.into(),
            digits: Arc::default(),
            interrupted,
        };
        let history = vec![say(true, "Clinic, hello?", false), say(false, "I want to", true), say(true, "", false)];
        Thought { purpose, history, unsaid: Some("book a visit".into()) }
    }

    #[test]
    fn permissions_and_levels_reach_the_model() {
        let check = |profile: Profile, holds: &[&str], lacks: &[&str]| {
            let request = request(&profile, &thought(Purpose::Reply), 1);
            let text = format!("{:?} {:?}", request.messages[0].content, request.tools);
            holds.iter().for_each(|part| assert!(text.contains(part), "{part} is missing in {text}"));
            lacks.iter().for_each(|part| assert!(!text.contains(part), "{part} is in {text}"));
        };
        let base = Profile {
            intent: "Book a visit for {{day}}.".into(),
            traits: vec![("day".into(), "Monday".into())],
            ..Profile::default()
        };
        check(
            base.clone(),
            &["for Monday", "day: Monday", "About 30 words", END_CALL, STAY_SILENT, SEND_DTMF, "English"],
            &["2000"],
        );
        let quiet = Profile { allow_end_call: false, allow_silence: false, allow_dtmf: false, ..base.clone() };
        check(quiet, &[], &[END_CALL, STAY_SILENT, SEND_DTMF]);
        let beginner = Profile {
            fluency: FluencyLevel::Beginner,
            verbosity: Verbosity::Low,
            language: "de".into(),
            ..base.clone()
        };
        check(beginner, &["2000 most frequent", "never more than 25", "German"], &[]);
        let found = Profile {
            silence_instructions: "Be silent on Sundays.".into(),
            hangup_instructions: Some("after a joke".into()),
            ..base.clone()
        };
        check(found, &["Be silent on Sundays.", "after a joke"], &["goal is reached"]);
        check(base.clone(), &["You are the caller"], &["has called you", "in contact with this agent before"]);
        let earlier = vec!["You wanted a table.".to_owned()];
        let known = ["An agent has called you", "in contact with this agent before", "- You wanted a table."];
        check(Profile { called: true, earlier, ..base }, &known, &["You are the caller"]);
    }

    #[test]
    fn the_conversation_keeps_its_sides_and_what_was_not_said() {
        let request = request(&Profile::default(), &thought(Purpose::BargeIn), 1);
        let roles: Vec<ChatRole> = request.messages.iter().map(|message| message.role).collect();
        use ChatRole::{Assistant, System, User};
        assert_eq!(roles, [System, User, Assistant, User, System]);
        assert_eq!(request.messages[2].content, "I want to ...");
        assert!(request.messages[3].content.contains("could not be understood"));
        assert!(
            request.messages[4].content.contains("book a visit") && request.messages[4].content.contains("12 words")
        );
        assert!(request.tools.is_empty());
    }
}
